// trace.c: what the trace says of collectives.
#include "comm/comm.h"
#include "comm/text.h"

static const char *name_of(const vt__comm_call_data *call) {
  return (call->flags & VT__CALL_AGREE) != 0 ? "agreement" : vt__comm_op_name(call->op);
}

static uint64_t bytes_of(const vt__comm_call_data *call) {
  size_t elements = 1;
  size_t bytes = 0;
  (void)vt_dtype_get_block(call->dtype, &elements, &bytes);  // a refused call may be of no type: then it has no bytes
  return call->count / elements * bytes;
}

// Operations of one kind keep their name in a batch; where they differ in something, it is left out.
static void add(vt_trace_event *event, const vt__comm_call_data *call, uint64_t number) {
  vt_dtype dtype = !vt__comm_traits_of(call->op)->has_data ? -1 : call->dtype;
  bool first = event->operations++ == 0;
  event->name = first || strcmp(event->name, name_of(call)) == 0 ? name_of(call) : "batch";
  event->rank = first || event->rank == call->comm->rank ? call->comm->rank : -1;
  event->dtype = first || event->dtype == dtype ? dtype : -1;
  event->world = call->comm->world;
  event->count += call->count;
  event->bytes += dtype < 0 ? 0 : bytes_of(call);
  event->comm_sequence = first ? number : event->comm_sequence;
}

// A host call is described twice.
static void start(vt_trace_event *event) {
  event->operations = 0;
  event->count = 0;
  event->bytes = 0;
}

void vt__comm_trace_call(vt_trace_event *event, const vt__comm_call_data *call, uint64_t number) {
  start(event);
  add(event, call, number);
}

void vt__comm_trace_block(vt_trace_event *event, const vt__comm_block *block, const vt_queue *queue) {
  start(event);
  for (size_t i = 0; i < block->count; i++) {
    const vt__comm_op *op = &block->ops[i];
    if (queue == NULL || op->queue == queue) {
      add(event, &op->call, event->is_end != 0 ? op->number : 0);
    }
  }
}
