// graph.c: the graph handle, capture scopes and launches: checks and lifetimes, then one method of the backend.
#include "vllm_vt/graph.h"

#include "core/capture.h"
#include "core/validate.h"

struct vt_graph {
  vt__handle handle;
  const vt_backend *backend;
  void *native;
};

static void finalize(vt__handle *handle) {
  vt_graph *graph = (vt_graph *)handle;
  if (vt__validate_is_on()) {
    vt__validate_graph_gone(graph->handle.id);
  }
  graph->backend->ops.graph_destroy(graph->backend->self, graph->native);
  vt__handle_recycle(handle);
}

vt__handle_pool vt__graph_pool = {
    .tag = 0x47524150, .object_size = 64, .slab_objects = 32, .finalize = finalize, .mutex = PTHREAD_MUTEX_INITIALIZER};

_Static_assert(sizeof(struct vt_graph) <= 64, "the pool's object_size must hold a graph");

static vt_status check(const vt_graph *graph, const char *function) {
  return vt__check_live(graph, &vt__graph_pool, "graph", function);
}

vt_status vt_graph_begin_capture(vt_queue *queue) {
  VT_TRY(vt__queue_check_submit(queue, __func__));
  const vt_backend *backend = queue->backend;
  if (vt__queue_is_recording(queue)) {
    vt_status status =
        vt__fail(VT_ERR_FAILED_PRECONDITION, "queue %llu is capturing already", (unsigned long long)queue->handle.id);
    return vt__queue_refused(queue, status, VT__CALLER);
  }
  if (backend->ops.capture_begin == NULL) {
    return vt__fail(VT_ERR_UNSUPPORTED, "backend '%s' can't capture", backend->name);
  }
  VT_TRY(vt__capture_begin(queue, __func__));
  uint64_t serial = vt__error_serial();
  vt_status status = vt__backend_failed(backend, "capture_begin", backend->ops.capture_begin(backend->self, queue->native), serial);
  if (status != VT_OK) {
    vt__capture_close(queue);
  } else if (vt__validate_is_on()) {
    vt__validate_capture_begun(queue, VT__HERE);
  }
  return status;
}

static vt_status check_capturing(vt_queue *queue, const char *function) {
  VT_TRY(vt__check_usable(function));
  VT_TRY(vt__check_live(queue, &vt__queue_pool, "queue", function));
  return vt__capture_check_origin(queue, function);
}

static vt_status abort_capture(vt_queue *queue) {
  const vt_backend *backend = queue->backend;
  uint64_t serial = vt__error_serial();
  vt_status status = vt__backend_failed(backend, "capture_abort", backend->ops.capture_abort(backend->self, queue->native), serial);
  vt__capture_close(queue);
  return status;
}

vt_status vt_graph_abort_capture(vt_queue *queue) {
  VT_TRY(check_capturing(queue, __func__));
  return abort_capture(queue);
}

// Turns the complete capture of `queue` into a graph, and closes it in any case.
static vt_status instantiate(vt_queue *queue, vt_graph **out_graph) {
  const vt_backend *backend = queue->backend;
  vt_graph *graph = vt__handle_new(&vt__graph_pool);
  if (graph == NULL) {
    (void)abort_capture(queue);  // the error to report is the lack of memory
    return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, "vt_graph_end_capture", "no memory for a graph");
  }
  graph->backend = backend;
  uint64_t serial = vt__error_serial();
  vt_status status = backend->ops.capture_end(backend->self, queue->native, &graph->native);
  status = vt__backend_failed(backend, "capture_end", status, serial);
  if (vt__validate_is_on() && status == VT_OK) {
    vt__validate_graph_made(vt__capture_get_id(queue->capture), graph->handle.id);
  }
  vt__capture_close(queue);
  if (status != VT_OK) {
    vt__handle_discard(graph);
    return status;
  }
  *out_graph = graph;
  return VT_OK;
}

static void store(vt_queue *queue, vt_graph *graph) {
  pthread_mutex_lock(&queue->mutex);
  vt_graph *before = queue->stored;
  queue->stored = graph;
  pthread_mutex_unlock(&queue->mutex);
  if (before != NULL) {
    vt__handle_unref(before);
  }
}

vt_status vt_graph_end_capture(vt_queue *queue, vt_graph **out_graph) {
  VT_TRY(check_capturing(queue, __func__));
  vt_status status = vt__capture_check_complete(queue, VT__HERE);
  if (status != VT_OK) {
    vt__saved_error first;
    vt__error_save(&first, status);
    (void)abort_capture(queue);  // the failure to report is the first one
    return vt__error_restore(&first);
  }
  vt_graph *graph = NULL;
  vt__handle_ref(queue);  // the capture's own reference may be the last one
  status = instantiate(queue, &graph);
  if (status == VT_OK && out_graph != NULL) {
    *out_graph = graph;
  } else if (status == VT_OK) {
    store(queue, graph);
  }
  vt__handle_unref(queue);
  return status;
}

static vt_status launch(vt_graph *graph, vt_queue *queue, vt__call_site site) {
  const vt_backend *backend = queue->backend;
  if (vt__queue_is_recording(queue)) {
    return vt_error_set(VT_ERR_FAILED_PRECONDITION, VT_DOMAIN_VT, 0, site.function,
                        "queue %llu is capturing: a graph can't be launched on it", (unsigned long long)queue->handle.id);
  }
  if (graph->backend != backend) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, site.function, "graph %llu is of %s, queue %llu of %s",
                        (unsigned long long)graph->handle.id, vt__device_name(graph->backend->device).text,
                        (unsigned long long)queue->handle.id, vt__device_name(backend->device).text);
  }
  bool validates = vt__validate_is_on();
  if (validates) {
    vt__validate_launch_check(graph->handle.id, queue, site);
  }
  uint64_t serial = vt__error_serial();
  vt_status status = backend->ops.graph_launch(backend->self, graph->native, queue->native);
  status = vt__error_rename(vt__backend_failed(backend, "graph_launch", status, serial), "vt_graph_launch", site.function);
  if (validates && status == VT_OK) {
    vt__validate_launch_note(graph->handle.id, queue, site);
  }
  return status;
}

vt_status vt_graph_launch(vt_graph *graph, vt_queue *queue) {
  VT_TRY(vt__queue_check_submit(queue, __func__));
  vt_status status = check(graph, __func__);
  if (status == VT_OK) {
    status = launch(graph, queue, VT__HERE);
  }
  return vt__queue_refused(queue, status, VT__CALLER);
}

vt_status vt_queue_replay(vt_queue *queue) {
  VT_TRY(vt__queue_check_submit(queue, __func__));
  pthread_mutex_lock(&queue->mutex);
  vt_graph *graph = queue->stored;
  if (graph != NULL) {
    vt__handle_ref(graph);  // another thread may replace it meanwhile
  }
  pthread_mutex_unlock(&queue->mutex);
  vt_status status;
  if (graph == NULL) {
    status = vt__fail(VT_ERR_FAILED_PRECONDITION, "queue %llu keeps no graph: end a capture with out_graph NULL first",
                      (unsigned long long)queue->handle.id);
  } else {
    status = launch(graph, queue, VT__HERE);
    vt__handle_unref(graph);
  }
  return vt__queue_refused(queue, status, VT__CALLER);
}

int32_t vt_queue_is_capturing(vt_queue *queue) {
  if (vt__check_live(queue, &vt__queue_pool, "queue", __func__) != VT_OK) {
    return 0;
  }
  // relaxed: a snapshot.
  return (atomic_load_explicit(&queue->state, memory_order_relaxed) & VT__QUEUE_CAPTURING) != 0;
}

vt_status vt_graph_retain(vt_graph *graph) {
  return vt__retain(graph, &vt__graph_pool, "graph", __func__);
}

void vt_graph_release(vt_graph *graph) {
  vt__release(graph, &vt__graph_pool, "graph", __func__);
}

vt_status vt_graph_get_node_count(vt_graph *graph, size_t *out_count) {
  VT_TRY(check(graph, __func__));
  VT_CHECK_ARG(out_count != NULL, "out_count is NULL");
  const vt_backend *backend = graph->backend;
  if (backend->ops.graph_get_node_count == NULL) {
    return vt__fail(VT_ERR_UNSUPPORTED, "backend '%s' doesn't count nodes", backend->name);
  }
  return backend->ops.graph_get_node_count(backend->self, graph->native, out_count);
}

vt_status vt_graph_get_device(vt_graph *graph, vt_device *out_device) {
  VT_TRY(check(graph, __func__));
  VT_CHECK_ARG(out_device != NULL, "out_device is NULL");
  *out_device = graph->backend->device;
  return VT_OK;
}

uint64_t vt_graph_get_id(vt_graph *graph) {
  return check(graph, __func__) == VT_OK ? graph->handle.id : 0;
}

void *vt_graph_get_native(vt_graph *graph) {
  if (check(graph, __func__) != VT_OK || graph->backend->ops.graph_get_native == NULL) {
    return NULL;
  }
  return graph->backend->ops.graph_get_native(graph->backend->self, graph->native);
}
