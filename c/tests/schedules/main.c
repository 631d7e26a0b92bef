// main.c: proves every schedule for worlds of 1 to 16, and that the checker would see a broken one.
//
// For every operation, algorithm, world, root, size and form of being in place: each element is reduced once per rank, in the order
// of ranks; nothing is read before the step that writes it; no byte has two writers; every receive buffer ends with what the
// operation promises and all other memory stays as it is; all ranks choose the same algorithm.
#include <stdio.h>
#include <string.h>

#include "checker.h"

typedef struct tally {
  size_t schedules;
  size_t broken;
  size_t seen;
  size_t wrong;
} tally;

static void report(tally *t, const char *wrong) {
  if (wrong != NULL && t->wrong++ < 20) {
    fprintf(stderr, "%s\n", wrong);
  }
}

static size_t part_bytes(const scenario *s, int32_t from, int32_t to) {
  // Zero, small and uneven parts; all below the size of the call.
  size_t elements = s->call.bytes / s->call.element;
  size_t mixed = (size_t)from * 7 + (size_t)to * 3;
  return (mixed % 3 == 0 ? 0 : elements == 0 ? 0 : mixed % (elements + 1)) * s->call.element;
}

static size_t part_between(const scenario *s, int32_t from, int32_t to) {
  switch (s->call.op) {
    case VT_COMM_OP_ALL_GATHERV:
      return part_bytes(s, from, 0);  // the same for every receiver
    case VT_COMM_OP_REDUCE_SCATTERV:
      return part_bytes(s, to, 0);  // the same from every sender
    default:
      return part_bytes(s, from, to);
  }
}

// Parts follow each other, those that are received with a gap between them.
static void lay_out_parts(scenario *s) {
  size_t gap = s->call.op == VT_COMM_OP_REDUCE_SCATTERV ? 0 : s->call.element;
  for (int32_t r = 0; r < s->call.world; r++) {
    size_t send_at = 0;
    size_t recv_at = 0;
    for (int32_t p = 0; p < s->call.world; p++) {
      vt__algo_part part = {part_between(s, r, p), send_at, part_between(s, p, r), recv_at};
      s->parts[r][p] = part;
      send_at += s->call.op == VT_COMM_OP_ALL_GATHERV ? 0 : part.send_bytes;
      recv_at += part.recv_bytes + gap;
    }
  }
}

// Where SEND begins in RECV, or RECV in SEND, when a rank is in place.
static layout in_place(const scenario *s, int32_t rank) {
  size_t own = (size_t)rank * s->call.bytes;
  switch (s->call.op) {
    case VT_COMM_OP_ALL_GATHER:
    case VT_COMM_OP_SPLIT:
      return (layout){own, 0};
    case VT_COMM_OP_GATHER:
      return (layout){rank == s->call.root ? own : 0, 0};
    case VT_COMM_OP_SCATTER:
      return (layout){0, rank == s->call.root ? own : 0};
    case VT_COMM_OP_REDUCE_SCATTER:
      return (layout){0, own};
    case VT_COMM_OP_ALL_GATHERV:
      return (layout){s->parts[rank][rank].recv_at, 0};
    case VT_COMM_OP_REDUCE_SCATTERV:
      return (layout){0, s->parts[rank][rank].send_at};
    default:
      return (layout){0, 0};
  }
}

static const char *const forms[] = {"apart", "in place", "every other rank in place"};

static void lay_out(scenario *s, size_t form) {
  s->form = forms[form];
  lay_out_parts(s);
  for (int32_t r = 0; r < s->call.world; r++) {
    bool placed = form == 1 || (form == 2 && r % 2 == 0);
    bool one_buffer = s->call.op == VT_COMM_OP_BROADCAST;
    s->layouts[r] = placed || one_buffer ? in_place(s, r) : (layout){0, send_bytes(s, r) + 5};
  }
}

static void check_one(tally *t, const vt__algo *algo, scenario *s) {
  bool broken;
  report(t, check_schedule(algo, s, BREAK_NOTHING, &broken));
  t->schedules++;
  for (breakage how = BREAK_DROP; how < BREAK_COUNT; how++) {
    const char *seen = check_schedule(algo, s, how, &broken);
    if (broken) {
      t->broken++;
      t->seen += seen != NULL;
    }
    if (broken && seen == NULL && t->wrong++ < 20) {
      fprintf(stderr, "operation %d by %s, world %d, root %d, %zu bytes, %s: breakage %d is not seen\n", s->call.op, algo->name,
              s->call.world, s->call.root, s->call.bytes, s->form, (int)how);
    }
  }
}

static const vt__algo *chosen_by(const scenario *s, int32_t rank, unsigned char wish) {
  vt__algo_call call = scenario_call(s, rank);
  vt__algo_wishes wishes;
  memset(&wishes, wish, sizeof wishes);
  return vt__algo_choose(&call, vt__algo_weight(&call), &wishes);
}

// Whatever is wished, all ranks choose the same algorithm, and it can carry the call.
static void check_choice(tally *t, scenario *s, unsigned char wish) {
  const vt__algo *first = chosen_by(s, 0, wish);
  for (int32_t r = 1; r < s->call.world; r++) {
    if (chosen_by(s, r, wish) != first && t->wrong++ < 20) {
      fprintf(stderr, "operation %d, world %d, %zu bytes: ranks 0 and %d choose differently\n", s->call.op, s->call.world,
              s->call.bytes, r);
    }
  }
  check_one(t, first, s);
}

static unsigned char algorithms_of(vt_comm_op op) {
  const vt__algo *list = vt__algo_list(op);
  unsigned char count = 1;
  while (list[count - 1].up_to != SIZE_MAX) {
    count++;
  }
  return count;
}

static void check_forms(tally *t, scenario *s) {
  // These have no form in place.
  bool only_apart = s->call.op == VT_COMM_OP_ALL_TO_ALLV || s->call.op == VT_COMM_OP_BROADCAST ||
                    s->call.op == VT_COMM_OP_BARRIER || s->call.op == VT_COMM_OP_FINALIZE;
  for (size_t form = 0; form < (only_apart ? 1 : 3); form++) {
    lay_out(s, form);
    for (unsigned char wish = 0; wish <= algorithms_of(s->call.op); wish++) {
      s->call.crowded = !s->call.crowded;
      check_choice(t, s, wish);
    }
  }
}

static void check_sizes(tally *t, vt_comm_op op, int32_t world, int32_t root) {
  static const size_t elements[] = {1, 4, 8};
  static const size_t counts[] = {0, 1, 5, 16, 47, 131, 300};
  for (size_t e = 0; e < sizeof elements / sizeof *elements; e++) {
    // A barrier has no data.
    for (size_t n = 0; n < (op == VT_COMM_OP_BARRIER || op == VT_COMM_OP_FINALIZE ? 1 : sizeof counts / sizeof *counts); n++) {
      scenario s = {.call = {.op = op, .world = world, .root = root, .bytes = counts[n] * elements[e], .element = elements[e]}};
      // Large worlds take long, and cut as small ones do.
      if (world <= 4 || (elements[e] == 4 && (counts[n] <= 5 || counts[n] == 131))) {
        check_forms(t, &s);
      }
    }
  }
}

static void check_operation(tally *t, vt_comm_op op, int32_t world) {
  for (int32_t root = 0; root<(scenario_is_rooted(op) ? world : 1); root += world> 4 ? 3 : 1) {
    check_sizes(t, op, world, root);
  }
}

int main(void) {
  tally t = {0};
  for (vt_comm_op op = 1; op < VT_COMM_OP_COUNT; op++) {
    for (int32_t world = 1; vt__algo_list(op) != NULL && world <= MOST_RANKS; world++) {
      check_operation(&t, op, world);
    }
  }
  printf("%zu schedules, %zu wrong; %zu broken on purpose, %zu seen\n", t.schedules, t.wrong, t.broken, t.seen);
  return t.wrong == 0 && t.schedules > 0 && t.broken > t.schedules ? 0 : 1;
}
