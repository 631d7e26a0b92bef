// log.h: the one channel through which the library speaks, and the hook that follows queued work.
//
// The library never prints. Without a log hook it is silent, unless the environment variable VT_LOG names a level (error, warn,
// info, debug): then messages go to stderr.
#ifndef VLLM_VT_LOG_H
#define VLLM_VT_LOG_H

#include "vllm_vt/dtype.h"
#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t vt_log_level;

enum {
  VT_LOG_OFF = 0,
  VT_LOG_ERROR = 1,
  VT_LOG_WARN = 2,
  VT_LOG_INFO = 3,
  VT_LOG_DEBUG = 4,
};

// Receives one message, without a line end. Called on the thread that has something to say; it may not call the runtime.
typedef void (*vt_log_fn)(void *user, vt_log_level level, const char *message);

// Sets the log hook. NULL silences the library.
//
// Order    none; a call of the previous hook may still be running on another thread
// Memory   `user` must live until the hook was replaced and its last call has returned
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT  `level` is not a level
//          VT_ERR_OUT_OF_MEMORY     the previous hook stays
VT_API vt_status vt_log_set(vt_log_fn fn, void *user, vt_log_level level);

// What a traced operation does.
typedef int32_t vt_trace_kind;

enum {
  VT_TRACE_COPY = 0,
  VT_TRACE_MEMSET = 1,
  VT_TRACE_HOST_CALL = 2,  // host functions, and collectives: those have a world
  VT_TRACE_WAIT = 3,       // the queue, or a branch of a graph, waits for an event
  VT_TRACE_RECORD = 4,     // a timed event is stamped
  VT_TRACE_GRAPH = 5,      // a graph launch; its nodes follow with their own kinds
};

// One operation that begins or has ended.
typedef struct vt_trace_event {
  vt_trace_kind kind;
  int32_t is_end;          // 0: begins, 1: has ended
  uint64_t queue_id;       // see vt_queue_get_id()
  uint64_t bytes;          // of a copy or a memset, or of this rank's elements in a collective; else 0
  uint64_t sequence;       // the operation's ticket on its queue; for a node of a graph, its position
  const char *name;        // "copy", "copy batch", "host function", "all_reduce", "batch"; lives as long as the process
  const char *queue_name;  // see vt_queue_options; valid during the call
  uint64_t waits_for;      // of a wait for another queue: that queue; else 0
  uint64_t count;          // of a collective: this rank's elements, added up over a batch; else 0
  uint64_t comm_sequence;  // of a collective that has ended: its number on its communicator, of a batch the first one's; else 0
  vt_dtype dtype;          // of a collective; -1: none, or several in a batch
  int32_t rank;            // of a collective; -1: none, or several in a batch
  int32_t world;           // of a collective; 0 for other operations
  int32_t operations;      // collectives in this operation: above 1 in a batch
  int32_t branch;          // of a node of a graph: 0 runs on the queue's own thread, others run beside it; else 0
  vt_status status;        // of an operation that has ended
} vt_trace_event;

// Receives each begin and end on the thread that runs the operation. It may not call the runtime; time spent here delays the queue.
typedef void (*vt_trace_fn)(void *user, const vt_trace_event *event);

// Sets the trace hook. NULL takes it away; without a hook and a trace file (see trace.h) an operation pays one predictable branch.
//
// Order    none; a call of the previous hook may still be running on another thread
// Memory   `user` must live until the hook was replaced and its last call has returned
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_OUT_OF_MEMORY  the previous hook stays
VT_API vt_status vt_trace_set(vt_trace_fn fn, void *user);

#ifdef __cplusplus
}
#endif

#endif
