// ranks.c: groups that one thread drives: rounds that all ranks make alike, and those that they don't.
#include <string.h>

#include "fuzz.h"

#define ANY (FUZZ_OK | FUZZ_COMM | FUZZ_INVALID | FUZZ_MOMENT | FUZZ_FAILED | FUZZ_NOT_READY)

static void drop(ranks *r) {
  vt_comm_group_release(r->group);
  for (int32_t i = 0; i < r->world; i++) {
    vt_queue_release(r->queues[i]);
  }
  fuzz_await_handles(VT_HANDLE_COMM, 0);  // what is queued holds the buffers
  *r = (ranks){0};
}

static void begin(ranks *r, fuzz_input *in) {
  vt_comm_group_options options = VT_COMM_GROUP_OPTIONS_INIT;
  vt_queue_options queue_options = VT_QUEUE_OPTIONS_INIT;
  r->async = fuzz_byte(in) & 1;
  r->world = 1 + fuzz_below(in, 3);
  queue_options.flags = r->async ? VT_QUEUE_ASYNC : 0;
  CALL(FUZZ_OK, vt_comm_group_create(r->world, &options, &r->group));
  for (int32_t i = 0; i < r->world; i++) {
    CALL(FUZZ_OK, vt_queue_create((vt_device){VT_DEVICE_CPU, 0}, &queue_options, &r->queues[i]));
  }
}

static vt_comm *comm_of(const ranks *r, int32_t rank) {
  vt_comm *comm = NULL;
  CALL(FUZZ_OK, vt_comm_group_get_comm(r->group, rank, &comm));
  return comm;
}

// One operation of one rank.
typedef struct call {
  uint8_t op;  // of a round: 0 to 2
  size_t count;
  int32_t twist;  // what this rank does differently; 0: nothing
} call;

static vt_status make(ranks *r, int32_t rank, const call *what) {
  vt_comm_call opts = VT_COMM_CALL_INIT;
  size_t count = what->count + (what->twist == 1);
  vt_dtype dtype = what->twist == 2 ? VT_DTYPE_I32 : VT_DTYPE_F32;
  vt_reduce_op op = what->twist == 3 ? 77 : VT_REDUCE_SUM;
  vt_comm *comm = comm_of(r, rank);
  // A round that somebody may miss ends soon.
  opts.timeout_ns = what->twist == 0 ? 0 : 300000;
  opts.sequence = what->twist == 4;
  if (what->op == 0) {
    return vt_comm_all_reduce(comm, r->queues[rank], r->send[rank], r->recv[rank], count, dtype, op, &opts);
  }
  if (what->op == 1) {
    return vt_comm_all_gather(comm, r->queues[rank], r->send[rank], r->recv[rank], count, dtype, &opts);
  }
  return vt_comm_barrier(comm, r->queues[rank], &opts);
}

static void fill(ranks *r) {
  for (int32_t i = 0; i < 3; i++) {
    for (int k = 0; k < 40; k++) {
      r->send[i][k] = (float)(i * 100 + k);
    }
  }
  memset(r->recv, 0, sizeof(r->recv));
}

static float expected(const ranks *r, const call *what, int32_t k) {
  if (what->op == 1) {
    return r->send[k / (int32_t)what->count][k % (int32_t)what->count];
  }
  float sum = 0;
  for (int32_t i = 0; i < r->world; i++) {
    sum += r->send[i][k];
  }
  return sum;
}

static void compare(const ranks *r, const call *what) {
  int32_t count = what->op == 2 ? 0 : (int32_t)what->count * (what->op == 1 ? r->world : 1);
  for (int32_t i = 0; i < r->world; i++) {
    for (int32_t k = 0; k < count; k++) {
      MUST(r->recv[i][k] == expected(r, what, k));
    }
  }
}

static vt_status finish(ranks *r, uint32_t allowed) {
  vt_status worst = VT_OK;
  for (int32_t i = 0; i < r->world; i++) {
    vt_status status = CALL(allowed, vt_queue_synchronize(r->queues[i]));
    worst = status != VT_OK ? status : worst;
  }
  return worst;
}

// All ranks make the same call: it succeeds, and the numbers are right.
static void good_round(ranks *r, call what) {
  int batch = !r->async || what.count % 2 == 0;
  fill(r);
  if (batch) {
    CALL(FUZZ_OK, vt_comm_batch_begin());
  }
  for (int32_t i = 0; i < r->world; i++) {
    CALL(FUZZ_OK, make(r, i, &what));
  }
  if (batch) {
    CALL(FUZZ_OK, vt_comm_batch_end());
  }
  CALL(FUZZ_OK, finish(r, FUZZ_OK));
  compare(r, &what);
}

// One rank does something else, or doesn't come. Everybody returns, and the group is not used any more.
static void bad_round(ranks *r, call what, fuzz_input *in) {
  uint8_t missing = fuzz_byte(in);
  int abandon = fuzz_below(in, 4) == 3;
  CALL(FUZZ_OK, vt_comm_batch_begin());
  for (int32_t i = 0; i < r->world; i++) {
    call own = what;
    own.twist = i == 0 ? 1 + fuzz_below(in, 4) : 5;
    if ((missing >> i & 1) == 0 || r->world == 1) {
      CALL(ANY, make(r, i, &own));
    }
  }
  CALL(ANY, abandon ? vt_comm_batch_abandon() : vt_comm_batch_end());
  (void)finish(r, ANY);
  r->spoiled = 1;
}

static void messages(ranks *r, fuzz_input *in) {
  int32_t from = fuzz_below(in, (uint8_t)r->world);
  int32_t to = fuzz_below(in, (uint8_t)r->world);
  size_t count = fuzz_below(in, 40);
  fill(r);
  CALL(FUZZ_OK, vt_comm_batch_begin());
  CALL(FUZZ_OK, vt_comm_send(comm_of(r, from), r->queues[from], r->send[from], count, VT_DTYPE_F32, to, NULL));
  CALL(FUZZ_OK, vt_comm_recv(comm_of(r, to), r->queues[to], r->recv[to], count, VT_DTYPE_F32, from, NULL));
  CALL(FUZZ_OK, vt_comm_batch_end());
  CALL(FUZZ_OK, finish(r, FUZZ_OK));
  MUST(memcmp(r->recv[to], r->send[from], count * sizeof(float)) == 0);
}

static void inspect(ranks *r, fuzz_input *in) {
  vt_comm *comm = comm_of(r, fuzz_below(in, (uint8_t)r->world));
  vt_comm_record records[4];
  size_t count = 0;
  char text[256];
  vt_comm *none = NULL;
  CALL(FUZZ_OK, vt_comm_get_records(comm, records, fuzz_below(in, 5), &count));
  (void)vt_comm_group_describe(r->group, text, fuzz_byte(in));
  CALL(FUZZ_INVALID, vt_comm_group_get_comm(r->group, r->world + fuzz_below(in, 3), &none));
  CALL(FUZZ_INVALID, vt_comm_send(comm, r->queues[0], text, 1, VT_DTYPE_U8, 3 + fuzz_below(in, 9), NULL));
  CALL(FUZZ_MOMENT, vt_comm_batch_end());
  CALL(r->spoiled ? ANY : FUZZ_OK, vt_comm_query(comm));
  if (fuzz_below(in, 4) == 3) {
    CALL(FUZZ_OK, vt_comm_abort(comm, "as wanted"));
    CALL(FUZZ_COMM, vt_comm_query(comm));
    r->spoiled = 1;
  }
}

// A call is recorded and its capture given up: nobody waits for it.
static void record_and_abort(ranks *r, call what) {
  CALL(FUZZ_OK, vt_graph_begin_capture(r->queues[0]));
  CALL(FUZZ_OK, make(r, 0, &what));
  CALL(FUZZ_OK, vt_graph_abort_capture(r->queues[0]));
}

void ranks_step(ranks *r, fuzz_input *in, int capturing) {
  if (capturing) {
    return;  // what this thread waits for here is refused then
  }
  if (r->group == NULL || r->spoiled) {
    drop(r);
    begin(r, in);
    return;
  }
  call what = {.op = fuzz_below(in, 3), .count = 1 + (size_t)fuzz_below(in, 38)};
  uint8_t dice = fuzz_below(in, 16);
  if (dice < 7) {
    good_round(r, what);
  } else if (dice < 10) {
    messages(r, in);
  } else if (dice < 12) {
    inspect(r, in);
  } else if (dice < 14) {
    record_and_abort(r, what);
  } else {
    bad_round(r, what, in);
  }
}

void ranks_end(ranks *r) {
  drop(r);
}
