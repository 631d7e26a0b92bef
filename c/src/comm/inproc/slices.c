// slices.c: moving the data of a collective: from the posts when it is small, else directly between the ranks' buffers.
#include <string.h>

#include "base/fpenv.h"
#include "comm/inproc/inproc.h"
#include "comm/reduce.h"

size_t vt__collective_bytes(const vt__comm_op *op) {
  size_t elements;
  size_t bytes;
  if (op->call.op == VT_COMM_OP_BARRIER || (op->call.flags & VT__CALL_AGREE) != 0 || op->refusal != NULL) {
    return 0;
  }
  // Checked by the front: the type is known, and the product does not overflow.
  return vt_dtype_get_block(op->call.dtype, &elements, &bytes) == VT_OK ? op->call.count / elements * bytes : 0;
}

void vt__collective_alone(vt__comm_op *op) {
  size_t bytes = op->bytes;
  if (bytes > 0 && op->call.send != op->call.recv) {
    memcpy(op->call.recv, op->call.send, bytes);
  }
}

static vt__post_addresses addresses_of(const vt__comm_op *op, int32_t rank) {
  vt__post_addresses addresses;
  memcpy(&addresses, vt__post_of(op, rank)->payload, sizeof(addresses));
  return addresses;
}

// Where the elements of one rank begin: in its post, or in its send buffer.
static const char *source_of(const vt__comm_op *op, int32_t rank, bool posted) {
  return posted ? (const char *)vt__post_of(op, rank)->payload : addresses_of(op, rank).send;
}

// Reduces `count` elements, at most a block, at `offset` bytes of all sources into `out`.
static void reduce_block(const vt__comm_op *op, const vt__reduce_kernel *kernel, bool posted, size_t offset, void *out,
                         size_t count) {
  int32_t world = op->call.comm->world;
  const char *a = source_of(op, 0, posted) + offset;
  const char *b = source_of(op, 1, posted) + offset;
  if (world == 2) {
    kernel->pair(out, a, b, count);
    return;
  }
  _Alignas(VT_CACHE_LINE) unsigned char acc[VT__REDUCE_ACC_BYTES];
  kernel->first(acc, a, b, count);
  for (int32_t r = 2; r < world; r++) {
    kernel->next(acc, source_of(op, r, posted) + offset, count);
  }
  kernel->finish(out, acc, count, world);
}

void vt__collective_small(vt__comm_op *op) {
  size_t bytes = op->bytes;
  if (op->call.op == VT_COMM_OP_ALL_REDUCE) {
    vt__fpenv before = vt__fpenv_enter();
    reduce_block(op, vt__reduce_kernel_find(op->call.dtype, op->call.reduce_op), true, 0, op->call.recv, op->call.count);
    vt__fpenv_leave(before);
    return;
  }
  char *recv = op->call.recv;
  for (int32_t r = 0; r < op->call.comm->world; r++) {
    char *slot = recv + (size_t)r * bytes;
    if (slot != op->call.send) {
      memcpy(slot, vt__post_of(op, r)->payload, bytes);
    }
  }
}

// Reduces the bytes [begin, end), at most a chunk, of all send buffers into all receive buffers.
static bool reduce_chunk(const vt__comm_op *op, const vt__reduce_kernel *kernel, size_t begin, size_t end) {
  _Alignas(VT_CACHE_LINE) unsigned char out[VT__REDUCE_BLOCK_BYTES];
  for (size_t at = begin; at < end; at += VT__REDUCE_BLOCK_BYTES) {
    if (VT_UNLIKELY(vt__gate_is_closed(op))) {
      return false;
    }
    size_t bytes = vt__min_size(VT__REDUCE_BLOCK_BYTES, end - at);
    vt__fpenv before = vt__fpenv_enter();
    reduce_block(op, kernel, false, at, out, bytes / kernel->element_bytes);
    vt__fpenv_leave(before);
    for (int32_t r = 0; r < op->call.comm->world; r++) {
      memcpy((char *)addresses_of(op, r).recv + at, out, bytes);
    }
  }
  return true;
}

// This rank's slice: whole lines of elements, so that two ranks rarely write one line. The last ranks may get less, or nothing.
static bool reduce_slice(const vt__comm_op *op) {
  const vt__reduce_kernel *kernel = vt__reduce_kernel_find(op->call.dtype, op->call.reduce_op);
  size_t world = (size_t)op->call.comm->world;
  size_t total = op->call.count * kernel->element_bytes;
  size_t share = op->call.count / world + (op->call.count % world != 0);
  size_t slice = (share * kernel->element_bytes + VT_CACHE_LINE - 1) / VT_CACHE_LINE * VT_CACHE_LINE;
  size_t rank = (size_t)op->call.comm->rank;
  size_t begin = vt__min_size(total, rank * slice);
  size_t end = total - begin < slice ? total : begin + slice;
  for (size_t at = begin, chunk = 0; at < end; at += VT__CHUNK_BYTES, chunk++) {
    vt__inproc_chunk_hook(op, chunk);
    if (!reduce_chunk(op, kernel, at, vt__min_size(end, at + VT__CHUNK_BYTES))) {
      return false;
    }
  }
  return true;
}

static bool gather_from(const vt__comm_op *op, int32_t peer, size_t bytes, size_t *chunk) {
  const char *from = addresses_of(op, peer).send;
  char *to = (char *)op->call.recv + (size_t)peer * bytes;
  if (to == from) {
    return true;
  }
  for (size_t at = 0; at < bytes; at += VT__CHUNK_BYTES) {
    if (peer != op->call.comm->rank) {
      vt__inproc_chunk_hook(op, (*chunk)++);
    }
    if (VT_UNLIKELY(vt__gate_is_closed(op))) {
      return false;
    }
    memcpy(to + at, from + at, vt__min_size(VT__CHUNK_BYTES, bytes - at));
  }
  return true;
}

bool vt__collective_move(vt__comm_op *op) {
  if (op->call.op == VT_COMM_OP_ALL_REDUCE) {
    return reduce_slice(op);
  }
  int32_t world = op->call.comm->world;
  size_t bytes = op->bytes;
  size_t chunk = 0;
  // Ranks begin at different peers, so they don't all read the same memory at once.
  for (int32_t i = 0; i < world; i++) {
    if (!gather_from(op, (op->call.comm->rank + i) % world, bytes, &chunk)) {
      return false;
    }
  }
  return true;
}
