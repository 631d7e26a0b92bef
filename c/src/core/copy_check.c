// copy_check.c: see copy_check.h.
//
// A batch is an operation without an order of its own, so no destination may share a byte with another one or with any source.
// Batches that are written in order and lie apart from their sources, as pages on their way out do, are seen to be right in one
// pass; for others the ranges are sorted.
#include "core/copy_check.h"

#include <stdint.h>

#include "base/macros.h"
#include "base/recycle.h"
#include "core/error.h"

#define refuse(function, ...) vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, (function), __VA_ARGS__)

vt_status vt__copy_check(const void *dst, const void *src, size_t bytes) {
  if (dst == NULL || src == NULL) {
    return refuse("vt_copy", "%s is NULL", dst == NULL ? "dst" : "src");
  }
  if (vt__overlaps(dst, bytes, src, bytes)) {
    return refuse("vt_copy", "dst %p and src %p overlap in a copy of %zu bytes", dst, src, bytes);
  }
  return VT_OK;
}

// One end of an entry.
typedef struct range {
  uintptr_t begin;
  uintptr_t end;
  size_t who;  // twice the index; one more for a destination
} range;

static range range_of(const vt_copy_op *ops, size_t index, size_t is_dst) {
  uintptr_t begin = is_dst != 0 ? (uintptr_t)ops[index].dst : (uintptr_t)ops[index].src;
  return (range){begin, begin + ops[index].bytes, 2 * index + is_dst};
}

static const char *side_of(const range *r) {
  return r->who % 2 != 0 ? "dst" : "src";
}

static vt_status check_entry(const vt_copy_op *op, size_t index) {
  if (op->dst == NULL || op->src == NULL) {
    return refuse("vt_copy_batch", "ops[%zu].%s is NULL, with %zu bytes", index, op->dst == NULL ? "dst" : "src", op->bytes);
  }
  if (op->bytes > UINTPTR_MAX - (uintptr_t)op->dst || op->bytes > UINTPTR_MAX - (uintptr_t)op->src) {
    return refuse("vt_copy_batch", "ops[%zu].bytes is %zu: that goes past the end of all memory", index, op->bytes);
  }
  return VT_OK;
}

// What one pass over a batch finds.
typedef struct survey {
  size_t entries;  // with bytes
  bool ascending;  // each destination lies behind the one before
  range all_dst;
  range all_src;
} survey;

static void widen(range *all, const range *r) {
  all->begin = r->begin < all->begin ? r->begin : all->begin;
  all->end = r->end > all->end ? r->end : all->end;
}

static vt_status look_over(const vt_copy_op *ops, size_t count, survey *out) {
  *out = (survey){.ascending = true, .all_dst = {.begin = UINTPTR_MAX}, .all_src = {.begin = UINTPTR_MAX}};
  for (size_t i = 0; i < count; i++) {
    if (ops[i].bytes == 0) {
      continue;
    }
    VT_TRY(check_entry(&ops[i], i));
    range dst = range_of(ops, i, 1);
    range src = range_of(ops, i, 0);
    out->ascending &= dst.begin >= out->all_dst.end;
    widen(&out->all_dst, &dst);
    widen(&out->all_src, &src);
    out->entries++;
  }
  return VT_OK;
}

// Merges two sorted neighbours of `from` into `to`.
static void merge(const range *from, size_t middle, size_t end, range *to) {
  size_t left = 0;
  size_t right = middle;
  for (size_t i = 0; i < end; i++) {
    bool take_left = right == end || (left < middle && from[left].begin <= from[right].begin);
    to[i] = take_left ? from[left++] : from[right++];
  }
}

// Sorts by begin, with room for as many behind them. Answers where the sorted ones are.
static const range *sort(range *ranges, size_t count) {
  range *from = ranges;
  range *to = ranges + count;
  for (size_t run = 1; run < count; run *= 2) {
    for (size_t at = 0; at < count; at += 2 * run) {
      merge(from + at, vt__min_size(run, count - at), vt__min_size(2 * run, count - at), to + at);
    }
    range *swap = from;
    from = to;
    to = swap;
  }
  return from;
}

static vt_status refuse_overlap(const range *a, const range *b) {
  return refuse("vt_copy_batch", "ops[%zu].%s %p (%zu bytes) and ops[%zu].%s %p (%zu bytes) overlap", a->who / 2, side_of(a),
                (void *)a->begin, (size_t)(a->end - a->begin), b->who / 2, side_of(b), (void *)b->begin,
                (size_t)(b->end - b->begin));
}

// Of the ranges that began before, the one that reaches farthest is the one that overlaps, if any does.
static vt_status sweep(const range *sorted, size_t count) {
  range farthest = {0};
  range farthest_dst = {0};
  for (size_t i = 0; i < count; i++) {
    const range *r = &sorted[i];
    bool is_dst = r->who % 2 != 0;
    const range *before = is_dst ? &farthest : &farthest_dst;
    if (r->begin < before->end) {
      return refuse_overlap(before, r);
    }
    farthest = r->end > farthest.end ? *r : farthest;
    farthest_dst = is_dst && r->end > farthest_dst.end ? *r : farthest_dst;
  }
  return VT_OK;
}

static size_t gather(const vt_copy_op *ops, size_t count, bool with_src, range *out) {
  size_t found = 0;
  for (size_t i = 0; i < count; i++) {
    if (ops[i].bytes != 0) {
      out[found++] = range_of(ops, i, 1);
      if (with_src) {
        out[found++] = range_of(ops, i, 0);
      }
    }
  }
  return found;
}

vt_status vt__copy_batch_check(const vt_copy_op *ops, size_t count, bool *out_empty) {
  if (ops == NULL && count != 0) {
    return refuse("vt_copy_batch", "ops is NULL, with a count of %zu", count);
  }
  survey seen;
  VT_TRY(look_over(ops, count, &seen));
  *out_empty = seen.entries == 0;
  bool apart = seen.all_dst.end <= seen.all_src.begin || seen.all_src.end <= seen.all_dst.begin;
  if (seen.entries == 0 || (apart && seen.ascending)) {
    return VT_OK;
  }
  size_t ranges = apart ? seen.entries : 2 * seen.entries;
  range *room = vt__recycle_get(2 * ranges * sizeof(*room));
  if (room == NULL) {
    return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, "vt_copy_batch", "no memory to compare the ranges of %zu copies",
                        seen.entries);
  }
  (void)gather(ops, count, !apart, room);
  vt_status status = sweep(sort(room, ranges), ranges);
  vt__recycle_put(room);
  return status;
}

// The bytes from the first one of the first row to the last one of the last row.
static bool extent_of(const void *base, size_t pitch, size_t width, size_t rows, size_t *out) {
  size_t before;
  return !vt__mul_overflows(pitch, rows - 1, &before) && !__builtin_add_overflow(before, width, out) &&
         *out <= UINTPTR_MAX - (uintptr_t)base;
}

static vt_status check_side(const char *side, const void *base, size_t pitch, size_t width, size_t rows, size_t *out_extent) {
  if (base == NULL) {
    return refuse("vt_copy_2d", "%s is NULL", side);
  }
  if (pitch < width) {
    return refuse("vt_copy_2d", "%s_pitch is %zu, less than the width of %zu bytes", side, pitch, width);
  }
  if (!extent_of(base, pitch, width, rows, out_extent)) {
    return refuse("vt_copy_2d", "%zu rows with a %s_pitch of %zu go past the end of all memory", rows, side, pitch);
  }
  return VT_OK;
}

// Whether a row of one block shares a byte with a row of the other one. The rows of both go upward.
static bool rows_overlap(uintptr_t dst, size_t dst_pitch, uintptr_t src, size_t src_pitch, size_t width, size_t rows) {
  size_t i = 0;
  size_t j = 0;
  while (i < rows && j < rows) {
    uintptr_t a = dst + i * dst_pitch;
    uintptr_t b = src + j * src_pitch;
    if (a < b + width && b < a + width) {
      return true;
    }
    a < b ? i++ : j++;
  }
  return false;
}

vt_status vt__copy_2d_check(const void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t rows) {
  size_t dst_extent = 0;
  size_t src_extent = 0;
  VT_TRY(check_side("dst", dst, dst_pitch, width, rows, &dst_extent));
  VT_TRY(check_side("src", src, src_pitch, width, rows, &src_extent));
  if (vt__overlaps(dst, dst_extent, src, src_extent) &&
      rows_overlap((uintptr_t)dst, dst_pitch, (uintptr_t)src, src_pitch, width, rows)) {
    return refuse("vt_copy_2d", "rows of dst %p (pitch %zu) and src %p (pitch %zu) overlap: %zu rows of %zu bytes", dst, dst_pitch,
                  src, src_pitch, rows, width);
  }
  return VT_OK;
}
