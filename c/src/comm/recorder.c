// recorder.c: see recorder.h. All accesses are relaxed: the recorder tells people what happened and publishes nothing else.
#include "comm/recorder.h"

#define put(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)
#define get(field) atomic_load_explicit(&(field), memory_order_relaxed)

vt__comm_mark vt__recorder_begin(vt__comm_recorder *recorder, const vt_comm_record *what) {
  uint64_t index = atomic_fetch_add_explicit(&recorder->next, 1, memory_order_relaxed);
  vt__comm_entry *entry = &recorder->entries[index % VT__RECORDER_ENTRIES];
  put(entry->index, index);
  put(entry->sequence, what->sequence);
  put(entry->count, what->count);
  put(entry->start_ticks, vt__ticks());
  put(entry->end_ticks, 0);
  put(entry->op, what->op);
  put(entry->dtype, what->dtype);
  put(entry->reduce_op, what->reduce_op);
  put(entry->peer, what->peer);
  put(entry->state, VT_COMM_STATE_STARTED);
  put(entry->status, VT_OK);
  return (vt__comm_mark)entry + index / VT__RECORDER_ENTRIES % sizeof(*entry);
}

void vt__recorder_end(vt__comm_mark mark, vt_status status) {
  vt__comm_entry *entry = vt__recorder_entry(mark);
  if (entry == NULL) {
    return;
  }
  put(entry->end_ticks, vt__ticks());
  put(entry->status, status);
  put(entry->state, status == VT_OK ? VT_COMM_STATE_FINISHED : VT_COMM_STATE_FAILED);
}

bool vt__recorder_read(vt__comm_recorder *recorder, uint64_t age, vt_comm_record *out) {
  uint64_t begun = get(recorder->next);
  if (age >= begun || age >= VT__RECORDER_ENTRIES) {
    return false;
  }
  vt__comm_entry *entry = &recorder->entries[(begun - 1 - age) % VT__RECORDER_ENTRIES];
  *out = (vt_comm_record){
      .sequence = get(entry->sequence),
      .count = get(entry->count),
      .start_ticks = get(entry->start_ticks),
      .end_ticks = get(entry->end_ticks),
      .op = get(entry->op),
      .dtype = get(entry->dtype),
      .reduce_op = get(entry->reduce_op),
      .peer = get(entry->peer),
      .state = get(entry->state),
      .status = get(entry->status),
  };
  return true;
}

bool vt__recorder_find(vt__comm_recorder *recorder, bool message, vt_comm_record *out) {
  for (uint64_t age = 0; vt__recorder_read(recorder, age, out); age++) {
    bool is_message = out->op == VT_COMM_OP_SEND || out->op == VT_COMM_OP_RECV;
    if (is_message == message && out->sequence != 0 && (!message || out->end_ticks == 0)) {
      return true;
    }
  }
  return false;
}
