// checker.c: see checker.h.
//
// All ranks' actions of one step run at the same time, so they are looked at together: what one of them writes, no other one may
// read or write. Then they are done one after the other, on symbols.
#include "checker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_STEPS 64

// One byte of a rank's memory. Marks belong to a step: they count from `base` on.
typedef struct cell {
  symbol value;
  uint32_t writer;   // number of the action that writes it in this step
  uint32_t reader;   // number of an action that reads it in this step; SEVERAL: more than one
  size_t read_from;  // at which place of that action
} cell;

#define SEVERAL UINT32_MAX

typedef struct numbered {
  vt__algo_action action;
  int32_t rank;  // that does it
} numbered;

typedef struct checker {
  const vt__algo *algo;
  scenario *s;
  cell *memory[MOST_RANKS];  // buffers, then the post
  size_t post_at[MOST_RANKS];
  size_t size[MOST_RANKS];
  numbered *actions;
  size_t count;
  uint32_t base;  // marks of this step are above it
  char wrong[400];
} checker;

static bool complain(checker *k, const char *format, ...) {
  char text[240];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  (void)snprintf(k->wrong, sizeof k->wrong, "operation %d by %s, world %d, root %d, %zu bytes of %zu, %s: %s", k->s->call.op,
                 k->algo->name, k->s->call.world, k->s->call.root, k->s->call.bytes, k->s->call.element, k->s->form, text);
  return false;
}

// Byte `i` of a place of a rank, or NULL if it lies in no buffer.
static cell *cell_at(checker *k, vt__algo_place place, size_t i) {
  const layout *at = &k->s->layouts[place.rank];
  size_t offset = place.at + i;
  switch (place.buffer) {
    case VT__ALGO_SEND:
      return offset < send_bytes(k->s, place.rank) ? &k->memory[place.rank][at->send_at + offset] : NULL;
    case VT__ALGO_RECV:
      return offset < recv_bytes(k->s, place.rank) ? &k->memory[place.rank][at->recv_at + offset] : NULL;
    default:
      return offset < VT__ALGO_POST_BYTES ? &k->memory[place.rank][k->post_at[place.rank] + offset] : NULL;
  }
}

// The ranks of a place: one, or all.
static int32_t first_rank(vt__algo_place place) {
  return place.rank == VT__ALGO_ALL ? 0 : place.rank;
}
static int32_t last_rank(const checker *k, vt__algo_place place) {
  return place.rank == VT__ALGO_ALL ? k->s->call.world - 1 : place.rank;
}

static bool mark_read(checker *k, uint32_t number, vt__algo_place place, size_t i) {
  cell *c = cell_at(k, place, i);
  if (c == NULL) {
    return complain(k, "byte %zu of buffer %d of rank %d is read, which has none", place.at + i, (int)place.buffer, place.rank);
  }
  c->reader = c->reader <= k->base || c->reader == number ? number : SEVERAL;
  c->read_from = i;
  return true;
}

static bool mark_written(checker *k, uint32_t number, vt__algo_place place, size_t i) {
  cell *c = cell_at(k, place, i);
  if (c == NULL) {
    return complain(k, "byte %zu of buffer %d of rank %d is written, which has none", place.at + i, (int)place.buffer, place.rank);
  }
  if (c->writer > k->base) {
    return complain(k, "byte %zu of buffer %d of rank %d has two writers", place.at + i, (int)place.buffer, place.rank);
  }
  c->writer = number;
  return true;
}

// With posts, other ranks' memory is not touched but for what they posted.
static bool touches_a_peer(const vt__algo *algo, int32_t rank, vt__algo_place place, int32_t step, bool writes) {
  bool peer = place.rank != rank;
  if (step == 0) {
    return peer;
  }
  return algo->posts && ((peer && place.buffer != VT__ALGO_POST) || (writes && place.buffer != VT__ALGO_RECV));
}

static vt__algo_place on_rank(vt__algo_place place, int32_t rank) {
  place.rank = rank;
  return place;
}

static bool mark_place(checker *k, uint32_t number, const numbered *n, vt__algo_place place, bool writes) {
  for (int32_t r = first_rank(place); r <= last_rank(k, place); r++) {
    vt__algo_place one = on_rank(place, r);
    if (touches_a_peer(k->algo, n->rank, one, n->action.step, writes)) {
      return complain(k, "in step %d rank %d touches buffer %d of rank %d", n->action.step, n->rank, (int)one.buffer, r);
    }
    for (size_t i = 0; i < n->action.bytes; i++) {
      if (!(writes ? mark_written(k, number, one, i) : mark_read(k, number, one, i))) {
        return false;
      }
    }
  }
  return true;
}

// A copy of memory onto itself is none.
static bool moves(checker *k, const vt__algo_action *a) {
  const cell *from = a->kind == VT__ALGO_COPY ? cell_at(k, a->from, 0) : NULL;
  return a->bytes > 0 && (from == NULL || from != cell_at(k, a->to, 0));
}

// The four places of a swap: what is read of each rank, and what is written.
static vt__algo_place as(vt__algo_place place, vt__algo_buffer buffer) {
  place.buffer = buffer;
  return place;
}

static bool mark(checker *k, uint32_t number, const numbered *n) {
  const vt__algo_action *a = &n->action;
  if (a->kind == VT__ALGO_SWAP) {
    return mark_place(k, number, n, as(a->from, VT__ALGO_SEND), false) &&
           mark_place(k, number, n, as(a->to, VT__ALGO_SEND), false) &&
           mark_place(k, number, n, as(a->from, VT__ALGO_RECV), true) && mark_place(k, number, n, as(a->to, VT__ALGO_RECV), true);
  }
  if (a->kind == VT__ALGO_REDUCE && (a->bytes % k->s->call.element != 0 || a->from.at % k->s->call.element != 0)) {
    return complain(k, "rank %d reduces parts of elements: %zu bytes at %zu", n->rank, a->bytes, a->from.at);
  }
  return mark_place(k, number, n, a->from, false) && mark_place(k, number, n, a->to, true);
}

// Whether what action `number` writes at its byte `i` is read by nobody else, and by itself only there.
static bool check_written(checker *k, uint32_t number, vt__algo_place place, size_t i) {
  const cell *c = cell_at(k, place, i);
  bool alone = c->reader <= k->base || (c->reader == number && c->read_from == i);
  return alone || complain(k, "byte %zu of buffer %d of rank %d is read in the step that writes it", place.at + i,
                           (int)place.buffer, place.rank);
}

static bool check_target(checker *k, uint32_t number, const vt__algo_action *a, vt__algo_place place) {
  for (int32_t r = first_rank(place); r <= last_rank(k, place); r++) {
    for (size_t i = 0; i < a->bytes; i++) {
      if (!check_written(k, number, on_rank(place, r), i)) {
        return false;
      }
    }
  }
  return true;
}

static bool check_targets(checker *k, uint32_t number, const vt__algo_action *a) {
  bool both = a->kind == VT__ALGO_SWAP;
  return check_target(k, number, a, as(a->to, both ? VT__ALGO_RECV : a->to.buffer)) &&
         (!both || check_target(k, number, a, as(a->from, VT__ALGO_RECV)));
}

// The sum of what all ranks have at byte `i` of a place: of one place of what they sent, read in the order of the ranks.
static bool sum_of(checker *k, vt__algo_place from, size_t i, symbol *out) {
  size_t at = 0;
  for (int32_t r = 0; r < k->s->call.world; r++) {
    symbol seen = cell_at(k, on_rank(from, r), i)->value;
    size_t sent_at = (size_t)(seen - symbol_initial(r, k->s->layouts[r].send_at));
    if (seen < symbol_initial(r, 0) || seen >= symbol_initial(r + 1, 0) || (r > 0 && sent_at != at)) {
      return complain(k, "byte %zu of what rank %d gives to a sum is not what it sent there", from.at + i, r);
    }
    at = sent_at;
  }
  *out = symbol_sum(at);
  return true;
}

static bool run_byte(checker *k, const vt__algo_action *a, size_t i) {
  symbol value = 0;
  if (a->kind == VT__ALGO_SWAP) {
    symbol here = cell_at(k, as(a->from, VT__ALGO_SEND), i)->value;
    symbol there = cell_at(k, as(a->to, VT__ALGO_SEND), i)->value;
    cell_at(k, as(a->from, VT__ALGO_RECV), i)->value = there;
    cell_at(k, as(a->to, VT__ALGO_RECV), i)->value = here;
    return true;
  }
  if (a->kind == VT__ALGO_COPY) {
    value = cell_at(k, a->from, i)->value;
  } else if (!sum_of(k, a->from, i, &value)) {
    return false;
  }
  for (int32_t r = first_rank(a->to); r <= last_rank(k, a->to); r++) {
    cell_at(k, on_rank(a->to, r), i)->value = value;
  }
  return true;
}

static bool run_step(checker *k, int32_t step) {
  for (size_t n = 0; n < k->count; n++) {
    if (k->actions[n].action.step == step && moves(k, &k->actions[n].action) &&
        !mark(k, k->base + 1 + (uint32_t)n, &k->actions[n])) {
      return false;
    }
  }
  for (size_t n = 0; n < k->count; n++) {
    const vt__algo_action *a = &k->actions[n].action;
    if (a->step == step && moves(k, a) && !check_targets(k, k->base + 1 + (uint32_t)n, a)) {
      return false;
    }
  }
  for (size_t n = 0; n < k->count; n++) {
    const vt__algo_action *a = &k->actions[n].action;
    for (size_t i = 0; a->step == step && i < a->bytes; i++) {
      if (!run_byte(k, a, i)) {
        return false;
      }
    }
  }
  k->base += (uint32_t)k->count + 1;
  return true;
}

static bool check_memory(checker *k) {
  for (int32_t r = 0; r < k->s->call.world; r++) {
    size_t recv_at = k->s->layouts[r].recv_at;
    for (size_t m = 0; m < k->post_at[r]; m++) {
      symbol expected;
      if (m < recv_at || !expected_symbol(k->s, r, m - recv_at, &expected)) {
        expected = symbol_initial(r, m);
      }
      if (k->memory[r][m].value != expected) {
        return complain(k, "byte %zu of rank %d's memory is wrong in the end", m, r);
      }
    }
  }
  return true;
}

static bool break_action(checker *k, numbered *n, breakage how) {
  vt__algo_action *a = &n->action;
  switch (how) {
    case BREAK_DROP:
      a->bytes = 0;
      return true;
    case BREAK_TWICE:
      k->actions[k->count++] = (numbered){*a, (n->rank + 1) % k->s->call.world};
      return true;
    case BREAK_SOURCE:
      a->from.at += k->s->call.element;
      return true;
    case BREAK_TARGET:
      a->to.at += k->s->call.element;
      return true;
    case BREAK_EARLY:
      a->step--;
      return a->step == 0 && (a->from.rank != n->rank || a->to.rank != n->rank);
    case BREAK_OTHER_RANK:
      a->from.rank = (a->from.rank + 1) % k->s->call.world;
      return a->kind == VT__ALGO_COPY && k->s->call.world > 1;
    default:
      return false;
  }
}

static bool break_something(checker *k, breakage how) {
  for (size_t n = k->count; n-- > 0;) {
    numbered kept = k->actions[n];
    size_t count = k->count;
    if (moves(k, &kept.action) && break_action(k, &k->actions[n], how)) {
      return true;
    }
    k->actions[n] = kept;
    k->count = count;
  }
  return false;
}

static bool collect(checker *k) {
  for (int32_t r = 0; r < k->s->call.world; r++) {
    vt__algo_call call = scenario_call(k->s, r);
    numbered next = {.rank = r};
    int32_t step = 0;
    for (size_t i = 0; vt__algo_get(k->algo, &call, i, &next.action); i++) {
      if (i > 2 * MOST_RANKS) {
        return complain(k, "the actions of rank %d have no end", r);
      }
      if (next.action.step < step || next.action.step > k->algo->steps) {
        return complain(k, "rank %d does step %d after step %d, of %d", r, next.action.step, step, k->algo->steps);
      }
      step = next.action.step;
      k->actions[k->count++] = next;
    }
  }
  return true;
}

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

static void *or_die(void *memory) {
  if (memory == NULL) {
    fprintf(stderr, "no memory\n");
    abort();
  }
  return memory;
}

static void set_up(checker *k) {
  k->actions = or_die(calloc((size_t)MOST_RANKS * (2 * MOST_RANKS + 2) + 1, sizeof *k->actions));
  for (int32_t r = 0; r < k->s->call.world; r++) {
    const layout *at = &k->s->layouts[r];
    k->post_at[r] = larger(at->send_at + send_bytes(k->s, r), at->recv_at + recv_bytes(k->s, r)) + 1;
    k->size[r] = k->post_at[r] + VT__ALGO_POST_BYTES;
    k->memory[r] = or_die(calloc(k->size[r], sizeof(cell)));
    for (size_t i = 0; i < k->size[r]; i++) {
      k->memory[r][i].value = symbol_initial(r, i);
    }
  }
}

static void tear_down(checker *k) {
  for (int32_t r = 0; r < k->s->call.world; r++) {
    free(k->memory[r]);
  }
  free(k->actions);
}

const char *check_schedule(const vt__algo *algo, scenario *s, breakage how, bool *out_broken) {
  static char wrong[400];
  checker k = {.algo = algo, .s = s};
  set_up(&k);
  bool good = collect(&k);
  *out_broken = good && break_something(&k, how);
  for (int32_t step = 0; good && step <= algo->steps; step++) {
    good = run_step(&k, step);
  }
  good = good && check_memory(&k);
  memcpy(wrong, k.wrong, sizeof wrong);
  tear_down(&k);
  return good ? NULL : wrong;
}
