// validate_copy.c: the ranges of copies that have many.
#include "base/recycle.h"
#include "core/validate.h"

// Without memory for the list, this one operation is not followed.
void vt__validate_batch(vt__validate_step step, vt_queue *queue, const vt_copy_op *ops, size_t count, vt__call_site site) {
  vt__use *uses = vt__recycle_get(2 * count * sizeof(*uses));
  for (size_t i = 0; uses != NULL && i < count; i++) {
    uses[2 * i] = (vt__use){ops[i].dst, ops[i].bytes, VT_TOUCH_WRITE};
    uses[2 * i + 1] = (vt__use){ops[i].src, ops[i].bytes, VT_TOUCH_READ};
  }
  step(queue, uses, uses == NULL ? 0 : 2 * count, site);
  vt__recycle_put(uses);
}

void vt__validate_2d(vt__validate_step step, vt_queue *queue, const vt__rows *dst, const vt__rows *src, size_t width, size_t rows,
                     vt__call_site site) {
  bool is_whole = dst->pitch == width && src->pitch == width;
  size_t count = is_whole ? 1 : rows;
  size_t bytes = is_whole ? rows * width : width;
  vt__use *uses = vt__recycle_get(2 * count * sizeof(*uses));
  for (size_t i = 0; uses != NULL && i < count; i++) {
    uses[2 * i] = (vt__use){(const char *)dst->base + i * dst->pitch, bytes, VT_TOUCH_WRITE};
    uses[2 * i + 1] = (vt__use){(const char *)src->base + i * src->pitch, bytes, VT_TOUCH_READ};
  }
  step(queue, uses, uses == NULL ? 0 : 2 * count, site);
  vt__recycle_put(uses);
}
