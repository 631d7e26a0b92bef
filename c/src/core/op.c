// op.c: look-ups: who serves a call.
//
// Where the best provider takes every call, a look-up is one acquire load of the snapshot and a count on a line of this thread.
#include "core/op.h"

#include <string.h>

#include "core/registry.h"

static const vt__op_list *load(vt_op_id id, vt_device_type type) {
  vt__op *op = vt__op_find(id);
  // acquire: partner is the release store in op_list.c.
  return op == NULL ? NULL : atomic_load_explicit(&op->lists[type], memory_order_acquire);
}

size_t vt__op_candidate_count(const vt__op_request *request) {
  if (request->policy != NULL && request->policy->names != NULL) {
    return request->policy->count;
  }
  return request->list == NULL ? 0 : request->list->count;
}

vt__op_entry *vt__op_candidate(const vt__op_request *request, size_t i) {
  if (request->policy == NULL || request->policy->names == NULL) {
    return request->list->entries[i];
  }
  vt__op_entry *entry = vt__op_entry_of(request->list, request->policy->names[i]);
  return entry != NULL && vt__op_entry_is_enabled(request->list, entry) ? entry : NULL;
}

const char *vt__op_candidate_name(const vt__op_request *request, size_t i) {
  return request->policy == NULL || request->policy->names == NULL ? request->list->entries[i]->name : request->policy->names[i];
}

const char *vt__op_refusal(const vt__op_request *request, size_t i) {
  const vt__op_entry *entry = vt__op_candidate(request, i);
  if (entry == NULL) {
    return vt__op_entry_of(request->list, vt__op_candidate_name(request, i)) == NULL ? "it is not registered" : "it is disabled";
  }
  if (entry->provider.supports == NULL) {
    return NULL;
  }
  const vt__op_caps *caps = request->list->caps;
  vt_op_question question = {.struct_size = sizeof(question),
                             .descriptor = request->descriptor,
                             .caps = caps == NULL ? NULL : caps->data,
                             .caps_bytes = caps == NULL ? 0 : caps->bytes};
  if (entry->provider.supports(entry->provider.user, &question) != 0) {
    return NULL;
  }
  return question.reason == NULL ? "it gave no reason" : question.reason;
}

// The first candidate at or behind `first` that serves the call, counted. NULL if there is none, or strictness forbids to go on.
static const vt__op_entry *choose(const vt__op_request *request, size_t first) {
  bool refused = request->below != NULL;
  size_t count = vt__op_candidate_count(request);
  for (size_t i = first; i < count && !(refused && request->strict); i++) {
    const char *reason = vt__op_refusal(request, i);
    vt__op_entry *entry = vt__op_candidate(request, i);
    if (reason == NULL) {
      vt__op_note_selected(vt__op_find(request->id), request->type, entry, entry->number);
      if (refused) {
        vt__op_count(entry->number, VT__OP_FALLBACKS);
      }
      return entry;
    }
    if (entry != NULL) {
      vt__op_note_decline(entry, reason);
    }
    refused = true;
  }
  return NULL;
}

// Finds the first candidate behind `below`, which declined.
static bool find_below(const vt__op_request *request, size_t *out_first) {
  vt__op_entry *entry = vt__op_entry_of(request->list, request->below);
  if (entry == NULL) {
    return false;
  }
  size_t i = 0;
  size_t count = vt__op_candidate_count(request);
  if (request->policy != NULL && request->policy->names != NULL) {
    while (i < count && strcmp(request->policy->names[i], request->below) != 0) {
      i++;
    }
    if (i == count) {
      return false;
    }
    i++;
  } else {
    while (i < count && (request->list->entries[i] == entry || vt__op_before(request->list->entries[i], entry))) {
      i++;
    }
  }
  vt__op_note_decline(entry, "its function declined");
  *out_first = i;
  return true;
}

static vt_status fail_strict(const vt__op_request *request, const char *function) {
  const char *op = vt__op_name_for_text(request->id);
  const char *type = vt_device_type_get_name(request->type);
  if (request->below != NULL) {
    return vt_error_set(VT_ERR_UNSUPPORTED, VT_DOMAIN_VT, 0, function,
                        "%s (id %d) on %s: \"%s\" declined, and a strict look-up lets nobody stand in", op, request->id, type,
                        request->below);
  }
  const char *name = vt__op_candidate_name(request, 0);
  const char *reason = vt__op_refusal(request, 0);
  bool absent = vt__op_entry_of(request->list, name) == NULL;
  return vt_error_set(absent ? VT_ERR_NOT_FOUND : VT_ERR_UNSUPPORTED, VT_DOMAIN_VT, 0, function,
                      "%s (id %d) on %s: a strict look-up lets nobody stand in for \"%s\", which refused: %s", op, request->id,
                      type, name, reason == NULL ? "not any more" : reason);
}

static vt_status fail_none(const vt__op_request *request, size_t first, const char *function) {
  char buffer[VT_ERROR_MESSAGE_MAX];
  vt__text text = vt__text_begin(buffer, sizeof(buffer));
  vt__text_add(&text, "no provider of %s (id %d)", vt__op_name_for_text(request->id), request->id);
  if (request->below != NULL) {
    vt__text_add(&text, " below \"%s\"", request->below);
  }
  vt__text_add(&text, " on %s wants the call", vt_device_type_get_name(request->type));
  vt__op_text_refusals(&text, request, first);
  return vt_error_set(VT_ERR_NOT_FOUND, VT_DOMAIN_VT, 0, function, "%s", buffer);
}

static vt_status look_up(vt__op_request *request, const vt_op_provider **out_provider, const char *function) {
  VT_TRY(vt__runtime_init(function));  // the built-in providers may not have been there
  request->list = load(request->id, request->type);
  request->strict = vt__op_is_strict() || (request->policy != NULL && (request->policy->flags & VT_OP_STRICT) != 0);
  size_t first = 0;
  if (request->below != NULL && !find_below(request, &first)) {
    return vt_error_set(VT_ERR_NOT_FOUND, VT_DOMAIN_VT, 0, function, "%s (id %d) has no provider \"%s\" to choose from on %s",
                        vt__op_name_for_text(request->id), request->id, request->below, vt_device_type_get_name(request->type));
  }
  const vt__op_entry *entry = choose(request, first);
  if (entry != NULL) {
    *out_provider = &entry->provider;
    return VT_OK;
  }
  bool strict = request->strict && (request->below != NULL || vt__op_candidate_count(request) > 0);
  return strict ? fail_strict(request, function) : fail_none(request, first, function);
}

vt_status vt_op_get(vt_op_id id, vt_device_type type, const void *descriptor, const vt_op_provider **out_provider) {
  VT_CHECK_ARG(out_provider != NULL, "out_provider is NULL");
  VT_CHECK_ARG(vt__op_is_type(type), "device type %d is unknown", type);
  vt__op *op = vt__op_find(id);
  // acquire: partner is the release store in op_list.c.
  const vt__op_list *list = op == NULL ? NULL : atomic_load_explicit(&op->lists[type], memory_order_acquire);
  if (VT_LIKELY(list != NULL && list->plain != NULL)) {
    *out_provider = &list->plain->provider;
    vt__op_note_selected(op, type, list->plain, list->plain_number);
    return VT_OK;
  }
  vt__op_request request = {.id = id, .type = type, .descriptor = descriptor};
  return look_up(&request, out_provider, __func__);
}

vt_status vt_op_get_below(vt_op_id id, vt_device_type type, const char *name, const void *descriptor,
                          const vt_op_provider **out_provider) {
  VT_CHECK_ARG(out_provider != NULL, "out_provider is NULL");
  VT_CHECK_ARG(vt__op_is_type(type), "device type %d is unknown", type);
  VT_CHECK_ARG(name != NULL, "name is NULL");
  vt__op_request request = {.id = id, .type = type, .descriptor = descriptor, .below = name};
  return look_up(&request, out_provider, __func__);
}

vt_status vt__op_check_policy(const vt_op_policy *policy, vt_op_policy *out, const char *function) {
  const char *wrong = policy == NULL                                        ? "policy is NULL"
                      : policy->struct_size < offsetof(vt_op_policy, names) ? "policy->struct_size is too small"
                      : policy->struct_size % sizeof(void *) != 0           ? "policy->struct_size ends inside a member"
                      : (policy->flags & ~(uint32_t)VT_OP_STRICT) != 0      ? "policy->flags holds an unknown bit"
                                                                            : NULL;
  if (wrong == NULL) {
    *out = (vt_op_policy){0};
    memcpy(out, policy, vt__min_size(policy->struct_size, sizeof(*out)));
    wrong = out->names == NULL && out->count != 0 ? "policy->count is not 0, and policy->names is NULL" : NULL;
    for (size_t i = 0; wrong == NULL && i < out->count; i++) {
      wrong = out->names[i] == NULL ? "policy->names holds a NULL" : NULL;
    }
  }
  return wrong == NULL ? VT_OK : vt_error_set(VT_ERR_INVALID_ARGUMENT, VT_DOMAIN_VT, 0, function, "%s", wrong);
}

vt_status vt_op_get_with(vt_op_id id, vt_device_type type, const vt_op_policy *policy, const char *below, const void *descriptor,
                         const vt_op_provider **out_provider) {
  VT_CHECK_ARG(out_provider != NULL, "out_provider is NULL");
  VT_CHECK_ARG(vt__op_is_type(type), "device type %d is unknown", type);
  vt_op_policy checked;
  VT_TRY(vt__op_check_policy(policy, &checked, __func__));
  vt__op_request request = {.id = id, .type = type, .policy = &checked, .descriptor = descriptor, .below = below};
  return look_up(&request, out_provider, __func__);
}

int32_t vt_op_is_registered(vt_op_id id, vt_device_type type) {
  if (!vt__op_is_type(type)) {
    return 0;
  }
  if (vt__runtime_init(__func__) != VT_OK) {
    return 0;
  }
  const vt__op_list *list = load(id, type);
  return list != NULL && list->total > 0;
}
