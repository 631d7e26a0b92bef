// verdict.c: comparing what the ranks called. All ranks compare the same values, so all come to the same verdict and text.
#include "comm/inproc/inproc.h"
#include "vllm_vt/op.h"

static bool same(const vt__call_key *a, const vt__call_key *b) {
  return a->what == b->what && a->refused == b->refused && a->root == b->root && a->count == b->count &&
         a->sequence == b->sequence && a->provider == b->provider;
}

// One side of a comparison.
typedef struct side {
  int32_t rank;
  vt_comm_op op;
  const vt__call_key *key;
  const char *provider;
} side;

static void add_side(vt__text *text, const side *own, const side *other) {
  const vt__call_key *key = own->key;
  vt__text_add(text, "rank %d called ", own->rank);
  vt_comm_record what = {
      .op = own->op,
      .dtype = (vt_dtype)(key->what >> 8 & 0xff),
      .reduce_op = (vt_reduce_op)(key->what >> 16 & 0xff),
      .peer = key->root,
      .count = key->count,
  };
  vt__text_add_call(text, &what);
  if (key->sequence != other->key->sequence) {
    vt__text_add(text, " sequence %llu", (unsigned long long)key->sequence);
  }
  if (key->provider != other->key->provider) {
    vt__text_add(text, " provider %s", own->provider == NULL ? VT_OP_NATIVE_NAME : own->provider);
  }
}

static vt_status differ(const vt__comm_op *op, const char *title, const side *a, const side *b) {
  char buffer[VT_ERROR_MESSAGE_MAX];
  vt__text text = vt__text_begin(buffer, sizeof(buffer));
  add_side(&text, a, b);
  vt__text_add(&text, ", ");
  add_side(&text, b, a);
  return vt_error_set(VT_ERR_MISMATCH, VT_DOMAIN_VT, 0, vt__comm_op_function(op->call.op), "%s: %s", title, buffer);
}

static vt_status was_refused(const vt__comm_op *op, const char *title, int32_t rank, const char *why) {
  return vt_error_set(VT_ERR_MISMATCH, VT_DOMAIN_VT, 0, vt__comm_op_function(op->call.op), "%s: rank %d %s", title, rank, why);
}

static side collective_side(const vt__comm_op *op, int32_t rank) {
  const vt__post *post = vt__post_of(op, rank);
  return (side){.rank = rank, .op = (vt_comm_op)(post->key.what & 0xff), .key = &post->key, .provider = post->provider};
}

// A refusal comes first: its post's other fields mean nothing.
static vt_status explain(const vt__comm_op *op, int32_t different) {
  char title[64];
  vt__text text = vt__text_begin(title, sizeof(title));
  side first = collective_side(op, 0);
  int32_t world = op->call.comm->world;
  vt__text_add(&text, "%s number %llu", vt__comm_op_name(first.op), (unsigned long long)op->number);
  for (int32_t r = 0; r < world; r++) {
    const vt__post *post = vt__post_of(op, r);
    if (post->key.refused != 0) {
      return was_refused(op, title, r, (const char *)post->payload);
    }
  }
  side other = collective_side(op, different);
  return differ(op, title, &first, &other);
}

// Ranks whose refusal of this operation stands in a run: their posts are of another one.
static vt_status check_runs(const vt__comm_op *op) {
  const vt__inproc *group = vt__inproc_of(op);
  for (int32_t r = 0; r < group->world; r++) {
    const vt__refused_run *run = &group->ranks[r].refused;
    if (vt__refused_run_holds(group, run, op->number)) {
      char title[64];
      vt__text text = vt__text_begin(title, sizeof(title));
      vt__text_add(&text, "%s number %llu", vt__comm_op_name(op->call.op), (unsigned long long)op->number);
      return was_refused(op, title, r, vt__refused_run_text(run, op->number));
    }
  }
  return VT_OK;
}

static vt_status parts_differ(const vt__comm_op *op, int32_t from, int32_t to, size_t sent, size_t expected) {
  size_t elements = 1;
  size_t block = 1;
  (void)vt_dtype_get_block(op->call.dtype, &elements, &block);
  return vt_error_set(VT_ERR_MISMATCH, VT_DOMAIN_VT, 0, vt__comm_op_function(op->call.op),
                      "%s number %llu: rank %d has %zu elements for rank %d, and rank %d expects %zu",
                      vt__comm_op_name(op->call.op), (unsigned long long)op->number, from, sent / block * elements, to, to,
                      expected / block * elements);
}

// What a rank sends to another one must be what that one expects. All ranks look at all pairs, so all come to the same verdict.
static vt_status check_parts(const vt__comm_op *op) {
  int32_t world = op->call.comm->world;
  for (int32_t from = 0; from < world; from++) {
    const vt__algo_part *sent = vt__posted_parts(op, from);
    for (int32_t to = 0; to < world; to++) {
      size_t expected = vt__posted_parts(op, to)[from].recv_bytes;
      if (VT_UNLIKELY(sent[to].send_bytes != expected)) {
        return parts_differ(op, from, to, sent[to].send_bytes, expected);
      }
    }
  }
  return VT_OK;
}

vt_status vt__collective_verdict(const vt__comm_op *op) {
  // acquire: partner is the release in add() of refused.c: a run that stood in for a post was seen with its bit.
  if (VT_UNLIKELY((atomic_load_explicit(&vt__inproc_of(op)->alarm, memory_order_acquire) & VT__ALARM_REFUSED) != 0)) {
    VT_TRY(check_runs(op));
  }
  const vt__call_key *first = &vt__post_of(op, 0)->key;
  int32_t different = 0;
  for (int32_t r = op->call.comm->world - 1; r > 0; r--) {
    different = same(first, &vt__post_of(op, r)->key) ? different : r;
  }
  if (VT_UNLIKELY(different != 0)) {
    return explain(op, different);
  }
  return VT_LIKELY(op->call.parts == NULL) ? VT_OK : check_parts(op);
}

vt_status vt__message_verdict(const vt__comm_op *op, const vt__channel *channel) {
  const vt__inproc *group = vt__inproc_of(op);
  const vt__message_post *sender = &channel->sender.posts[op->number & 1];
  const vt__message_post *receiver = &channel->receiver.posts[op->number & 1];
  bool sender_in_run = vt__refused_run_holds(group, &channel->sender.refused, op->number);
  bool receiver_in_run = vt__refused_run_holds(group, &channel->receiver.refused, op->number);
  if (VT_LIKELY(!sender_in_run && !receiver_in_run && same(&sender->key, &receiver->key) && sender->key.refused == 0)) {
    return VT_OK;
  }
  bool sends = vt__comm_is_send(op->call.op);
  int32_t from = sends ? op->call.comm->rank : op->call.peer;
  int32_t to = sends ? op->call.peer : op->call.comm->rank;
  char title[96];
  vt__text text = vt__text_begin(title, sizeof(title));
  vt__text_add(&text, "message number %llu from rank %d to rank %d", (unsigned long long)op->number, from, to);
  if (sender_in_run || (!receiver_in_run && sender->key.refused != 0)) {
    return was_refused(op, title, from, sender_in_run ? vt__refused_run_text(&channel->sender.refused, op->number) : sender->text);
  }
  if (receiver_in_run || receiver->key.refused != 0) {
    return was_refused(op, title, to,
                       receiver_in_run ? vt__refused_run_text(&channel->receiver.refused, op->number) : receiver->text);
  }
  vt_comm_op other = vt__comm_other_side(op->call.op);
  side a = {.rank = from, .op = sends ? op->call.op : other, .key = &sender->key, .provider = sender->provider};
  side b = {.rank = to, .op = sends ? other : op->call.op, .key = &receiver->key, .provider = receiver->provider};
  return differ(op, title, &a, &b);
}
