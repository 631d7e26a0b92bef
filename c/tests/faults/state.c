// state.c: everything that can be counted or listed through the public interface.
#include <stdarg.h>

#include "faults.h"

static void add(fault_state *state, const char *format, ...) VT_PRINTF_LIKE(2, 3);
static void add(fault_state *state, const char *format, ...) {
  size_t used = strlen(state->text);
  va_list list;
  va_start(list, format);
  (void)vsnprintf(state->text + used, sizeof(state->text) - used, format, list);
  va_end(list);
}

static void add_device(fault_state *state, vt_device device) {
  const vt_backend *backend = vt_backend_find(device);
  if (backend == NULL) {
    return;
  }
  add(state, "%d:%d '%s'", device.type, device.index, vt_backend_get_name(backend));
  for (int32_t kind = VT_MEMORY_DEVICE; kind <= VT_MEMORY_PINNED; kind++) {
    vt_memory_stats stats = VT_MEMORY_STATS_INIT;
    (void)vt_memory_get_stats(device, kind, &stats);
    add(state, " %llu in %llu", (unsigned long long)stats.live_bytes, (unsigned long long)stats.live_count);
  }
  add(state, "\n");
}

static void add_op(fault_state *state, vt_op_id op) {
  add(state, "%s\n", vt_op_get_name(op));
  for (vt_device_type type = 0; type < VT_DEVICE_TYPE_COUNT; type++) {
    char text[512];
    if (vt_op_is_registered(op, type)) {
      (void)vt_op_explain(op, type, NULL, NULL, text, sizeof(text));
      add(state, " %d: %s\n", type, text);
    }
  }
}

void state_take(fault_state *state, bool all) {
  state->text[0] = 0;
  for (int32_t kind = 0; kind < VT_HANDLE_KIND_COUNT; kind++) {
    state->handles[kind] = vt_handle_get_live_count(kind);
  }
  if (!all) {
    return;
  }
  for (vt_device_type type = 0; type < VT_DEVICE_TYPE_COUNT; type++) {
    for (int32_t index = 0; index < VT_MAX_DEVICES_PER_TYPE; index++) {
      add_device(state, (vt_device){type, index});
    }
  }
  for (vt_op_id op = 1; vt_op_get_name(op) != NULL; op++) {
    add_op(state, op);
  }
  add(state, "generation %llu\n", (unsigned long long)vt_op_get_generation());
}

const char *state_difference(const fault_state *a, const fault_state *b) {
  static char text[1024];
  static const char *const names[VT_HANDLE_KIND_COUNT] = {"queues", "events", "graphs", "arenas", "communicators", "groups"};
  for (int32_t kind = 0; kind < VT_HANDLE_KIND_COUNT; kind++) {
    if (a->handles[kind] != b->handles[kind]) {
      (void)snprintf(text, sizeof(text), "%zu %s, then %zu", a->handles[kind], names[kind], b->handles[kind]);
      return text;
    }
  }
  size_t at = 0;
  while (a->text[at] != 0 && a->text[at] == b->text[at]) {
    at++;
  }
  if (a->text[at] == b->text[at]) {
    return NULL;
  }
  at = at < 80 ? 0 : at - 80;
  (void)snprintf(text, sizeof(text), "\"%.200s\", then \"%.200s\"", a->text + at, b->text + at);
  return text;
}
