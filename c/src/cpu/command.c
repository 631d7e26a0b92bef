// command.c: what each kind of command does.
#include <string.h>

#include "base/recycle.h"
#include "core/log.h"
#include "cpu/cpu.h"

static vt_status wait_for_other_queue(const vt__cpu_command *command) {
  vt__timeline *timeline = command->u.wait.timeline;
  vt_status status =
      vt__timeline_wait(timeline, command->u.wait.ticket, VT_WAIT_FOREVER, VT_WAIT_MODE_DEFAULT, "vt_queue_after_event");
  if (status != VT_OK) {
    const vt_error *cause = vt_last_error();
    return vt_error_set(status, cause->domain, cause->native, cause->function, "waited for queue %llu, which failed: %s",
                        (unsigned long long)timeline->queue_id, cause->message);
  }
  return VT_OK;
}

static vt_trace_kind trace_kind(const vt__cpu_command *command) {
  static const vt_trace_kind kinds[] = {
      [VT__CPU_COPY] = VT_TRACE_COPY,    [VT__CPU_COPY_BATCH] = VT_TRACE_COPY, [VT__CPU_COPY_2D] = VT_TRACE_COPY,
      [VT__CPU_FILL] = VT_TRACE_MEMSET,  [VT__CPU_CALL] = VT_TRACE_HOST_CALL,  [VT__CPU_WAIT] = VT_TRACE_WAIT,
      [VT__CPU_STAMP] = VT_TRACE_RECORD, [VT__CPU_LAUNCH] = VT_TRACE_GRAPH,    [VT__CPU_LANE_WAIT] = VT_TRACE_WAIT,
  };
  return kinds[command->kind];
}

const char *vt__cpu_command_function(const vt__cpu_command *command) {
  static const char *const functions[] = {
      [VT__CPU_COPY] = "vt_copy",          [VT__CPU_COPY_BATCH] = "vt_copy_batch", [VT__CPU_COPY_2D] = "vt_copy_2d",
      [VT__CPU_FILL] = "vt_memset",        [VT__CPU_CALL] = "vt_queue_host_func",  [VT__CPU_WAIT] = "vt_queue_after_event",
      [VT__CPU_STAMP] = "vt_event_record", [VT__CPU_LAUNCH] = "vt_graph_launch",   [VT__CPU_LANE_WAIT] = "vt_queue_after_event",
  };
  return functions[command->kind];
}

vt_status vt__cpu_command_run_other(vt__cpu_command *command, const vt__cpu_place *place) {
  switch ((vt__cpu_kind)command->kind) {
    case VT__CPU_COPY:
      memcpy(command->u.copy.dst, command->u.copy.src, command->u.copy.bytes);
      return VT_OK;
    case VT__CPU_COPY_BATCH:
    case VT__CPU_COPY_2D:
      vt__cpu_copy_run(command);
      return VT_OK;
    case VT__CPU_FILL:
      memset(command->u.fill.ptr, command->u.fill.value, command->u.fill.bytes);
      return VT_OK;
    case VT__CPU_CALL:
      return command->u.call.run(command->u.call.payload);
    case VT__CPU_WAIT:
      return wait_for_other_queue(command);
    case VT__CPU_STAMP:
      vt__cpu_event_stamp(command->u.stamp.event, command->u.stamp.generation);
      return VT_OK;
    case VT__CPU_LAUNCH:
      return vt__cpu_graph_run(command->u.graph, place);
    case VT__CPU_LANE_WAIT:
      vt__cpu_graph_wait_for_lane(place->graph, command);
      return VT_OK;
  }
  return vt_error_set(VT_ERR_INTERNAL, VT_DOMAIN_VT, 0, "", "command kind %u can't run in a queue", command->kind);
}

static void describe(const vt__cpu_command *command, vt_trace_event *event) {
  switch ((vt__cpu_kind)command->kind) {
    case VT__CPU_CALL:
      vt__trace_describe_call(&command->u.call, event);
      break;
    case VT__CPU_WAIT:
      event->waits_for = command->u.wait.timeline->queue_id;
      break;
    case VT__CPU_COPY:
      event->bytes = command->u.copy.bytes;
      break;
    case VT__CPU_COPY_BATCH:
    case VT__CPU_COPY_2D:
      event->bytes = vt__cpu_copy_bytes(command);
      event->name = command->kind == VT__CPU_COPY_2D ? "copy rows" : "copy batch";
      break;
    case VT__CPU_FILL:
      event->bytes = command->u.fill.bytes;
      break;
    case VT__CPU_STAMP:
    case VT__CPU_LAUNCH:
    case VT__CPU_LANE_WAIT:
      break;
  }
}

vt_status vt__cpu_command_run_traced(vt__cpu_command *command, const vt__cpu_place *place) {
  char name[VT__CPU_NAME_BYTES];  // a host function may release the last reference to its queue
  memcpy(name, place->queue_name, sizeof(name));
  vt_trace_event event = vt__trace_event_of(trace_kind(command));
  event.queue_id = place->queue_id;
  event.queue_name = name;
  event.sequence = place->sequence;
  event.branch = place->branch;
  describe(command, &event);
  vt__trace_emit(&event);
  vt_status status = vt__cpu_command_run_untraced(command, place);
  event.is_end = 1;
  event.status = status;
  describe(command, &event);
  vt__trace_emit(&event);
  return status;
}

void vt__cpu_command_cancel(vt__cpu_command *command) {
  if (command->kind == VT__CPU_CALL && command->u.call.cancel != NULL) {
    command->u.call.cancel(command->u.call.payload);
  } else if (command->kind == VT__CPU_LAUNCH) {
    vt__cpu_graph_cancel(command->u.graph);
  }
}

void vt__cpu_command_drop(vt__cpu_command *command) {
  switch ((vt__cpu_kind)command->kind) {
    case VT__CPU_CALL:
      if (command->u.call.drop != NULL) {
        command->u.call.drop(command->u.call.payload);
      }
      break;
    case VT__CPU_WAIT:
      vt__timeline_unref(command->u.wait.timeline);
      break;
    case VT__CPU_STAMP:
      vt__cpu_event_unref(command->u.stamp.event);
      break;
    case VT__CPU_LAUNCH:
      vt__cpu_graph_unref(command->u.graph);
      break;
    case VT__CPU_COPY_BATCH:
      vt__recycle_put(command->u.batch.kept);
      break;
    case VT__CPU_COPY:
    case VT__CPU_COPY_2D:
    case VT__CPU_FILL:
    case VT__CPU_LANE_WAIT:
      break;
  }
}
