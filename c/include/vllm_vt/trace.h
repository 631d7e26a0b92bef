// trace.h: a timeline of all queues in a file, to be looked at in ui.perfetto.dev or chrome://tracing.
//
// The file is JSON in the trace event format: an array with one complete event ("X") per operation, one a line, times in
// microseconds of the monotonic clock. Each queue has a track with its name, each further branch of its graphs one below it. A
// launch holds its nodes. A collective has the operation's name, and rank, world, type, count and number as arguments.
//
// The environment variable VT_TRACE=FILE, read on first use of the library, does the same from then on until the process exits.
// A file that can't be written is then a line of the log. The hook of vt_trace_set() gets its events all the same.
//
// The file may be a named pipe that somebody has open for reading. A reader that goes, or doesn't read for a second, ends the
// trace.
//
// Threads collect operations in buffers of fixed size and write them when they are full, 0.2 s after the last time, or when the
// thread ends. So where a process is killed, at most the last 256 operations of each thread are missing, and viewers read the file
// without its closing bracket.
#ifndef VLLM_VT_TRACE_H
#define VLLM_VT_TRACE_H

#include "vllm_vt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Begins a trace file. "%p" in `path` stands for the process id, for several processes with one environment.
//
// Order    operations that begin after the return are in the file
// Memory   `path` is copied; an existing file is overwritten; each thread that runs operations gets a buffer of at most
//          40 KiB, which is kept for later threads
// Units    none
// Threads  any
// Capture  allowed
// Errors   VT_ERR_INVALID_ARGUMENT     `path` is NULL, empty, or longer than 4095 bytes
//          VT_ERR_ALREADY_EXISTS       a trace file is being written, by this process or, to the same path, by another one
//          VT_ERR_FAILED_PRECONDITION  the file can't be written (domain errno), in a forked child, or from a callback
VT_API vt_status vt_trace_file_begin(const char *path);

// Completes the trace file, which the exit of the process does as well.
//
// Order    operations that have completed before the call are in the file; one that is running is left out
// Memory   none
// Units    none
// Threads  any; waits for threads that are writing to the file
// Capture  allowed
// Errors   VT_ERR_FAILED_PRECONDITION  no trace file is being written, in a forked child, or from a callback
//          VT_ERR_INTERNAL             a write has failed, a full disk for one (domain errno): the file ends there
//          VT_ERR_OUT_OF_MEMORY        operations are missing: there was no memory for a thread's buffer
VT_API vt_status vt_trace_file_end(void);

#ifdef __cplusplus
}
#endif

#endif
