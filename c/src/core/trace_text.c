// trace_text.c: operations as JSON in the trace event format.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/write.h"
#include "core/trace_file.h"

// No event is longer: names have at most 15 bytes of at most 6 characters each, numbers 20 digits.
#define EVENT_BYTES 1024

void vt__trace_text_flush(vt__trace_out *out) {
  if (out->error == 0) {
    out->error = vt__write_all(out->fd, out->text, out->used);
  }
  out->used = 0;
}

static void add(vt__trace_out *out, const char *format, ...) VT_PRINTF_LIKE(2, 3);
static void add(vt__trace_out *out, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(out->text + out->used, sizeof(out->text) - out->used, format, args);
  va_end(args);
  out->used += length > 0 ? vt__min_size((size_t)length, sizeof(out->text) - 1 - out->used) : 0;
}

static void begin_event(vt__trace_out *out) {
  if (sizeof(out->text) - out->used < EVENT_BYTES) {
    vt__trace_text_flush(out);
  }
}

void vt__trace_text_begin(vt__trace_out *out, int fd) {
  memset(out, 0, sizeof(*out));
  out->fd = fd;
  int pid = (int)getpid();
  add(out, "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"vllm_vt %d\"}}", pid, pid);
  vt__trace_text_flush(out);
}

void vt__trace_text_end(vt__trace_out *out) {
  begin_event(out);
  add(out, "\n]\n");
  vt__trace_text_flush(out);
}

// A name in quotes. Bytes that aren't ASCII are left out: a name may have been cut inside a character.
static void add_quoted(vt__trace_out *out, const char *name) {
  add(out, "\"");
  for (const char *p = name; *p != 0; p++) {
    unsigned char byte = (unsigned char)*p;
    if (byte < 0x20 || byte == '"' || byte == '\\') {
      add(out, "\\u%04x", byte);
    } else if (byte < 0x7f) {
      add(out, "%c", byte);
    }
  }
  add(out, "\"");
}

// The number of an operation's track. Queue ids are never reused; two tracks meet after 2^25 ids.
static uint32_t track_of(const vt_trace_event *event) {
  return (uint32_t)((event->queue_id * 64 + (uint64_t)event->branch) & INT32_MAX);
}

static void name_track(vt__trace_out *out, const vt__trace_record *record) {
  const vt_trace_event *event = &record->event;
  uint32_t track = track_of(event);
  uint64_t *named = &out->named[(event->queue_id + (uint64_t)event->branch * 31) % VT__TRACE_NAMED];
  if (*named == (uint64_t)track + 1) {
    return;
  }
  *named = (uint64_t)track + 1;
  char name[64];
  int length = snprintf(name, sizeof(name), "%.15s (queue %llu)", record->queue_name, (unsigned long long)event->queue_id);
  if (event->branch != 0 && length > 0) {
    (void)snprintf(name + length, sizeof(name) - (size_t)length, " branch %d", event->branch);
  }
  begin_event(out);
  add(out, ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"args\":{\"name\":", (int)getpid(), track);
  add_quoted(out, name);
  add(out, "}}");
}

static const char *category_of(const vt_trace_event *event) {
  static const char *const names[] = {
      [VT_TRACE_COPY] = "copy", [VT_TRACE_MEMSET] = "memset", [VT_TRACE_HOST_CALL] = "host",
      [VT_TRACE_WAIT] = "wait", [VT_TRACE_RECORD] = "record", [VT_TRACE_GRAPH] = "graph",
  };
  return event->world != 0 ? "collective" : names[event->kind];
}

static void add_collective(vt__trace_out *out, const vt_trace_event *event) {
  if (event->rank >= 0) {
    add(out, ",\"rank\":%d", event->rank);
  }
  add(out, ",\"world\":%d", event->world);
  const char *dtype = vt_dtype_get_name(event->dtype);
  if (event->dtype >= 0 && dtype != NULL) {
    add(out, ",\"dtype\":\"%s\"", dtype);
  }
  add(out, ",\"count\":%llu", (unsigned long long)event->count);
  if (event->comm_sequence != 0) {
    add(out, ",\"number\":%llu", (unsigned long long)event->comm_sequence);
  }
  if (event->operations > 1) {
    add(out, ",\"operations\":%d", event->operations);
  }
}

static void add_arguments(vt__trace_out *out, const vt_trace_event *event) {
  add(out, "{\"queue\":%llu,\"sequence\":%llu", (unsigned long long)event->queue_id, (unsigned long long)event->sequence);
  if (event->bytes != 0) {
    add(out, ",\"bytes\":%llu", (unsigned long long)event->bytes);
  }
  if (event->waits_for != 0) {
    add(out, ",\"waits_for\":%llu", (unsigned long long)event->waits_for);
  }
  if (event->world != 0) {
    add_collective(out, event);
  }
  if (event->status < 0) {
    add(out, ",\"status\":\"%s\"", vt_status_get_name(event->status));
  }
  add(out, "}");
}

void vt__trace_text_add(vt__trace_out *out, const vt__trace_record *record) {
  const vt_trace_event *event = &record->event;
  uint64_t ns = record->end_ns - record->begin_ns;
  name_track(out, record);
  begin_event(out);
  add(out, ",\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"ts\":%llu.%03u,\"dur\":%llu.%03u,\"args\":",
      event->name, category_of(event), (int)getpid(), track_of(event), (unsigned long long)(record->begin_ns / 1000),
      (unsigned)(record->begin_ns % 1000), (unsigned long long)(ns / 1000), (unsigned)(ns % 1000));
  add_arguments(out, event);
  add(out, "}");
}
