// main.c: two ranks on one thread add up their values. Exit code 0 if the sums are right.
#include <stdio.h>
#include <vllm_vt/vt.h>

static int fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, vt_last_error()->message);
  return 1;
}

int main(void) {
  if (vt_version() != VT_VERSION) {
    return fail("the library is not the one of these headers");
  }
  vt_device cpu = {VT_DEVICE_CPU, 0};
  vt_queue *queue;
  vt_comm_group *group;
  if (vt_queue_create(cpu, NULL, &queue) != VT_OK || vt_comm_group_create(2, NULL, &group) != VT_OK) {
    return fail("creating");
  }

  float values[2][4] = {{1, 2, 3, 4}, {10, 20, 30, 40}};
  float sums[2][4] = {{0}};
  vt_comm_batch_begin();
  for (int32_t rank = 0; rank < 2; rank++) {
    vt_comm *comm;
    if (vt_comm_group_get_comm(group, rank, &comm) != VT_OK ||
        vt_comm_all_reduce(comm, queue, values[rank], sums[rank], 4, VT_DTYPE_F32, VT_REDUCE_SUM, NULL) != VT_OK) {
      return fail("all_reduce");
    }
  }
  if (vt_comm_batch_end() != VT_OK) {
    return fail("batch");
  }
  vt_comm_group_release(group);
  vt_queue_release(queue);

  for (int i = 0; i < 4; i++) {
    if (sums[0][i] != 11.0F * (float)(i + 1) || sums[1][i] != sums[0][i]) {
      fprintf(stderr, "sum %d is %g and %g\n", i, (double)sums[0][i], (double)sums[1][i]);
      return 1;
    }
  }
  printf("two ranks agree on 11 22 33 44\n");
  return 0;
}
