// recorder.h: the flight recorder: the last 256 operations of a communicator.
//
// Fields are written and read one by one, so a reader may see an entry half way between two operations.
#ifndef VT_COMM_RECORDER_H
#define VT_COMM_RECORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/macros.h"
#include "vllm_vt/comm_inspect.h"

#define VT__RECORDER_ENTRIES 256u

typedef struct vt__comm_entry {
  _Alignas(VT_CACHE_LINE) _Atomic uint64_t sequence;  // 0 = never used
  _Atomic uint64_t count;
  _Atomic uint64_t start_ticks;
  _Atomic uint64_t end_ticks;
  _Atomic int32_t op;
  _Atomic int32_t dtype;
  _Atomic int32_t reduce_op;
  _Atomic int32_t peer;
  _Atomic int32_t state;
  _Atomic int32_t status;
  _Atomic uint64_t index;  // among all that were begun, from 0
} vt__comm_entry;

_Static_assert(sizeof(vt__comm_entry) == VT_CACHE_LINE, "an entry fills a cache line");

typedef struct vt__comm_recorder {
  _Atomic uint64_t next;  // entries ever begun
  vt__comm_entry entries[VT__RECORDER_ENTRIES];
} vt__comm_recorder;

// What an operation keeps of its entry; NULL: it has none. It points to that byte of the entry that has the number of the lap
// around the ring, modulo the entry's size. So an operation that is still in progress when its entry was taken for a later one is
// told apart (until 64 laps later), and writes nothing any more.
typedef const unsigned char *vt__comm_mark;

// Begins an entry. `what` gives everything but times, state and status.
vt__comm_mark vt__recorder_begin(vt__comm_recorder *recorder, const vt_comm_record *what);

// The entry, or NULL if it was taken for a later operation.
static inline vt__comm_entry *vt__recorder_entry(vt__comm_mark mark) {
  uintptr_t lap = (uintptr_t)mark % sizeof(vt__comm_entry);
  vt__comm_entry *entry = (vt__comm_entry *)((uintptr_t)mark - lap);
  // relaxed: a record for people, nothing is published by it. So are all fields here.
  uint64_t index = atomic_load_explicit(&entry->index, memory_order_relaxed);
  return index / VT__RECORDER_ENTRIES % sizeof(vt__comm_entry) == lap ? entry : NULL;
}

static inline void vt__recorder_state(vt__comm_mark mark, vt_comm_state state) {
  vt__comm_entry *entry = vt__recorder_entry(mark);
  if (VT_LIKELY(entry != NULL)) {
    // relaxed: see vt__recorder_entry().
    atomic_store_explicit(&entry->state, state, memory_order_relaxed);
  }
}

void vt__recorder_end(vt__comm_mark mark, vt_status status);

// Copies the entry begun `age` entries ago (0 = the latest). False if there is none.
bool vt__recorder_read(vt__comm_recorder *recorder, uint64_t age, vt_comm_record *out);

// Finds the latest collective, or the latest message in progress. False if there is none.
bool vt__recorder_find(vt__comm_recorder *recorder, bool message, vt_comm_record *out);

#endif
