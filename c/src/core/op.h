// op.h: operations, their lists of providers, and the counters, as the files op*.c share them.
#ifndef VT_CORE_OP_H
#define VT_CORE_OP_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/error.h"
#include "core/text.h"
#include "vllm_vt/op_control.h"
#include "vllm_vt/op_reference.h"

#define VT__OP_NAME_MAX 63

// A registered provider, or the reference tier of an operation on a type. Never freed.
typedef struct vt__op_entry {
  vt_op_provider provider;  // first: what a look-up hands out
  uint32_t number;          // of its counters
  char name[VT__OP_NAME_MAX + 1];
  // The distinct reasons of its refusals, in order of appearance; see vt__op_note_decline().
  _Atomic(const char *) reasons[VT_OP_STATS_REASONS - 1];
  _Atomic(const char *) last_reason;
} vt__op_entry;

typedef struct vt__op_caps {
  struct vt__op_caps *before;  // published for the same type
  size_t bytes;
  _Alignas(16) unsigned char data[];
} vt__op_caps;

// An immutable snapshot. Never freed, since a reader may still be looking at it; the same state gives the same snapshot again.
typedef struct vt__op_list {
  const vt__op_entry *plain;  // the first one if it wants every call, else NULL
  uint32_t plain_number;
  bool fresh;                  // not published yet
  const vt__op_caps *caps;     // of the device type; NULL until published
  struct vt__op_list *before;  // made for the same operation and type
  size_t count;                // enabled, best first
  size_t total;                // behind them those that are disabled, best first
  vt__op_entry *entries[];
} vt__op_list;

typedef struct vt__op_reference_tier {
  vt_op_reference reference;
  vt_op_id op;
  _Atomic uint32_t said;  // bit per type: its first use was logged
  vt__op_entry entries[VT_DEVICE_TYPE_COUNT];
} vt__op_reference_tier;

typedef struct vt__op {
  _Alignas(VT_CACHE_LINE) _Atomic(vt__op_list *) lists[VT_DEVICE_TYPE_COUNT];
  // Written only when it changes, so that look-ups on many cores share the line.
  _Atomic(const vt__op_entry *) last[VT_DEVICE_TYPE_COUNT];
  _Atomic(vt__op_reference_tier *) tier;
  // The mutex guards what follows.
  vt__op_list *made[VT_DEVICE_TYPE_COUNT];  // all snapshots
  vt__op_list *next[VT_DEVICE_TYPE_COUNT];  // about to be published
  char name[VT__OP_NAME_MAX + 1];
} vt__op;

// Guards all changes: names, lists, what is disabled.
extern pthread_mutex_t vt__op_mutex;

// Ids count from 1. The first operations need neither memory nor a load to be found.
enum { VT__OP_FIRST = 64 };
extern vt__op vt__op_first[VT__OP_FIRST];

// Where the operation of an id lives. NULL for an id that can't have been given out.
vt__op *vt__op_find_far(vt_op_id id);
static inline vt__op *vt__op_find(vt_op_id id) {
  return VT_LIKELY((uint32_t)id - 1u < (uint32_t)VT__OP_FIRST) ? &vt__op_first[id - 1] : vt__op_find_far(id);
}

// How many operations there are.
int32_t vt__op_get_count(void);

// Checks the name of an operation or a provider.
vt_status vt__op_check_name(const char *name, const char *function);

// The name, or "an unknown operation".
const char *vt__op_name_for_text(vt_op_id id);

static inline bool vt__op_is_type(vt_device_type type) {
  return (uint32_t)type < (uint32_t)VT_DEVICE_TYPE_COUNT;
}

// Whether `a` comes before `b`: higher priority, then smaller name by bytes.
bool vt__op_before(const vt__op_entry *a, const vt__op_entry *b);

// The entry of a name, disabled ones included. NULL if there is none.
vt__op_entry *vt__op_entry_of(const vt__op_list *list, const char *name);
bool vt__op_entry_is_enabled(const vt__op_list *list, const vt__op_entry *entry);

// Notes that something changed, for vt_op_get_generation().
void vt__op_changed(void);

// Makes all snapshots anew, or none where there is no memory. The mutex is held.
bool vt__op_rebuild(void);

// What the snapshots depend on. The mutex is held.
bool vt__op_name_is_disabled(const char *name);
const vt__op_caps *vt__op_caps_of(vt_device_type type);

bool vt__op_is_strict(void);
bool vt__op_tier_is_disabled(void);

// Built-ins: reads VT_OP_PROVIDER_DISABLE; and, when the others have registered, notes names in it that nobody has.
bool vt__op_env_read(void);
bool vt__op_env_note(void);

// Counters.

enum {
  VT__OP_SELECTIONS,
  VT__OP_FALLBACKS,
  VT__OP_REASONS,  // and the places behind it: one per reason, the last one for other reasons
  VT__OP_COUNTS = VT__OP_REASONS + VT_OP_STATS_REASONS,
};

// The counters of one provider on one thread: a line, so nothing is shared.
typedef struct vt__op_counts {
  _Alignas(VT_CACHE_LINE) _Atomic uint64_t at[VT__OP_COUNTS];
} vt__op_counts;

_Static_assert(sizeof(vt__op_counts) == VT_CACHE_LINE, "the counters of a provider should fill one cache line");

// This thread's counters, by number.
typedef struct vt__op_mine {
  vt__op_counts *counts;
  uint32_t capacity;
} vt__op_mine;
extern _Thread_local vt__op_mine vt__op_mine_now;

// Makes room for the counters of `count` further entries. False if there is no memory. The mutex is held.
bool vt__op_counters_allot(uint32_t count, uint32_t *out_first);

void vt__op_count_slow(uint32_t number, int place);
static inline void vt__op_count(uint32_t number, int place) {
  vt__op_mine *mine = &vt__op_mine_now;
  if (VT_UNLIKELY(number >= mine->capacity)) {
    vt__op_count_slow(number, place);
    return;
  }
  // relaxed: only this thread writes; readers want some recent value.
  _Atomic uint64_t *at = &mine->counts[number].at[place];
  atomic_store_explicit(at, atomic_load_explicit(at, memory_order_relaxed) + 1, memory_order_relaxed);
}

// Counts a refusal.
void vt__op_note_decline(vt__op_entry *entry, const char *reason);

static inline void vt__op_note_selected(vt__op *op, vt_device_type type, const vt__op_entry *entry, uint32_t number) {
  vt__op_count(number, VT__OP_SELECTIONS);
  // acquire, release: each other's partners, for vt_op_get_last_selected().
  if (VT_UNLIKELY(atomic_load_explicit(&op->last[type], memory_order_relaxed) != entry)) {
    atomic_store_explicit(&op->last[type], entry, memory_order_release);
  }
}

// Look-ups.

// One look-up.
typedef struct vt__op_request {
  vt_op_id id;
  vt_device_type type;
  const vt__op_list *list;     // NULL: no provider
  const vt_op_policy *policy;  // NULL: none
  const void *descriptor;
  const char *below;  // NULL: from the top
  bool strict;
} vt__op_request;

// Whom a look-up chooses from. A candidate that the policy names and that isn't there, or is disabled, is NULL.
size_t vt__op_candidate_count(const vt__op_request *request);
vt__op_entry *vt__op_candidate(const vt__op_request *request, size_t i);
const char *vt__op_candidate_name(const vt__op_request *request, size_t i);

// Why a candidate doesn't serve the call; NULL if it does. Counts nothing.
const char *vt__op_refusal(const vt__op_request *request, size_t i);

// Checks a policy and copies what the caller's version of it has.
vt_status vt__op_check_policy(const vt_op_policy *policy, vt_op_policy *out, const char *function);

// Appends who refused, from candidate `first` on, and why: `: "a" refused: no f16; "b" ...`.
void vt__op_text_refusals(vt__text *text, const vt__op_request *request, size_t first);

#endif
