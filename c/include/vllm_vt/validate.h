// validate.h: a checker for the mistakes that queues, events, graphs and arenas make possible.
//
// With the environment variable VT_VALIDATE=1, or between vt_validate_enable() and vt_validate_disable(), the runtime follows which
// ranges of memory its operations use and what orders them, and reports what isn't in order: a range used by two queues without an
// event between them, memory used after it was freed or taken back, a host access to memory with pending work. Order is what the
// program asked for, not what the clock said: a race is reported also where it went well.
//
// It sees what goes through the API. Ranges that host functions and an engine's own kernels use are told by vt_validate_touch(),
// the host's by vt_validate_host_access(). What two host threads do to each other is the business of ThreadSanitizer.
//
// A report never changes what a call does or answers. Reports go to the log, those that are errors at VT_LOG_ERROR and notices at
// VT_LOG_INFO, to the hook, and are counted. See docs/validation.md.
#ifndef VLLM_VT_VALIDATE_H
#define VLLM_VT_VALIDATE_H

#include "vllm_vt/queue.h"
#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t vt_validate_kind;

enum {
  VT_VALIDATE_RACE = 0,               // two queues use a range, one of them writes it, and nothing orders them
  VT_VALIDATE_USE_AFTER_FREE = 1,     // a range of a block that was freed
  VT_VALIDATE_USE_AFTER_RESET = 2,    // a range that an arena took back
  VT_VALIDATE_OUT_OF_BOUNDS = 3,      // a range that leaves its block
  VT_VALIDATE_PENDING = 4,            // the host uses or frees memory on which work is pending
  VT_VALIDATE_FREED_UNDER_GRAPH = 5,  // a block was freed that a live graph holds
  VT_VALIDATE_CAPTURE = 6,            // a call broke a rule of captures, and was refused
  VT_VALIDATE_UNRECORDED_EVENT = 7,   // notice: somebody waits for an event that was never recorded, so for nothing
  VT_VALIDATE_LIMIT = 8,              // notice: a table is full; from here on something may be missed
};

#define VT_VALIDATE_KIND_COUNT 9

typedef int32_t vt_validate_severity;

enum {
  VT_SEVERITY_ERROR = 0,
  VT_SEVERITY_NOTICE = 1,  // legal, and worth a look
};

// How a range is used: bits.
enum {
  VT_TOUCH_READ = 1 << 0,
  VT_TOUCH_WRITE = 1 << 1,
};

// One call that a report is about.
typedef struct vt_validate_site {
  const char *function;  // of this library: "vt_copy"; NULL where there was no such call, or it was before validation began
  const void *caller;    // where it was called from; NULL where that isn't known
  const char *symbol;    // the same in words, "step+0x1f" or "engine+0x2310"; "" where that isn't known; valid during the report
  uint64_t queue_id;     // see vt_queue_get_id(); 0: the host
  uint64_t sequence;     // the operation's ticket on its queue; 0: none, or recorded into a graph
} vt_validate_site;

typedef struct vt_validate_report {
  size_t struct_size;
  vt_validate_kind kind;
  vt_validate_severity severity;
  const void *ptr;  // the range of the later call; NULL and 0 where it isn't about one
  size_t bytes;
  vt_validate_site now;  // the call that made the report
  vt_validate_site
      before;           // what it is in conflict with: the other use, the free, the reset, the allocation, the begin of the capture
  const char *message;  // all of it in words; valid during the call
} vt_validate_report;

// Receives one report, on the thread that made the call. It may not call the runtime.
typedef void (*vt_validate_fn)(void *user, const vt_validate_report *report);

// Begins to follow what is done. Nothing changes where it is on already.
//
// Order    operations and allocations that begin after the return; earlier blocks are known with their bounds, earlier work isn't
// Memory   kept until vt_validate_disable(): at most 4096 uses per block and for host memory, and 32 MiB of freed blocks of the
//          CPU, which are given back later, so that their addresses mean nothing else
// Units    none
// Threads  any
// Capture  allowed; a capture that is open stays unknown
// Errors   VT_ERR_FAILED_PRECONDITION  in a forked child, or from a callback
//          VT_ERR_OUT_OF_MEMORY        not all live blocks could be noted: it stays off
VT_API vt_status vt_validate_enable(void);

// Ends it, and forgets what is known; the counters stay. Nothing changes where it is off.
//
// Order    none; a report may still be on its way on another thread
// Memory   gives back freed blocks that were held
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_FAILED_PRECONDITION  in a forked child, or from a callback
VT_API vt_status vt_validate_disable(void);

// Answers 1 while validation is on, else 0.
//
// Order    none
// Memory   none
// Units    none
// Threads  any
// Capture  allowed
// Errors   none
VT_API int32_t vt_validate_is_enabled(void);

// Sets who gets the reports. NULL takes the hook away; the log gets them in any case.
//
// Order    none; a call of the previous hook may still be running on another thread
// Memory   `user` must live until the hook was replaced and its last call has returned
// Units    none
// Threads  any
// Capture  allowed
// Errors   none
VT_API void vt_validate_set(vt_validate_fn fn, void *user);

// Reads how many reports of a kind there were in this process. 0 for what isn't a kind.
//
// Order    none
// Memory   none
// Units    reports
// Threads  any
// Capture  allowed
// Errors   none
VT_API uint64_t vt_validate_get_count(vt_validate_kind kind);

// Reads the name of a kind, "race" for one. NULL for what isn't a kind.
//
// Order    none
// Memory   lives as long as the process
// Units    none
// Threads  any
// Capture  allowed
// Errors   none
VT_API const char *vt_validate_kind_get_name(vt_validate_kind kind);

// Declares that work of the queue uses a range, for what the API doesn't show: host functions, and kernels that were launched on
// the queue's native handle. To be called right behind the call that submits the work. Where validation is off, it only checks its
// arguments.
//
// Order    the use is at the present end of the queue
// Memory   nothing is read or written
// Units    bytes; 0 is fine with any pointer; `mode` is VT_TOUCH_* bits
// Threads  any
// Capture  recorded: the use is one of each launch
// Errors   VT_ERR_INVALID_ARGUMENT     not a live queue, a NULL pointer, or a mode that holds no bit or an unknown one
//          VT_ERR_FAILED_PRECONDITION  the queue was destroyed, in a forked child, or from a callback
VT_API vt_status vt_validate_touch(vt_queue *queue, const void *ptr, size_t bytes, uint32_t mode);

// Declares that the host uses a range now. Where validation is off, it only checks its arguments.
//
// Order    none
// Memory   nothing is read or written
// Units    bytes; 0 is fine with any pointer; `mode` is VT_TOUCH_* bits
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT     a NULL pointer, or a mode that holds no bit or an unknown one
//          VT_ERR_FAILED_PRECONDITION  in a forked child, or from a callback
VT_API vt_status vt_validate_host_access(const void *ptr, size_t bytes, uint32_t mode);

#ifdef __cplusplus
}
#endif

#endif
