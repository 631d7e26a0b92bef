// quick_start.c: two ranks, each a thread with an asynchronous queue, sum four numbers.
#include <pthread.h>
#include <stdio.h>
#include <vllm_vt/vt.h>

// One rank. The sum is queued like any other work; the thread waits once, at the end.
static void *run(void *comm) {
  float data[4] = {1, 2, 3, 4};
  vt_queue *queue = NULL;
  vt_queue_options options = VT_QUEUE_OPTIONS_INIT;
  options.flags = VT_QUEUE_ASYNC;
  if (vt_queue_create((vt_device){VT_DEVICE_CPU, 0}, &options, &queue) != VT_OK ||
      vt_comm_all_reduce(comm, queue, data, data, 4, VT_DTYPE_F32, VT_REDUCE_SUM, NULL) != VT_OK ||
      vt_queue_destroy(queue) != VT_OK) {
    fprintf(stderr, "%s\n", vt_last_error()->message);
    vt_queue_release(queue);
    return NULL;
  }
  printf("rank %d: %g %g %g %g\n", vt_comm_get_rank(comm), data[0], data[1], data[2], data[3]);  // 2 4 6 8
  return comm;
}

int main(void) {
  vt_comm_group *group = NULL;
  vt_comm *comms[2];
  pthread_t peer;
  void *peer_result = NULL;
  if (vt_comm_group_create(2, NULL, &group) != VT_OK || vt_comm_group_get_comm(group, 0, &comms[0]) != VT_OK ||
      vt_comm_group_get_comm(group, 1, &comms[1]) != VT_OK || pthread_create(&peer, NULL, run, comms[1]) != 0) {
    return 1;
  }
  void *result = run(comms[0]);
  pthread_join(peer, &peer_result);
  vt_comm_group_release(group);
  return result != NULL && peer_result != NULL ? 0 : 1;
}
