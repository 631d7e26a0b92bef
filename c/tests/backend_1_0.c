// backend_1_0.c: a backend that was compiled at ABI 1.0: it knows the kept copy of that interface and no present header.
//
// Synchronous queues over host memory. It sets no error records, so the runtime has to find the words.
#include "backend_1_0.h"

#include <stdlib.h>
#include <string.h>

#include "abi/backend_ops_1_0.h"

static int32_t alloc_block(void *self, size_t bytes, void **out_ptr) {
  (void)self;
  void *block = bytes <= PTRDIFF_MAX - 63 ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
  *out_ptr = block;
  return block != NULL ? ABI_1_0_OK : ABI_1_0_OUT_OF_MEMORY;
}

static int32_t free_block(void *self, void *ptr) {
  (void)self;
  free(ptr);
  return ABI_1_0_OK;
}

static int32_t copy_bytes(void *self, void *queue, void *dst, const void *src, size_t bytes) {
  (void)self;
  memcpy(dst, src, bytes);
  ++*(uint64_t *)queue;
  return ABI_1_0_OK;
}

static int32_t fill_bytes(void *self, void *queue, void *ptr, uint8_t value, size_t bytes) {
  (void)self;
  memset(ptr, value, bytes);
  ++*(uint64_t *)queue;
  return ABI_1_0_OK;
}

// A queue is its last ticket.
static int32_t create_queue(void *self, const struct abi_1_0_queue_options *options, uint64_t id, void **out_queue) {
  (void)self;
  (void)id;
  *out_queue = options->struct_size >= ABI_1_0_SIZE_queue_options ? calloc(1, sizeof(uint64_t)) : NULL;
  return *out_queue != NULL ? ABI_1_0_OK : ABI_1_0_OUT_OF_MEMORY;
}

static void destroy_queue(void *self, void *queue, void (*done)(void *user), void *user) {
  (void)self;
  free(queue);
  done(user);
}

static int32_t always_done(void *self, void *queue) {
  (void)self;
  (void)queue;
  return ABI_1_0_OK;
}

static int32_t get_ticket(void *self, void *queue, uint64_t *out_ticket) {
  (void)self;
  *out_ticket = *(uint64_t *)queue;
  return ABI_1_0_OK;
}

static int32_t wait_ticket(void *self, void *queue, uint64_t ticket, uint64_t timeout_ns) {
  (void)self;
  (void)timeout_ns;
  return ticket <= *(uint64_t *)queue ? ABI_1_0_OK : ABI_1_0_INTERNAL;
}

static int32_t host_call(void *self, void *queue, const struct abi_1_0_host_call *call) {
  (void)self;
  struct abi_1_0_host_call own = *call;
  int32_t status = own.run(own.payload);
  if (own.drop != NULL) {
    own.drop(own.payload);
  }
  ++*(uint64_t *)queue;
  return status;
}

static void *get_native(void *self, void *queue) {
  (void)self;
  return queue;
}

static int32_t get_info(void *self, struct abi_1_0_device_info *out_info) {
  (void)self;
  if (out_info->struct_size < ABI_1_0_SIZE_device_info) {
    return ABI_1_0_INTERNAL;
  }
  out_info->unified_memory = 1;
  out_info->host_addressable = 1;
  out_info->compute_major = 1;
  out_info->memory_total = 4096;
  memcpy(out_info->name, "backend of ABI 1.0", 19);
  return ABI_1_0_OK;
}

static const struct abi_1_0_backend_ops table = {
    .struct_size = ABI_1_0_SIZE_backend_ops,
    .abi_major = ABI_1_0_MAJOR,
    .abi_minor = ABI_1_0_MINOR,
    .alloc = alloc_block,
    .free = free_block,
    .copy = copy_bytes,
    .memset = fill_bytes,
    .queue_create = create_queue,
    .queue_destroy = destroy_queue,
    .queue_synchronize = always_done,
    .queue_query = always_done,
    .queue_get_ticket = get_ticket,
    .queue_wait_ticket = wait_ticket,
    .queue_host_call = host_call,
    .queue_get_native = get_native,
    .get_info = get_info,
};

const void *vt_backend_1_0_get_table(void) {
  return &table;
}
