// two_ranks.c: C code of a Rust crate that calls the runtime the crate is linked with.
#include <vllm_vt/vt.h>

static vt_status reduce_all(vt_comm_group *group, vt_queue *queue, int32_t *values, size_t count) {
  vt_status status = vt_comm_batch_begin();
  for (int32_t rank = 0; rank < 2 && status == VT_OK; rank++) {
    vt_comm *comm;
    int32_t *own = values + (size_t)rank * count;
    status = vt_comm_group_get_comm(group, rank, &comm);
    if (status == VT_OK) {
      status = vt_comm_all_reduce(comm, queue, own, own, count, VT_DTYPE_I32, VT_REDUCE_SUM, NULL);
    }
  }
  vt_status end = vt_comm_batch_end();
  return status == VT_OK ? end : status;
}

// Adds up two ranks' `count` values in place, both ranks driven by the calling thread.
vt_status two_ranks_sum(int32_t *values, size_t count);

vt_status two_ranks_sum(int32_t *values, size_t count) {
  vt_device cpu = {VT_DEVICE_CPU, 0};
  vt_comm_group *group = NULL;
  vt_queue *queue = NULL;
  vt_status status = vt_comm_group_create(2, NULL, &group);
  if (status == VT_OK) {
    status = vt_queue_create(cpu, NULL, &queue);
  }
  if (status == VT_OK) {
    status = reduce_all(group, queue, values, count);
  }
  vt_queue_release(queue);
  vt_comm_group_release(group);
  return status;
}
