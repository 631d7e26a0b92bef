// backend.c: the CPU's backend table, its memory, and its logical devices.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "core/isa.h"
#include "core/log.h"
#include "core/registry.h"
#include "cpu/cpu.h"

#define CPU_ALIGN 64

static vt_status cpu_alloc(void *self, size_t bytes, void **out_ptr) {
  (void)self;
  void *ptr = vt__malloc_aligned(CPU_ALIGN, bytes);
  if (ptr == NULL) {
    return vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, "vt_alloc", "no room for %zu bytes of host memory", bytes);
  }
  *out_ptr = ptr;
  return VT_OK;
}

static vt_status cpu_free(void *self, void *ptr) {
  (void)self;
  if (!vt__cpu_mapping_free(ptr)) {
    vt__free(ptr);
  }
  return VT_OK;
}

static vt_status cpu_memset(void *self, void *queue, void *ptr, uint8_t value, size_t bytes) {
  (void)self;
  if (VT_LIKELY(vt__cpu_begin_plain(queue))) {
    memset(ptr, value, bytes);
    return VT_OK;
  }
  vt__cpu_command command = {.kind = VT__CPU_FILL, .u.fill = {.ptr = ptr, .bytes = bytes, .value = value}};
  return vt__cpu_submit(queue, &command);
}

static vt_status cpu_host_call(void *self, void *queue, const vt_host_call *call) {
  (void)self;
  if (VT_LIKELY(vt__cpu_begin_plain(queue))) {
    // The caller's copy of the payload outlives what runs at once.
    void *payload = (void *)(uintptr_t)call->payload;
    vt_status status = call->run(payload);
    if (call->drop != NULL) {
      call->drop(payload);
    }
    return status;
  }
  vt__cpu_command command = {.kind = VT__CPU_CALL, .u.call = *call};
  return vt__cpu_submit(queue, &command);
}

static uint64_t pages(int name) {
  long count = sysconf(name);
  long size = sysconf(_SC_PAGESIZE);
  return count > 0 && size > 0 ? (uint64_t)count * (uint64_t)size : 0;
}

static vt_status cpu_get_info(void *self, vt_device_info *out_info) {
  (void)self;
  out_info->unified_memory = 1;
  out_info->host_addressable = 1;
  out_info->memory_free = pages(_SC_AVPHYS_PAGES);
  out_info->memory_total = pages(_SC_PHYS_PAGES);
  out_info->caps = VT_CAP_ASYNC_QUEUES | VT_CAP_EVENTS | VT_CAP_GRAPH_CAPTURE | VT_CAP_AUX_QUEUE;
  (void)snprintf(out_info->name, sizeof(out_info->name), "CPU (%s)", vt__isa_name(vt__isa_get()));
  return VT_OK;
}

static const vt_backend_ops cpu_ops = {
    .struct_size = sizeof(vt_backend_ops),
    .abi_major = VT_BACKEND_ABI_MAJOR,
    .abi_minor = VT_BACKEND_ABI_MINOR,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .pinned_alloc = cpu_alloc,  // all host memory is within reach
    .pinned_free = cpu_free,
    .copy = vt__cpu_copy,
    .memset = cpu_memset,
    .queue_create = vt__cpu_queue_create,
    .queue_destroy = vt__cpu_queue_destroy,
    .queue_synchronize = vt__cpu_queue_synchronize,
    .queue_query = vt__cpu_queue_query,
    .queue_get_ticket = vt__cpu_queue_get_ticket,
    .queue_wait_ticket = vt__cpu_queue_wait_ticket,
    .queue_host_call = cpu_host_call,
    .event_create = vt__cpu_event_create,
    .event_destroy = vt__cpu_event_destroy,
    .event_record = vt__cpu_event_record,
    .event_query = vt__cpu_event_query,
    .event_wait = vt__cpu_event_wait,
    .event_wait_by = vt__cpu_event_wait_by,
    .queue_after_event = vt__cpu_queue_after_event,
    .event_get_elapsed = vt__cpu_event_get_elapsed,
    .capture_begin = vt__cpu_capture_begin,
    .capture_end = vt__cpu_capture_end,
    .capture_abort = vt__cpu_capture_abort,
    .graph_launch = vt__cpu_graph_launch,
    .graph_destroy = vt__cpu_graph_destroy,
    .graph_get_node_count = vt__cpu_graph_get_node_count,
    .get_info = cpu_get_info,
    .copy_batch = vt__cpu_copy_batch,
    .copy_2d = vt__cpu_copy_2d,
    .alloc_with = vt__cpu_alloc_with,
    .export_fd = vt__cpu_export_fd,
};

// VT_CPU_DEVICES=n makes n logical devices of the one CPU, for tests of what takes several.
static int32_t wanted_devices(void) {
  const char *text = getenv("VT_CPU_DEVICES");
  if (text == NULL || text[0] == 0) {
    return 1;
  }
  char *end;
  long count = strtol(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != 0 || count < 1 || count > VT_MAX_DEVICES_PER_TYPE) {
    vt__log(VT_LOG_WARN, "VT_CPU_DEVICES=%s is not a number from 1 to %d; there is one CPU device", text, VT_MAX_DEVICES_PER_TYPE);
    return 1;
  }
  return (int32_t)count;
}

bool vt__cpu_register(void) {
  int32_t count = wanted_devices();
  for (int32_t index = 0; index < count; index++) {
    vt_status status = vt_backend_register((vt_device){VT_DEVICE_CPU, index}, "cpu", &cpu_ops, NULL);
    if (status == VT_ERR_OUT_OF_MEMORY) {
      return false;
    }
    if (status != VT_OK) {
      vt__log(VT_LOG_WARN, "cpu:%d was not registered: %s", index, vt_last_error()->message);
    }
  }
  return true;
}
