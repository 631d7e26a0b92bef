// harness_resource.c: what a case is given, and the search for what it left behind.
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>

#define CANARY_BYTES 64
#define CANARY_VALUE 0xc5

vt_device vt_test_device(vt_case *c) {
  return (vt_device){c->row->device_type, 0};
}

const char *vt_test_row(vt_case *c) {
  return c->row->name;
}

int vt_test_has(vt_case *c, uint32_t needs) {
  return (c->row->offers & needs) == needs;
}

vt_queue_options vt_test_queue_options(vt_case *c) {
  vt_queue_options options = VT_QUEUE_OPTIONS_INIT;
  options.flags = c->row->queue_flags;
  return options;
}

static void must(vt_case *c, vt_status status, const char *what) {
  if (status != VT_OK) {
    vt_test_give_up(c, what);
  }
}

void vt_test_defer(vt_case *c, void (*fn)(void *arg), void *arg) {
  vt_test_item *item = malloc(sizeof(*item));
  if (item == NULL) {
    vt_test_give_up(c, "no memory");
  }
  *item = (vt_test_item){.fn = fn, .arg = arg};
  pthread_mutex_lock(&c->mutex);
  item->next = c->items;
  c->items = item;
  pthread_mutex_unlock(&c->mutex);
}

static void end_log(void *unused) {
  (void)unused;
  vt_log_set(NULL, NULL, VT_LOG_OFF);
}

void vt_test_log(vt_case *c, vt_log_fn fn, void *user, vt_log_level level) {
  vt_test_defer(c, end_log, NULL);
  EXPECT_OK(c, vt_log_set(fn, user, level));
}

static void release_queue(void *queue) {
  vt_queue_release(queue);
}
static void release_event(void *event) {
  vt_event_release(event);
}
static void release_arena(void *arena) {
  vt_arena_release(arena);
}
static void release_group(void *group) {
  vt_comm_group_release(group);
}

static vt_queue *make_queue(vt_case *c, vt_device device, const vt_queue_options *options) {
  vt_queue *queue;
  must(c, vt_queue_create(device, options, &queue), "vt_queue_create");
  vt_test_defer(c, release_queue, queue);
  return queue;
}

vt_queue *vt_test_queue_with(vt_case *c, const vt_queue_options *options) {
  return make_queue(c, vt_test_device(c), options);
}

vt_queue *vt_test_queue_on(vt_case *c, vt_device device) {
  vt_queue_options options = vt_test_queue_options(c);
  return make_queue(c, device, &options);
}

vt_queue *vt_test_queue(vt_case *c) {
  return vt_test_queue_on(c, vt_test_device(c));
}

vt_event *vt_test_event(vt_case *c, uint32_t flags) {
  vt_event *event;
  must(c, vt_event_create(vt_test_device(c), flags, &event), "vt_event_create");
  vt_test_defer(c, release_event, event);
  return event;
}

vt_arena *vt_test_arena(vt_case *c, size_t capacity) {
  vt_arena *arena;
  must(c, vt_arena_create(vt_test_device(c), capacity, &arena), "vt_arena_create");
  vt_test_defer(c, release_arena, arena);
  return arena;
}

vt_comm_group *vt_test_group(vt_case *c, int32_t world, const vt_comm_group_options *options) {
  vt_comm_group *group;
  must(c, vt_comm_group_create(world, options, &group), "vt_comm_group_create");
  vt_test_defer(c, release_group, group);
  vt_test_watch_group(c, group);
  return group;
}

static void note_block(vt_case *c, vt_test_block block) {
  vt_test_block *kept = malloc(sizeof(*kept));
  if (kept == NULL) {
    vt_test_give_up(c, "no memory");
  }
  *kept = block;
  pthread_mutex_lock(&c->mutex);
  kept->next = c->blocks;
  c->blocks = kept;
  pthread_mutex_unlock(&c->mutex);
}

void *vt_test_alloc(vt_case *c, size_t bytes) {
  void *ptr;
  must(c, vt_alloc(vt_test_device(c), bytes, &ptr), "vt_alloc");
  memset(ptr, 0, bytes);
  note_block(c, (vt_test_block){.kind = VT_MEMORY_DEVICE, .ptr = ptr, .bytes = bytes});
  return ptr;
}

void *vt_test_pinned(vt_case *c, size_t bytes) {
  void *ptr;
  must(c, vt_pinned_alloc(vt_test_device(c), bytes, &ptr), "vt_pinned_alloc");
  memset(ptr, 0, bytes);
  note_block(c, (vt_test_block){.kind = VT_MEMORY_PINNED, .ptr = ptr, .bytes = bytes});
  return ptr;
}

void *vt_test_guarded_alloc_at(vt_case *c, size_t bytes, size_t misalign) {
  size_t whole = (CANARY_BYTES + 64 + bytes + CANARY_BYTES + 63) / 64 * 64;
  unsigned char *base = aligned_alloc(64, whole);
  if (base == NULL) {
    vt_test_give_up(c, "no memory");
  }
  unsigned char *ptr = base + CANARY_BYTES + misalign % 64;
  memset(base, CANARY_VALUE, whole);
  memset(ptr, 0, bytes);
  note_block(c, (vt_test_block){.kind = VT_TEST_HOST, .ptr = ptr, .base = base, .bytes = bytes});
  return ptr;
}

void *vt_test_guarded_alloc(vt_case *c, size_t bytes) {
  return vt_test_guarded_alloc_at(c, bytes, 0);
}

static int canaries_are_whole(vt_case *c, const vt_test_block *block) {
  const unsigned char *ptr = block->ptr;
  for (size_t i = 1; i <= CANARY_BYTES; i++) {
    if (ptr[-(ptrdiff_t)i] != CANARY_VALUE) {
      return FAIL_CASE(c, "a block of %zu bytes was written %zu bytes before its begin", block->bytes, i);
    }
    if (ptr[block->bytes + i - 1] != CANARY_VALUE) {
      return FAIL_CASE(c, "a block of %zu bytes was written %zu bytes behind its end", block->bytes, i);
    }
  }
  return 1;
}

int vt_test_guarded_check(vt_case *c, const void *ptr) {
  pthread_mutex_lock(&c->mutex);
  vt_test_block *block = c->blocks;
  while (block != NULL && block->ptr != ptr) {
    block = block->next;
  }
  pthread_mutex_unlock(&c->mutex);
  return block == NULL ? FAIL_CASE(c, "%p is not a guarded block", ptr) : canaries_are_whole(c, block);
}

// The places where memory is counted: four CPU devices and the plug-in's, device and pinned memory each.
static uint64_t live_blocks(size_t slot) {
  static const vt_device devices[VT_TEST_MEMORY_SLOTS / 2] = {
      {VT_DEVICE_CPU, 0}, {VT_DEVICE_CPU, 1}, {VT_DEVICE_CPU, 2}, {VT_DEVICE_CPU, 3}, {VT_DEVICE_METAL, 0}};
  vt_memory_stats stats = VT_MEMORY_STATS_INIT;
  return vt_memory_get_stats(devices[slot / 2], slot % 2 == 0 ? VT_MEMORY_DEVICE : VT_MEMORY_PINNED, &stats) == VT_OK
             ? stats.live_count
             : 0;
}

void vt_test_census_take(vt_test_census *census) {
  for (int32_t kind = 0; kind < VT_HANDLE_KIND_COUNT; kind++) {
    census->handles[kind] = vt_handle_get_live_count(kind);
  }
  for (size_t slot = 0; slot < VT_TEST_MEMORY_SLOTS; slot++) {
    census->blocks[slot] = live_blocks(slot);
  }
}

// Queues run their last work behind the caller's back, so their number comes down a little later.
static void await_handles(vt_case *c) {
  static const char *const names[VT_HANDLE_KIND_COUNT] = {"queues", "events", "graphs", "arenas", "communicators", "groups"};
  uint64_t deadline = vt_test_now_ns() + c->grace_ns;
  for (int32_t kind = 0; kind < VT_HANDLE_KIND_COUNT; kind++) {
    while (vt_handle_get_live_count(kind) != c->before.handles[kind] && vt_test_now_ns() < deadline) {
      vt_test_sleep_ns(100000);
    }
    size_t live = vt_handle_get_live_count(kind);
    if (live != c->before.handles[kind]) {
      FAIL_CASE(c, "%zu %s alive before the case, %zu after it", c->before.handles[kind], names[kind], live);
    }
  }
}

static void free_block(vt_case *c, vt_test_block *block) {
  if (block->kind == VT_TEST_HOST) {
    canaries_are_whole(c, block);
    free(block->base);
  } else if (block->kind == VT_MEMORY_PINNED) {
    EXPECT_OK(c, vt_pinned_free(vt_test_device(c), block->ptr));
  } else {
    EXPECT_OK(c, vt_free(vt_test_device(c), block->ptr));
  }
  free(block);
}

void vt_test_clean_up(vt_case *c) {
  while (c->items != NULL) {
    vt_test_item *item = c->items;
    c->items = item->next;
    item->fn(item->arg);
    free(item);
  }
  await_handles(c);
  while (c->blocks != NULL) {
    vt_test_block *block = c->blocks;
    c->blocks = block->next;
    free_block(c, block);
  }
  for (size_t slot = 0; slot < VT_TEST_MEMORY_SLOTS; slot++) {
    uint64_t live = live_blocks(slot);
    if (live != c->before.blocks[slot]) {
      FAIL_CASE(c, "%llu blocks of memory (place %zu) before the case, %llu after it", (unsigned long long)c->before.blocks[slot],
                slot, (unsigned long long)live);
    }
  }
}
