// toy_backend.h: the smallest backend that registers: synchronous queues over host memory, no events, no graphs.
//
// A starting point for a plug-in: docs/backends.md explains it. The runtime has checked all arguments before it calls one of these.
#ifndef EXAMPLES_TOY_BACKEND_H
#define EXAMPLES_TOY_BACKEND_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vllm_vt/vt.h>

// Methods come from any thread, also two at once on one object.
typedef struct toy {
  _Atomic int flushes;  // calls of toy_flush()
  _Atomic int blocks;   // alive
} toy;

typedef struct toy_queue {
  _Atomic uint64_t ticket;  // of the last operation; all up to it are done
} toy_queue;

static inline vt_status toy_out_of_memory(size_t bytes) {
  return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, "toy", "no room for %zu bytes", bytes);
}

static inline vt_status toy_alloc(void *self, size_t bytes, void **out_ptr) {
  if (bytes > PTRDIFF_MAX - 63) {
    return toy_out_of_memory(bytes);
  }
  void *block = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (block == NULL) {
    return toy_out_of_memory(bytes);
  }
  ((toy *)self)->blocks++;
  *out_ptr = block;
  return VT_OK;
}

static inline vt_status toy_free(void *self, void *ptr) {
  ((toy *)self)->blocks--;
  free(ptr);
  return VT_OK;
}

static inline vt_status toy_copy(void *self, void *queue, void *dst, const void *src, size_t bytes) {
  (void)self;
  memcpy(dst, src, bytes);
  ((toy_queue *)queue)->ticket++;
  return VT_OK;
}

static inline vt_status toy_memset(void *self, void *queue, void *ptr, uint8_t value, size_t bytes) {
  (void)self;
  memset(ptr, value, bytes);
  ((toy_queue *)queue)->ticket++;
  return VT_OK;
}

static inline vt_status toy_queue_create(void *self, const vt_queue_options *options, uint64_t id, void **out_queue) {
  (void)self;
  (void)options;
  (void)id;
  toy_queue *queue = calloc(1, sizeof *queue);
  if (queue == NULL) {
    return toy_out_of_memory(sizeof *queue);
  }
  *out_queue = queue;
  return VT_OK;
}

static inline void toy_queue_destroy(void *self, void *queue, void (*done)(void *user), void *user) {
  (void)self;
  free(queue);
  done(user);
}

static inline vt_status toy_queue_idle(void *self, void *queue) {
  (void)self;
  (void)queue;
  return VT_OK;
}

static inline vt_status toy_queue_get_ticket(void *self, void *queue, uint64_t *out_ticket) {
  (void)self;
  *out_ticket = ((toy_queue *)queue)->ticket;
  return VT_OK;
}

static inline vt_status toy_queue_wait_ticket(void *self, void *queue, uint64_t ticket, uint64_t timeout_ns) {
  (void)self;
  (void)timeout_ns;
  if (ticket > ((toy_queue *)queue)->ticket) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, "toy", "ticket %llu wasn't given out",
                        (unsigned long long)ticket);
  }
  return VT_OK;
}

static inline vt_status toy_queue_host_call(void *self, void *queue, const vt_host_call *call) {
  (void)self;
  vt_host_call own = *call;
  const vt_status status = own.run(own.payload);
  if (own.drop != NULL) {
    own.drop(own.payload);
  }
  ((toy_queue *)queue)->ticket++;
  return status;
}

static inline vt_status toy_get_info(void *self, vt_device_info *out_info) {
  (void)self;
  out_info->unified_memory = 1;
  out_info->host_addressable = 1;
  snprintf(out_info->name, sizeof out_info->name, "toy");
  return VT_OK;
}

static inline vt_status toy_flush(void *self) {
  ((toy *)self)->flushes++;
  return VT_OK;
}

static const vt_backend_ops toy_ops = {
    .struct_size = sizeof(vt_backend_ops),
    .abi_major = VT_BACKEND_ABI_MAJOR,
    .abi_minor = VT_BACKEND_ABI_MINOR,
    .alloc = toy_alloc,
    .free = toy_free,
    .pinned_alloc = toy_alloc,
    .pinned_free = toy_free,
    .copy = toy_copy,
    .memset = toy_memset,
    .queue_create = toy_queue_create,
    .queue_destroy = toy_queue_destroy,
    .queue_synchronize = toy_queue_idle,
    .queue_query = toy_queue_idle,
    .queue_get_ticket = toy_queue_get_ticket,
    .queue_wait_ticket = toy_queue_wait_ticket,
    .queue_host_call = toy_queue_host_call,
    .get_info = toy_get_info,
    .flush = toy_flush,
};

#endif
