// copy.c: copies, batches of them, and blocks of rows: each is one command.
#include <string.h>

#include "base/recycle.h"
#include "cpu/cpu.h"

vt_status vt__cpu_copy(void *self, void *queue, void *dst, const void *src, size_t bytes) {
  (void)self;
  if (VT_LIKELY(vt__cpu_begin_plain(queue))) {
    memcpy(dst, src, bytes);
    return VT_OK;
  }
  vt__cpu_command command = {.kind = VT__CPU_COPY, .u.copy = {.dst = dst, .src = src, .bytes = bytes}};
  return vt__cpu_submit(queue, &command);
}

// Whether a command of this thread is over when its submission returns.
static bool runs_at_once(vt__cpu_queue *queue) {
  return queue->timeline == NULL && vt__cpu_recording(queue) == NULL;
}

vt_status vt__cpu_copy_batch(void *self, void *queue, const vt_copy_op *ops, size_t count) {
  (void)self;
  vt__cpu_command command = {.kind = VT__CPU_COPY_BATCH, .u.batch = {.ops = ops, .count = count}};
  if (!runs_at_once(queue)) {
    void *kept = vt__recycle_get(count * sizeof(*ops));
    if (kept == NULL) {
      return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, "vt_copy_batch", "no memory to keep %zu copies", count);
    }
    command.u.batch.kept = kept;
    command.u.batch.ops = memcpy(kept, ops, count * sizeof(*ops));
  }
  return vt__cpu_submit(queue, &command);
}

vt_status vt__cpu_copy_2d(void *self, void *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                          size_t rows) {
  (void)self;
  vt__cpu_command command = {
      .kind = VT__CPU_COPY_2D,
      .u.copy_2d = {.dst = dst, .src = src, .dst_pitch = dst_pitch, .src_pitch = src_pitch, .width = width, .rows = rows}};
  return vt__cpu_submit(queue, &command);
}

static void run_batch(const vt_copy_op *ops, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (ops[i].bytes != 0) {
      memcpy(ops[i].dst, ops[i].src, ops[i].bytes);
    }
  }
}

static void run_rows(const vt__cpu_command *command) {
  for (size_t row = 0; row < command->u.copy_2d.rows; row++) {
    memcpy(command->u.copy_2d.dst + row * command->u.copy_2d.dst_pitch, command->u.copy_2d.src + row * command->u.copy_2d.src_pitch,
           command->u.copy_2d.width);
  }
}

void vt__cpu_copy_run(const vt__cpu_command *command) {
  if (command->kind == VT__CPU_COPY_BATCH) {
    run_batch(command->u.batch.ops, command->u.batch.count);
  } else {
    run_rows(command);
  }
}

uint64_t vt__cpu_copy_bytes(const vt__cpu_command *command) {
  if (command->kind == VT__CPU_COPY_2D) {
    return command->u.copy_2d.width * command->u.copy_2d.rows;
  }
  uint64_t bytes = 0;
  for (size_t i = 0; i < command->u.batch.count; i++) {
    bytes += command->u.batch.ops[i].bytes;
  }
  return bytes;
}
