// survey.c: see survey.h.
#include "survey.h"

#include <stdio.h>
#include <vllm_vt/vt.h>

static void implementation(void) {}

static int add(const char *op, const char *provider, int32_t priority) {
  vt_op_id id;
  vt_op_provider table = {.struct_size = sizeof(table), .name = provider, .priority = priority, .fn = implementation};
  return vt_op_intern(op, &id) != VT_OK || vt_op_provider_register(id, VT_DEVICE_CPU, &table) != VT_OK;
}

static int early_failures = 1;

void survey_early(void) {
  early_failures = add("consumer.op", "early", 7) + add("vt.barrier", "early", -7);
}

int survey_register(const char *name) {
  return add("consumer.op", name, 9);
}

// Two ranks on one asynchronous queue's thread sum 1 and 10.
static int work(int32_t values[2]) {
  vt_queue_options options = VT_QUEUE_OPTIONS_INIT;
  options.flags = VT_QUEUE_ASYNC;
  vt_queue *queue = NULL;
  vt_comm_group *group = NULL;
  vt_comm *comm;
  int bad = vt_queue_create((vt_device){VT_DEVICE_CPU, 0}, &options, &queue) != VT_OK ||
            vt_comm_group_create(2, NULL, &group) != VT_OK || vt_comm_batch_begin() != VT_OK;
  for (int32_t rank = 0; rank < 2 && !bad; rank++) {
    bad = vt_comm_group_get_comm(group, rank, &comm) != VT_OK ||
          vt_comm_all_reduce(comm, queue, &values[rank], &values[rank], 1, VT_DTYPE_I32, VT_REDUCE_SUM, NULL) != VT_OK;
  }
  bad = bad || vt_comm_batch_end() != VT_OK || vt_queue_synchronize(queue) != VT_OK;
  vt_comm_group_release(group);
  vt_queue_release(queue);
  return bad;
}

// Where the next byte goes; snprintf() ends what is too long.
#define ROOM buffer + used, capacity - used

int survey_text(char *buffer, size_t capacity) {
  int32_t values[2] = {1, 10};
  if (work(values) || early_failures) {
    snprintf(buffer, capacity, "%d early failures; %s\n", early_failures, vt_last_error()->message);
    return 1;
  }
  size_t used = (size_t)snprintf(buffer, capacity, "version %d, sums %d %d\n", vt_version(), values[0], values[1]);
  for (vt_device_type type = 0; type < VT_DEVICE_TYPE_COUNT && used < capacity; type++) {
    int32_t count = 0;
    (void)vt_device_get_count(type, &count);
    used += (size_t)snprintf(ROOM, "%s: %d devices\n", vt_device_type_get_name(type), count);
  }
  for (vt_op_id op = 0; op < 64 && used < capacity; op++) {
    if (vt_op_get_name(op) != NULL) {
      used += vt_op_explain(op, VT_DEVICE_CPU, NULL, NULL, ROOM);
    }
  }
  return used < capacity ? 0 : 1;
}
