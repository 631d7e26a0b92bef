// backend_ops_1_0.h: what a plug-in saw of the library at backend ABI 1.0. Kept for good: this file is never changed.
//
// It is a copy of its own and includes nothing of the library, so a table made with it is one that was compiled at the first
// release. backend_abi.c compares it with the present headers: members keep their offset, size and type; new ones come behind. A
// change that fails there needs another ABI major. The numbers are those of 64-bit Linux, the same on x86-64 and aarch64.
#ifndef ABI_BACKEND_OPS_1_0_H
#define ABI_BACKEND_OPS_1_0_H

#include <stddef.h>
#include <stdint.h>

// Structs as they stand in the types of functions. Whoever compares those types with today's names today's structs here.
#ifndef ABI_1_0_STRUCT
#define ABI_1_0_STRUCT(name) struct abi_1_0_##name
#endif

struct abi_1_0_comm;
struct abi_1_0_comm_call;
struct abi_1_0_queue;

enum {
  ABI_1_0_MAJOR = 1,
  ABI_1_0_MINOR = 0,
  ABI_1_0_OK = 0,
  ABI_1_0_NOT_READY = 1,
  ABI_1_0_INVALID_ARGUMENT = -1,
  ABI_1_0_OUT_OF_MEMORY = -2,
  ABI_1_0_UNSUPPORTED = -3,
  ABI_1_0_NOT_FOUND = -4,
  ABI_1_0_ALREADY_EXISTS = -5,
  ABI_1_0_FAILED_PRECONDITION = -6,
  ABI_1_0_TIMEOUT = -7,
  ABI_1_0_ABORTED = -8,
  ABI_1_0_PEER_LOST = -9,
  ABI_1_0_MISMATCH = -10,
  ABI_1_0_DEVICE_LOST = -11,
  ABI_1_0_INTERNAL = -12,
  ABI_1_0_CAP_ASYNC_QUEUES = 1,
  ABI_1_0_CAP_EVENTS = 2,
  ABI_1_0_CAP_GRAPH_CAPTURE = 4,
  ABI_1_0_CAP_AUX_QUEUE = 8,
  ABI_1_0_CAP_STREAM_ALLOC = 16,
  ABI_1_0_QUEUE_ASYNC = 1,
  ABI_1_0_QUEUE_FAIL_FULL = 2,
  ABI_1_0_EVENT_BLOCKING = 1,
  ABI_1_0_EVENT_TIMING = 2,
};

struct abi_1_0_device {
  int32_t type;
  int32_t index;
};

struct abi_1_0_error {
  int32_t status;
  int32_t domain;
  int64_t native;
  const char *function;
  const char *message;
};

struct abi_1_0_device_info {
  size_t struct_size;
  int32_t unified_memory;
  int32_t host_addressable;
  int32_t compute_major;
  int32_t compute_minor;
  uint64_t memory_free;
  uint64_t memory_total;
  uint32_t caps;
  char name[64];
};

struct abi_1_0_queue_options {
  size_t struct_size;
  uint32_t flags;
  uint32_t ring_capacity;
  const char *name;
  uint64_t cpu_mask;
  int32_t priority;
};

struct abi_1_0_host_call {
  int32_t (*run)(void *payload);
  void (*cancel)(void *payload);
  void (*drop)(void *payload);
  uint64_t payload[10];
};

struct abi_1_0_backend_ops {
  size_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  int32_t (*alloc)(void *self, size_t bytes, void **out_ptr);
  int32_t (*free)(void *self, void *ptr);
  int32_t (*pinned_alloc)(void *self, size_t bytes, void **out_ptr);
  int32_t (*pinned_free)(void *self, void *ptr);
  int32_t (*copy)(void *self, void *queue, void *dst, const void *src, size_t bytes);
  int32_t (*memset)(void *self, void *queue, void *ptr, uint8_t value, size_t bytes);
  int32_t (*queue_create)(void *self, const ABI_1_0_STRUCT(queue_options) * options, uint64_t id, void **out_queue);
  void (*queue_destroy)(void *self, void *queue, void (*done)(void *user), void *user);
  int32_t (*queue_synchronize)(void *self, void *queue);
  int32_t (*queue_query)(void *self, void *queue);
  int32_t (*queue_get_ticket)(void *self, void *queue, uint64_t *out_ticket);
  int32_t (*queue_wait_ticket)(void *self, void *queue, uint64_t ticket, uint64_t timeout_ns);
  int32_t (*queue_host_call)(void *self, void *queue, const ABI_1_0_STRUCT(host_call) * call);
  void *(*queue_get_native)(void *self, void *queue);
  int32_t (*event_create)(void *self, uint32_t flags, void **out_event);
  void (*event_destroy)(void *self, void *event);
  int32_t (*event_record)(void *self, void *event, void *queue);
  int32_t (*event_query)(void *self, void *event);
  int32_t (*event_wait)(void *self, void *event, uint64_t timeout_ns);
  int32_t (*queue_after_event)(void *self, void *queue, void *event);
  int32_t (*event_get_elapsed)(void *self, void *start, void *end, uint64_t *out_ns);
  void *(*event_get_native)(void *self, void *event);
  int32_t (*capture_begin)(void *self, void *queue);
  int32_t (*capture_end)(void *self, void *queue, void **out_graph);
  int32_t (*capture_abort)(void *self, void *queue);
  int32_t (*graph_launch)(void *self, void *graph, void *queue);
  void (*graph_destroy)(void *self, void *graph);
  int32_t (*graph_get_node_count)(void *self, void *graph, size_t *out_count);
  void *(*graph_get_native)(void *self, void *graph);
  int32_t (*get_info)(void *self, ABI_1_0_STRUCT(device_info) * out_info);
  int32_t (*flush)(void *self);
};

struct abi_1_0_device_resource_ops {
  size_t struct_size;
  int32_t (*alloc)(ABI_1_0_STRUCT(device) device, size_t bytes, void **out_ptr);
  int32_t (*free)(ABI_1_0_STRUCT(device) device, void *ptr);
  int32_t (*create_queue)(ABI_1_0_STRUCT(device) device, const ABI_1_0_STRUCT(queue_options) * options, uint64_t id,
                          void **out_queue);
  void (*destroy_queue)(ABI_1_0_STRUCT(device) device, void *queue, void (*done)(void *user), void *user);
};

// The listing: member, offset and size in bytes, and when a table may lack it.
//   HEAD      no method
//   REQUIRED  never
//   PINNED, EVENTS  only where the whole group is left out and the device has no asynchronous queues
//   GRAPHS    only where the whole group is left out
//   OPTIONAL  always
#define ABI_1_0_BACKEND_OPS(X)              \
  X(struct_size, 0, 8, HEAD)                \
  X(abi_major, 8, 4, HEAD)                  \
  X(abi_minor, 12, 4, HEAD)                 \
  X(alloc, 16, 8, REQUIRED)                 \
  X(free, 24, 8, REQUIRED)                  \
  X(pinned_alloc, 32, 8, PINNED)            \
  X(pinned_free, 40, 8, PINNED)             \
  X(copy, 48, 8, REQUIRED)                  \
  X(memset, 56, 8, REQUIRED)                \
  X(queue_create, 64, 8, REQUIRED)          \
  X(queue_destroy, 72, 8, REQUIRED)         \
  X(queue_synchronize, 80, 8, REQUIRED)     \
  X(queue_query, 88, 8, REQUIRED)           \
  X(queue_get_ticket, 96, 8, REQUIRED)      \
  X(queue_wait_ticket, 104, 8, REQUIRED)    \
  X(queue_host_call, 112, 8, REQUIRED)      \
  X(queue_get_native, 120, 8, OPTIONAL)     \
  X(event_create, 128, 8, EVENTS)           \
  X(event_destroy, 136, 8, EVENTS)          \
  X(event_record, 144, 8, EVENTS)           \
  X(event_query, 152, 8, EVENTS)            \
  X(event_wait, 160, 8, EVENTS)             \
  X(queue_after_event, 168, 8, EVENTS)      \
  X(event_get_elapsed, 176, 8, OPTIONAL)    \
  X(event_get_native, 184, 8, OPTIONAL)     \
  X(capture_begin, 192, 8, GRAPHS)          \
  X(capture_end, 200, 8, GRAPHS)            \
  X(capture_abort, 208, 8, GRAPHS)          \
  X(graph_launch, 216, 8, GRAPHS)           \
  X(graph_destroy, 224, 8, GRAPHS)          \
  X(graph_get_node_count, 232, 8, OPTIONAL) \
  X(graph_get_native, 240, 8, OPTIONAL)     \
  X(get_info, 248, 8, REQUIRED)             \
  X(flush, 256, 8, OPTIONAL)

#define ABI_1_0_DEVICE(X) X(type, 0, 4) X(index, 4, 4)

#define ABI_1_0_ERROR(X) X(status, 0, 4) X(domain, 4, 4) X(native, 8, 8) X(function, 16, 8) X(message, 24, 8)

#define ABI_1_0_DEVICE_INFO(X) \
  X(struct_size, 0, 8)         \
  X(unified_memory, 8, 4)      \
  X(host_addressable, 12, 4)   \
  X(compute_major, 16, 4) X(compute_minor, 20, 4) X(memory_free, 24, 8) X(memory_total, 32, 8) X(caps, 40, 4) X(name, 44, 64)

#define ABI_1_0_QUEUE_OPTIONS(X) \
  X(struct_size, 0, 8) X(flags, 8, 4) X(ring_capacity, 12, 4) X(name, 16, 8) X(cpu_mask, 24, 8) X(priority, 32, 4)

#define ABI_1_0_HOST_CALL(X) X(run, 0, 8) X(cancel, 8, 8) X(drop, 16, 8) X(payload, 24, 80)

#define ABI_1_0_DEVICE_RESOURCE_OPS(X) \
  X(struct_size, 0, 8) X(alloc, 8, 8) X(free, 16, 8) X(create_queue, 24, 8) X(destroy_queue, 32, 8)

enum {
  ABI_1_0_SIZE_backend_ops = 264,
  ABI_1_0_SIZE_device = 8,
  ABI_1_0_SIZE_error = 32,
  ABI_1_0_SIZE_device_info = 112,
  ABI_1_0_SIZE_queue_options = 40,
  ABI_1_0_SIZE_host_call = 104,
  ABI_1_0_SIZE_device_resource_ops = 40,
};

// Types of functions that the library and its users hand to each other.
typedef void (*abi_1_0_fn)(void);
typedef int32_t (*abi_1_0_host_fn)(void *user);
typedef void (*abi_1_0_log_fn)(void *user, int32_t level, const char *message);
typedef int32_t (*abi_1_0_comm_all_reduce_fn)(ABI_1_0_STRUCT(comm) * comm, ABI_1_0_STRUCT(queue) * queue, const void *send,
                                              void *recv, size_t count, int32_t dtype, int32_t op,
                                              const ABI_1_0_STRUCT(comm_call) * opts);
typedef int32_t (*abi_1_0_comm_all_gather_fn)(ABI_1_0_STRUCT(comm) * comm, ABI_1_0_STRUCT(queue) * queue, const void *send,
                                              void *recv, size_t count, int32_t dtype, const ABI_1_0_STRUCT(comm_call) * opts);
typedef int32_t (*abi_1_0_comm_send_fn)(ABI_1_0_STRUCT(comm) * comm, ABI_1_0_STRUCT(queue) * queue, const void *buffer,
                                        size_t count, int32_t dtype, int32_t peer, const ABI_1_0_STRUCT(comm_call) * opts);
typedef int32_t (*abi_1_0_comm_recv_fn)(ABI_1_0_STRUCT(comm) * comm, ABI_1_0_STRUCT(queue) * queue, void *buffer, size_t count,
                                        int32_t dtype, int32_t peer, const ABI_1_0_STRUCT(comm_call) * opts);
typedef int32_t (*abi_1_0_comm_barrier_fn)(ABI_1_0_STRUCT(comm) * comm, ABI_1_0_STRUCT(queue) * queue,
                                           const ABI_1_0_STRUCT(comm_call) * opts);
typedef void (*abi_1_0_comm_chunk_fn)(void *user, int32_t rank, uint64_t sequence, size_t chunk);

#endif
