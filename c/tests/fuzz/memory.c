// memory.c: the pool, memory with options, and the validation layer.
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

static vt_device device_of(int index) {
  return (vt_device){VT_DEVICE_CPU, index};
}

// What a call answers that is refused while this thread has a capture open; on a queue of the capture that fails it.
static uint32_t outside_captures(stream *s, int index, uint32_t allowed) {
  if (!stream_is_capturing(s)) {
    return allowed;
  }
  model_refused(&s->captures, index, VT_ERR_FAILED_PRECONDITION);
  return FUZZ_MOMENT;
}

static void take_pooled(memory *m, stream *s, int index, pooled *block, fuzz_input *in) {
  static const size_t sizes[] = {0, 1, 64, 1000, 4096, 70000, (1 << 20) + 1, SIZE_MAX - 5};
  stream_queue *q = &s->queues[index];
  size_t bytes = sizes[fuzz_below(in, 8)];
  uint32_t allowed = outside_captures(s, index, bytes > SIZE_MAX / 2 ? FUZZ_MEMORY : FUZZ_OK);
  if (CALL(allowed, vt_alloc_async(q->queue, bytes, &block->ptr)) != VT_OK) {
    MUST(block->ptr == NULL);
    return;
  }
  MUST((uintptr_t)block->ptr % 64 == 0);
  block->bytes = bytes;
  block->user = q->queue;
  block->device = q->device;
  m->requested[q->device] += bytes;
  // Pending use, so that what is given back too early is written to.
  CALL(stream_possible(q), vt_memset(q->queue, block->ptr, 9, bytes < 5000 ? bytes : 5000));
}

// On a queue that doesn't come after the block's use, or on the host, the use must be over.
static void give_pooled(memory *m, stream *s, int index, pooled *block, fuzz_input *in) {
  stream_queue *q = &s->queues[index];
  int by_host = fuzz_byte(in) & 1;
  if (by_host || q->queue != block->user) {
    stream_settle(s);
  }
  int fits = q->device == block->device;
  vt_status status;
  if (by_host) {
    status = CALL(stream_is_capturing(s) ? FUZZ_MOMENT : FUZZ_OK, vt_free(device_of(block->device), block->ptr));
  } else {
    uint32_t allowed = outside_captures(s, index, fits ? FUZZ_OK : FUZZ_INVALID);
    status = CALL(allowed, vt_free_async(q->queue, block->ptr));
  }
  if (status != VT_OK) {
    return;
  }
  m->requested[block->device] -= block->bytes;
  CALL(FUZZ_INVALID, vt_free_async(q->queue, block->ptr));
  block->ptr = NULL;
}

static void step_pooled(memory *m, stream *s, int index, fuzz_input *in) {
  pooled *block = &m->pooled[fuzz_below(in, MEMORY_BLOCKS)];
  if (block->ptr == NULL) {
    take_pooled(m, s, index, block, in);
  } else {
    give_pooled(m, s, index, block, in);
  }
}

static void step_pool(const memory *m, const stream *s, fuzz_input *in) {
  int index = fuzz_byte(in) & 1;
  size_t bytes = (size_t)fuzz_byte(in) << 10;
  uint32_t allowed = stream_is_capturing(s) ? FUZZ_MOMENT : FUZZ_OK;
  if ((fuzz_byte(in) & 1) != 0) {
    CALL(allowed, vt_pool_trim(device_of(index), bytes));
  } else {
    CALL(allowed, vt_pool_set_limit(device_of(index), bytes));
  }
  CALL(stream_is_capturing(s) ? FUZZ_MOMENT : FUZZ_NOT_FOUND, vt_pool_trim((vt_device){VT_DEVICE_XPU, 15}, 0));
  vt_pool_stats stats = VT_POOL_STATS_INIT;
  CALL(FUZZ_OK, vt_pool_get_stats(device_of(index), &stats));
  MUST(stats.requested_bytes == m->requested[index] && stats.used_bytes >= stats.requested_bytes);
}

static vt_status give_plain(const plain_block *block) {
  return block->kind == VT_MEMORY_PINNED ? vt_pinned_free(device_of(0), block->ptr) : vt_free(device_of(0), block->ptr);
}

static void take_plain(plain_block *block, const stream *s, fuzz_input *in) {
  vt_alloc_options options = VT_ALLOC_OPTIONS_INIT;
  options.kind = fuzz_below(in, 3);
  options.flags = fuzz_below(in, 5);
  options.numa_node = (int32_t)fuzz_below(in, 5) - 2;
  size_t bytes = (size_t)fuzz_byte(in) << fuzz_below(in, 10);
  int wrong = options.kind > VT_MEMORY_PINNED || options.flags > 3 || options.numa_node < -1;
  uint32_t allowed = stream_is_capturing(s) ? FUZZ_MOMENT : FUZZ_OK;
  if (wrong) {
    allowed = stream_is_capturing(s) ? FUZZ_MOMENT | FUZZ_INVALID : FUZZ_INVALID;
  }
  if (CALL(allowed, vt_alloc_with(device_of(0), bytes, &options, &block->ptr)) == VT_OK) {
    *block = (plain_block){.ptr = block->ptr, .bytes = bytes, .kind = options.kind, .flags = options.flags};
    memset(block->ptr, 3, bytes);
  }
}

static void step_plain(memory *m, const stream *s, fuzz_input *in) {
  plain_block *block = &m->plain[fuzz_below(in, MEMORY_BLOCKS)];
  if (block->ptr == NULL) {
    take_plain(block, s, in);
    return;
  }
  vt_memory_info info = VT_MEMORY_INFO_INIT;
  CALL(FUZZ_OK, vt_memory_get_info(device_of(0), block->ptr, &info));
  MUST(info.bytes == block->bytes && info.kind == block->kind && (info.flags & ~block->flags) == 0);
  CALL(FUZZ_INVALID, vt_memory_get_info(device_of(1), block->ptr, &info));
  int32_t fd = -1;
  size_t offset = 0;
  size_t bytes = 0;
  int shareable = (block->flags & VT_ALLOC_SHAREABLE) != 0;
  if (CALL(shareable ? FUZZ_OK : FUZZ_INVALID, vt_memory_export_fd(device_of(0), block->ptr, &fd, &offset, &bytes)) == VT_OK) {
    MUST(bytes >= block->bytes && close(fd) == 0);
  }
  if (CALL(stream_is_capturing(s) ? FUZZ_MOMENT : FUZZ_OK, give_plain(block)) == VT_OK) {
    CALL(FUZZ_INVALID, vt_memory_export_fd(device_of(0), block->ptr, &fd, &offset, &bytes));
    block->ptr = NULL;
  }
}

static void take_report(void *user, const vt_validate_report *report) {
  (void)user;
  MUST(report->message != NULL && report->message[0] != 0 && vt_validate_kind_get_name(report->kind) != NULL);
}

static void step_validation(fuzz_input *in) {
  uint8_t what = fuzz_byte(in);
  vt_validate_set((what & 4) != 0 ? take_report : NULL, NULL);
  CALL(FUZZ_OK, (what & 3) != 0 ? vt_validate_enable() : vt_validate_disable());
  MUST(vt_validate_is_enabled() == ((what & 3) != 0));
}

// Ranges of live and dead memory: declaring a use reads nothing.
static void step_touch(const memory *m, stream *s, int index, fuzz_input *in) {
  const stream_queue *q = &s->queues[index];
  const unsigned char *from =
      (fuzz_byte(in) & 1) != 0 ? m->pooled[fuzz_below(in, MEMORY_BLOCKS)].ptr : q->buffers[fuzz_byte(in) & 1];
  size_t bytes = fuzz_byte(in);
  uint32_t mode = fuzz_below(in, 5);
  uint32_t allowed = mode == 0 || mode > 3 || (from == NULL && bytes != 0) ? FUZZ_INVALID : FUZZ_OK;
  if ((fuzz_byte(in) & 1) != 0) {
    CALL(allowed, vt_validate_touch(q->queue, from, bytes, mode));
  } else {
    CALL(allowed, vt_validate_host_access(from, bytes, mode));
  }
}

static void step_bad_copy(stream *s, int index, fuzz_input *in) {
  stream_queue *q = &s->queues[index];
  unsigned char *to = q->buffers[0];
  unsigned char *from = q->buffers[1];
  vt_copy_op ops[3] = {{to, from, 8}, {to + 16, from + 16, 8}, {to + fuzz_below(in, 8), from + 32, 8}};
  switch (fuzz_below(in, 4)) {
    case 0:
      CALL(FUZZ_INVALID, vt_copy_batch(q->queue, ops, 3));
      break;
    case 1:
      ops[1].src = NULL;
      CALL(FUZZ_INVALID, vt_copy_batch(q->queue, ops, 2));
      break;
    case 2:
      CALL(FUZZ_INVALID, vt_copy_2d(q->queue, to, 7, from, 8, 8, 2 + (size_t)fuzz_below(in, 3)));
      break;
    default:
      CALL(FUZZ_INVALID, vt_copy_2d(q->queue, to, 16, from, SIZE_MAX / 2, 8, 3 + (size_t)fuzz_below(in, 3)));
  }
  model_refused(&s->captures, index, VT_ERR_INVALID_ARGUMENT);
}

void memory_step(memory *m, stream *s, fuzz_input *in) {
  uint8_t what = fuzz_below(in, 12);
  int index = fuzz_below(in, MODEL_QUEUES);
  if (what < 1) {
    step_pool(m, s, in);
  } else if (what < 3) {
    step_plain(m, s, in);
  } else if (what < 4) {
    step_validation(in);
  } else if (s->queues[index].queue == NULL) {
    return;
  } else if (what < 9) {
    step_pooled(m, s, index, in);
  } else if (what < 11) {
    step_touch(m, s, index, in);
  } else {
    step_bad_copy(s, index, in);
  }
}

// The queues have gone, and their work is over.
void memory_end(memory *m) {
  fuzz_await_handles(VT_HANDLE_QUEUE, 0);
  CALL(FUZZ_OK, vt_validate_disable());
  vt_validate_set(NULL, NULL);
  for (int i = 0; i < MEMORY_BLOCKS; i++) {
    if (m->pooled[i].ptr != NULL) {
      CALL(FUZZ_OK, vt_free(device_of(m->pooled[i].device), m->pooled[i].ptr));
    }
    if (m->plain[i].ptr != NULL) {
      CALL(FUZZ_OK, give_plain(&m->plain[i]));
    }
  }
  for (int index = 0; index < 2; index++) {
    vt_pool_stats stats = VT_POOL_STATS_INIT;
    CALL(FUZZ_OK, vt_pool_set_limit(device_of(index), VT_POOL_DEFAULT_LIMIT));
    CALL(FUZZ_OK, vt_pool_trim(device_of(index), 0));
    CALL(FUZZ_OK, vt_pool_get_stats(device_of(index), &stats));
    MUST(stats.used_bytes == 0 && stats.cached_bytes == 0);
  }
}
