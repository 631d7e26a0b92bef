// refused.c: runs of refusals, see inproc.h.
#include <string.h>

#include "comm/inproc/inproc.h"

// Whether a refusal of `number` follows the run directly. Called by whose turn it is.
static bool goes_on(const vt__refused_run *run, uint64_t number) {
  // relaxed: written by operations of this side only, in turn.
  uint64_t last = atomic_load_explicit(&((vt__refused_run *)(uintptr_t)run)->last, memory_order_relaxed);
  return last != 0 && last + 1 == number;
}

static size_t text_index(const vt__refused_run *run, uint64_t number) {
  return vt__min_size((size_t)(number - run->first), VT__REFUSED_TEXTS - 1);
}

const char *vt__refused_run_text(const vt__refused_run *run, uint64_t number) {
  return run->texts[text_index(run, number)];
}

static void write_text(char *to, const char *text) {
  size_t length = vt__min_size(strlen(text), sizeof(((vt__refused_run *)0)->texts[0]) - 1);
  memcpy(to, text, length);
  to[length] = 0;
}

static void add(vt__inproc *group, vt__refused_run *run, uint64_t number, const char *text) {
  if (!goes_on(run, number)) {
    run->first = number;
  }
  if (number - run->first < VT__REFUSED_TEXTS) {
    write_text(run->texts[number - run->first], text);
  }
  // release: partner is the acquire load in vt__refused_run_holds().
  atomic_store_explicit(&run->last, number, memory_order_release);
  // release: partner is the acquire load in vt__refused_run_holds(): who sees the bit sees the run.
  atomic_fetch_or_explicit(&group->alarm, VT__ALARM_REFUSED, memory_order_release);
}

bool vt__refused_run_holds(const vt__inproc *group, const vt__refused_run *run, uint64_t number) {
  // acquire: partner is the release in add(). The bit spares the usual case a look at one more line per peer.
  if (VT_LIKELY((atomic_load_explicit(&((vt__inproc *)(uintptr_t)group)->alarm, memory_order_acquire) & VT__ALARM_REFUSED) == 0)) {
    return false;
  }
  // acquire: partner is the release store in add(): the beginning and the text are of this run.
  return atomic_load_explicit(&((vt__refused_run *)(uintptr_t)run)->last, memory_order_acquire) >= number && run->first <= number;
}

// A refused call waits for nobody: it is told in its post if that is free, else in the run. Poison ends it as it is.
bool vt__op_refuse(vt__comm_op *op, vt__turns *turns, vt__refused_run *run, bool (*is_prepared)(vt__comm_op *op, bool *out_ended),
                   void (*publish)(vt__comm_op *op)) {
  bool ended = false;
  if (!goes_on(run, op->number) && is_prepared(op, &ended)) {
    publish(op);
  } else if (ended) {
    return true;  // and its turn is passed
  } else {
    add(vt__inproc_of(op), run, op->number, op->refusal);
    vt__bell_ring(&vt__inproc_rank_of(op)->bell);
  }
  turns->met = false;
  return vt__op_end(op, turns, VT_OK);
}
