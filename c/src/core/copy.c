// copy.c: copies: checks, then one method of the backend, or several of those that lack the one.
#include "core/copy_check.h"
#include "core/queue.h"
#include "core/validate.h"

static vt_status copy_in_backend(vt_queue *queue, void *dst, const void *src, size_t bytes) {
  const vt_backend *backend = queue->backend;
  uint64_t serial = vt__error_serial();
  return vt__backend_failed(backend, "copy", backend->ops.copy(backend->self, queue->native, dst, src, bytes), serial);
}

vt_status vt_copy(vt_queue *queue, void *dst, const void *src, size_t bytes) {
  VT_TRY(vt__queue_check_submit(queue, __func__));
  if (bytes == 0) {
    return vt__queue_submit_nothing(queue);
  }
  vt__use uses[] = {{dst, bytes, VT_TOUCH_WRITE}, {src, bytes, VT_TOUCH_READ}};
  bool validates = vt__validate_is_on();
  vt_status status = vt__copy_check(dst, src, bytes);
  if (status == VT_OK) {
    if (validates) {
      vt__validate_check(queue, uses, 2, VT__HERE);
    }
    status = copy_in_backend(queue, dst, src, bytes);
  }
  status = vt__queue_submitted(queue, status, VT__CALLER);
  if (validates && status == VT_OK) {
    vt__validate_note(queue, uses, 2, VT__HERE);
  }
  return status;
}

static vt_status copy_one_by_one(vt_queue *queue, const vt_copy_op *ops, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (ops[i].bytes != 0) {
      VT_TRY(copy_in_backend(queue, ops[i].dst, ops[i].src, ops[i].bytes));
    }
  }
  return VT_OK;
}

static vt_status copy_batch(vt_queue *queue, const vt_copy_op *ops, size_t count) {
  const vt_backend *backend = queue->backend;
  if (backend->ops.copy_batch == NULL) {
    return copy_one_by_one(queue, ops, count);
  }
  uint64_t serial = vt__error_serial();
  vt_status status = backend->ops.copy_batch(backend->self, queue->native, ops, count);
  return vt__backend_failed(backend, "copy_batch", status, serial);
}

vt_status vt_copy_batch(vt_queue *queue, const vt_copy_op *ops, size_t count) {
  bool empty = false;
  VT_TRY(vt__queue_check_submit(queue, __func__));
  bool validates = vt__validate_is_on();
  vt_status status = vt__copy_batch_check(ops, count, &empty);
  if (status == VT_OK) {
    if (empty) {
      return vt__queue_submit_nothing(queue);
    }
    if (validates) {
      vt__validate_batch(vt__validate_check, queue, ops, count, VT__HERE);
    }
    status = copy_batch(queue, ops, count);
  }
  status = vt__queue_submitted(queue, status, VT__CALLER);
  if (validates && status == VT_OK) {
    vt__validate_batch(vt__validate_note, queue, ops, count, VT__HERE);
  }
  return status;
}

static vt_status copy_row_by_row(vt_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                                 size_t rows) {
  for (size_t row = 0; row < rows; row++) {
    VT_TRY(copy_in_backend(queue, (char *)dst + row * dst_pitch, (const char *)src + row * src_pitch, width));
  }
  return VT_OK;
}

static vt_status copy_2d(vt_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                         size_t rows) {
  const vt_backend *backend = queue->backend;
  if (rows == 1 || (dst_pitch == width && src_pitch == width)) {
    return copy_in_backend(queue, dst, src, rows * width);
  }
  if (backend->ops.copy_2d == NULL) {
    return copy_row_by_row(queue, dst, dst_pitch, src, src_pitch, width, rows);
  }
  uint64_t serial = vt__error_serial();
  vt_status status = backend->ops.copy_2d(backend->self, queue->native, dst, dst_pitch, src, src_pitch, width, rows);
  return vt__backend_failed(backend, "copy_2d", status, serial);
}

vt_status vt_copy_2d(vt_queue *queue, void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t rows) {
  VT_TRY(vt__queue_check_submit(queue, __func__));
  if (width == 0 || rows == 0) {
    return vt__queue_submit_nothing(queue);
  }
  bool validates = vt__validate_is_on();
  vt_status status = vt__copy_2d_check(dst, dst_pitch, src, src_pitch, width, rows);
  if (status == VT_OK) {
    if (validates) {
      vt__validate_2d(vt__validate_check, queue, &(vt__rows){dst, dst_pitch}, &(vt__rows){src, src_pitch}, width, rows, VT__HERE);
    }
    status = copy_2d(queue, dst, dst_pitch, src, src_pitch, width, rows);
  }
  status = vt__queue_submitted(queue, status, VT__CALLER);
  if (validates && status == VT_OK) {
    vt__validate_2d(vt__validate_note, queue, &(vt__rows){dst, dst_pitch}, &(vt__rows){src, src_pitch}, width, rows, VT__HERE);
  }
  return status;
}
