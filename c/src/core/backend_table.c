// backend_table.c: what a backend's table must hold.
#include "core/backend_table.h"

#include "core/error.h"

// One method and whether it is there.
typedef struct method {
  const char *name;
  bool present;
} method;

static vt_status require_all(const method *methods, size_t count, const char *why) {
  for (size_t i = 0; i < count; i++) {
    if (!methods[i].present) {
      return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, "vt_backend_register", "the backend table lacks %s, which %s",
                          methods[i].name, why);
    }
  }
  return VT_OK;
}

static bool any(const method *methods, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (methods[i].present) {
      return true;
    }
  }
  return false;
}

#define METHOD(name) \
  { #name, ops->name != NULL }
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

vt_status vt__backend_check_table(const vt_backend_ops *ops, uint32_t caps) {
  bool has_async_queues = (caps & VT_CAP_ASYNC_QUEUES) != 0;
  bool has_graphs = (caps & VT_CAP_GRAPH_CAPTURE) != 0;
  const method required[] = {METHOD(alloc),
                             METHOD(free),
                             METHOD(copy),
                             METHOD(memset),
                             METHOD(queue_create),
                             METHOD(queue_destroy),
                             METHOD(queue_synchronize),
                             METHOD(queue_query),
                             METHOD(queue_get_ticket),
                             METHOD(queue_wait_ticket),
                             METHOD(queue_host_call),
                             METHOD(get_info)};
  const method pinned[] = {METHOD(pinned_alloc), METHOD(pinned_free)};
  const method events[] = {METHOD(event_create), METHOD(event_destroy), METHOD(event_record),
                           METHOD(event_query),  METHOD(event_wait),    METHOD(queue_after_event)};
  const method graphs[] = {METHOD(capture_begin), METHOD(capture_end), METHOD(capture_abort), METHOD(graph_launch),
                           METHOD(graph_destroy)};
  const method options[] = {METHOD(alloc_with), METHOD(export_fd)};
  VT_TRY(require_all(required, COUNT(required), "is required"));
  if (has_async_queues || any(pinned, COUNT(pinned))) {
    VT_TRY(require_all(pinned, COUNT(pinned), "asynchronous queues, or the other half of the group, need"));
  }
  if (has_async_queues || has_graphs || any(events, COUNT(events)) || any(graphs, COUNT(graphs))) {
    VT_TRY(require_all(events, COUNT(events), "asynchronous queues, graphs, or the rest of the group, need"));
  }
  if (has_graphs || any(graphs, COUNT(graphs))) {
    VT_TRY(require_all(graphs, COUNT(graphs), "the device's VT_CAP_GRAPH_CAPTURE, or the rest of the group, needs"));
  }
  if (any(options, COUNT(options))) {
    VT_TRY(require_all(options, COUNT(options), "the other half of the group needs"));
  }
  return VT_OK;
}
