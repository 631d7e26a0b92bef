// pool.c: allocation in stream order.
#include "faults.h"

static const vt_device cpu = {VT_DEVICE_CPU, 0};

// A block that can't be noted for its queue is kept apart until it may be used again: the caller doesn't see it.
static void use_pool(vt_queue *queue) {
  void *blocks[3];
  vt_pool_stats stats = VT_POOL_STATS_INIT;
  for (int i = 0; i < 3; i++) {
    DO_EITHER(vt_alloc_async, (queue, 1000, &blocks[i]));  // what is kept is given up, and the device asked again
  }
  DO_ANYWAY(vt_free_async, (queue, blocks[0]));
  DO_EITHER(vt_alloc_async, (queue, 100000, &blocks[0]));
  for (int i = 0; i < 3; i++) {
    DO_ANYWAY(vt_free_async, (queue, blocks[i]));
  }
  ASK(vt_queue_synchronize, (queue));
  ASK(vt_pool_get_stats, (cpu, &stats));
  SURE(stats.used_bytes == 0);
  // With its pool at hand, the device gives everything back.
  ASK(vt_pool_trim, (cpu, 0));
  ASK(vt_pool_get_stats, (cpu, &stats));
  SURE(stats.cached_bytes == 0);
  TELL(vt_queue_release, (queue));
}

static void sync_pool(int pass) {
  (void)pass;
  use_pool(fault_queue(cpu, 0));
}

static void async_pool(int pass) {
  vt_queue *queue = fault_queue(cpu, VT_QUEUE_ASYNC);
  char byte;
  (void)pass;
  DO(vt_memset, (queue, &byte, 0, 1));
  use_pool(queue);
}

static void limited_pool(int pass) {
  (void)pass;
  DO(vt_pool_set_limit, (cpu, 0));
  use_pool(fault_queue(cpu, 0));
  ASK(vt_pool_set_limit, (cpu, VT_POOL_DEFAULT_LIMIT));
}

static void trimmed_pool(int pass) {
  (void)pass;
  DO(vt_pool_trim, (cpu, 0));
}

const scenario fault_scenarios_pool[] = {{"sync_pool", sync_pool, false},
                                         {"async_pool", async_pool, false},
                                         {"limited_pool", limited_pool, false},
                                         {"trimmed_pool", trimmed_pool, false},
                                         {NULL, NULL, false}};
