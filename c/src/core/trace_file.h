// trace_file.h: the trace file: buffers of the threads (trace_file.c), and the text that they become (trace_text.c).
#ifndef VT_CORE_TRACE_FILE_H
#define VT_CORE_TRACE_FILE_H

#include <stdbool.h>

#include "vllm_vt/log.h"
#include "vllm_vt/trace.h"

// Begins a trace file if VT_TRACE asks for it; a failure goes to the log.
void vt__trace_file_init(void);

// Takes a begin or an end on the thread that runs the operation. Leaves the thread's error record alone.
void vt__trace_file_take(const vt_trace_event *event);

// An operation that has ended.
typedef struct vt__trace_record {
  uint64_t begin_ns;
  uint64_t end_ns;
  vt_trace_event event;  // without its queue_name
  char queue_name[16];
} vt__trace_record;

enum {
  VT__TRACE_TEXT_BYTES = 64 << 10,
  VT__TRACE_NAMED = 256,
};

// An open file and the text that waits to be written to it.
typedef struct vt__trace_out {
  int fd;
  int error;                        // errno of the first write that failed; nothing is written after it
  size_t used;                      // bytes of `text`
  uint64_t named[VT__TRACE_NAMED];  // tracks that were given their names; on a collision one is named again
  char text[VT__TRACE_TEXT_BYTES];
} vt__trace_out;

// Begins and completes the array of a file. All texts are whole events, so a file that ends early is whole up to its last line.
void vt__trace_text_begin(vt__trace_out *out, int fd);
void vt__trace_text_end(vt__trace_out *out);

void vt__trace_text_add(vt__trace_out *out, const vt__trace_record *record);

// Writes what has come together.
void vt__trace_text_flush(vt__trace_out *out);

#endif
