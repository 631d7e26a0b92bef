// wishes.c: see wishes.h.
#include "comm/wishes.h"

#include <string.h>

#include "comm/traits.h"
#include "core/error.h"

static bool is_name(const char *name, const char *text, size_t length) {
  return strlen(name) == length && memcmp(name, text, length) == 0;
}

// The operation with algorithms whose name is given, or NONE.
static vt_comm_op find_op(const char *text, size_t length) {
  vt_comm_op op = VT_COMM_OP_COUNT - 1;
  while (op > VT_COMM_OP_NONE && (vt__algo_list(op) == NULL || !is_name(vt__comm_traits_of(op)->name, text, length))) {
    op--;
  }
  return op;
}

// Its number in the list of the operation, from 1 on; 0: there is none.
static unsigned char find_algo(vt_comm_op op, const char *text, size_t length) {
  const vt__algo *list = vt__algo_list(op);
  for (unsigned char i = 0; list[i].name != NULL; i++) {
    if (is_name(list[i].name, text, length)) {
      return (unsigned char)(i + 1);
    }
  }
  return 0;
}

static vt_status read_one(const char *text, size_t length, vt__algo_wishes *out) {
  const char *colon = memchr(text, ':', length);
  size_t name = colon == NULL ? length : (size_t)(colon - text);
  vt_comm_op op = find_op(text, name);
  unsigned char number = op == VT_COMM_OP_NONE || colon == NULL ? 0 : find_algo(op, colon + 1, length - name - 1);
  if (number == 0) {
    return vt_error_set(VT_ERR_NOT_FOUND, VT_DOMAIN_VT, 0, "vt_comm_group_create", "%.*s names no algorithm of an operation",
                        (int)vt__min_size(length, 100), text);
  }
  out->number[op] = number;
  return VT_OK;
}

vt_status vt__wishes_read(const char *text, vt__algo_wishes *out) {
  *out = (vt__algo_wishes){{0}};
  while (text != NULL && *text != 0) {
    size_t length = strcspn(text, ",");
    VT_TRY(read_one(text, length, out));
    text += length + (text[length] == ',');
  }
  return VT_OK;
}

// Larger contributions go to the next one; what can't be reached is left out.
static void describe_list(const vt__algo *list, unsigned char wished, bool crowded, vt__text *text) {
  const vt__algo *wish = wished == 0 ? NULL : &list[wished - 1];
  const vt__algo *algo = wish != NULL ? wish : list;
  size_t up_to = wish != NULL && !wish->posts ? SIZE_MAX : vt__algo_reach(algo, crowded || wish != NULL);
  vt__text_add(text, " %s", algo->name);
  while (up_to != SIZE_MAX) {
    vt__text_add(text, " up to %zu bytes,", up_to);
    for (algo = list; vt__algo_reach(algo, crowded) <= up_to; algo++) {
    }
    up_to = vt__algo_reach(algo, crowded);
    vt__text_add(text, " %s", algo->name);
  }
}

void vt__wishes_describe(const vt__algo_wishes *wishes, bool crowded, vt__text *text) {
  for (vt_comm_op op = VT_COMM_OP_NONE + 1; op < VT_COMM_OP_COUNT; op++) {
    const vt__algo *list = vt__algo_list(op);
    if (list != NULL) {
      vt__text_add(text, "%s:", vt__comm_traits_of(op)->name);
      describe_list(list, wishes->number[op], crowded, text);
      vt__text_add(text, "\n");
    }
  }
}
