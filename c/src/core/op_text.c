// op_text.c: how a look-up would choose, in words.
#include "core/check.h"
#include "core/op.h"
#include "core/registry.h"

void vt__op_text_refusals(vt__text *text, const vt__op_request *request, size_t first) {
  size_t count = vt__op_candidate_count(request);
  for (size_t i = first; i < count; i++) {
    const char *reason = vt__op_refusal(request, i);
    vt__text_add(text, "%s \"%s\" refused: %s", i == first ? ":" : ";", vt__op_candidate_name(request, i),
                 reason == NULL ? "not any more" : reason);
  }
}

static void add_name(vt__text *text, const vt__op_request *request, size_t i) {
  const vt__op_entry *entry = vt__op_entry_of(request->list, vt__op_candidate_name(request, i));
  vt__text_add(text, "  \"%s\"", vt__op_candidate_name(request, i));
  if (entry != NULL) {
    vt__text_add(text, ", priority %d", entry->provider.priority);
  }
}

// Answers whether one of them is chosen.
static bool add_candidates(vt__text *text, const vt__op_request *request) {
  bool chosen = false;
  size_t count = vt__op_candidate_count(request);
  for (size_t i = 0; i < count; i++) {
    const char *reason = vt__op_refusal(request, i);
    bool barred = request->strict && i > 0;
    add_name(text, request, i);
    if (reason != NULL) {
      vt__text_add(text, ": refuses: %s\n", reason);
    } else {
      vt__text_add(text, ": %s\n", chosen ? "stands by" : barred ? "may not stand in, the look-up is strict" : "chosen");
      chosen = chosen || !barred;
    }
  }
  return chosen;
}

static void add_disabled(vt__text *text, const vt__op_list *list) {
  for (size_t i = list == NULL ? 0 : list->count; list != NULL && i < list->total; i++) {
    vt__text_add(text, "  \"%s\", priority %d: is disabled\n", list->entries[i]->name, list->entries[i]->provider.priority);
  }
}

static void add_tier(vt__text *text, const vt__op_request *request) {
  vt__op *op = vt__op_find(request->id);
  // acquire: partner is the release store in vt_op_reference_register().
  if (op == NULL || atomic_load_explicit(&op->tier, memory_order_acquire) == NULL) {
    return;
  }
  vt__text_add(text, "  \"%s\", priority %d: %s\n", VT_OP_REFERENCE_NAME, VT_OP_REFERENCE_PRIORITY,
               vt__op_tier_is_disabled() ? "is disabled"
               : request->strict         ? "may not stand in, the look-up is strict"
                                         : "serves vt_op_call_reference() where the host can address the memory");
}

static void explain(vt__text *text, const vt__op_request *request) {
  vt__text_add(text, "%s (id %d) on %s", vt__op_name_for_text(request->id), request->id, vt_device_type_get_name(request->type));
  if (request->list != NULL && request->list->caps != NULL) {
    vt__text_add(text, ", caps of %zu bytes", request->list->caps->bytes);
  } else {
    vt__text_add(text, ", no caps published");
  }
  vt__text_add(text, "%s:\n", request->strict ? ", strict" : "");
  bool chosen = add_candidates(text, request);
  if (request->policy == NULL || request->policy->names == NULL) {
    add_disabled(text, request->list);
  }
  add_tier(text, request);
  if (!chosen) {
    vt__text_add(text, "  no provider serves the call\n");
  }
}

static vt_status check(vt_device_type type, const vt_op_policy *policy, vt_op_policy *checked, const char *buffer,
                       size_t capacity) {
  static const char *const function = "vt_op_explain";
  if (!vt__op_is_type(type)) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, "device type %d is unknown", type);
  }
  if (buffer == NULL && capacity > 0) {
    return vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, "buffer is NULL with a capacity");
  }
  return policy == NULL ? VT_OK : vt__op_check_policy(policy, checked, function);
}

size_t vt_op_explain(vt_op_id id, vt_device_type type, const vt_op_policy *policy, const void *descriptor, char *buffer,
                     size_t capacity) {
  vt_op_policy checked;
  if (check(type, policy, &checked, buffer, capacity) != VT_OK || vt__runtime_init(__func__) != VT_OK) {
    return 0;
  }
  vt__op *op = vt__op_find(id);
  vt__op_request request = {
      .id = id,
      .type = type,
      // acquire: partner is the release store in op_list.c.
      .list = op == NULL ? NULL : atomic_load_explicit(&op->lists[type], memory_order_acquire),
      .policy = policy == NULL ? NULL : &checked,
      .descriptor = descriptor,
      .strict = vt__op_is_strict() || (policy != NULL && (checked.flags & VT_OP_STRICT) != 0),
  };
  vt__text text = vt__text_begin(buffer, capacity);
  explain(&text, &request);
  return text.length;
}
