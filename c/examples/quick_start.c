// quick_start.c: two ranks, both driven by this thread, sum four numbers.
#include <stdio.h>
#include <vllm_vt/vt.h>

int main(void) {
  float data[2][4] = {{1, 2, 3, 4}, {10, 20, 30, 40}};
  vt_comm_group *group = NULL;
  vt_comm *comms[2];
  vt_queue *queue = NULL;
  vt_status status = vt_comm_group_create(2, NULL, &group);
  status = status ? status : vt_queue_create((vt_device){VT_DEVICE_CPU, 0}, NULL, &queue);
  status = status ? status : vt_comm_batch_begin();  // what follows runs together, at the end of the batch
  for (int rank = 0; rank < 2 && !status; rank++) {
    status = vt_comm_group_get_comm(group, rank, &comms[rank]);
    status = status ? status : vt_comm_all_reduce(comms[rank], queue, data[rank], data[rank], 4, VT_DTYPE_F32, VT_REDUCE_SUM, NULL);
  }
  status = status ? status : vt_comm_batch_end();
  if (status)
    fprintf(stderr, "%s\n", vt_last_error()->message);
  printf("%g %g %g %g\n", data[1][0], data[1][1], data[1][2], data[1][3]);  // 11 22 33 44
  vt_queue_release(queue);
  vt_comm_group_release(group);
  return status ? 1 : 0;
}
