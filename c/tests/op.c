// op.c: operation providers. Nothing is ever unregistered, so each case uses operation names of its own.
#include "suite.h"

#include <stdio.h>

static void some_function(void) {}

static vt_op_provider provider(const char *name, int32_t priority) {
  return (vt_op_provider){.struct_size = sizeof(vt_op_provider), .name = name, .priority = priority, .fn = some_function};
}

static vt_op_id intern(vt_case *c, const char *name) {
  vt_op_id op = 0;
  EXPECT_OK(c, vt_op_intern(name, &op));
  EXPECT_TRUE(c, op > 0);
  return op;
}

static void names_are_interned(vt_case *c) {
  char name[65];
  vt_op_id op = 0;
  vt_op_id first = intern(c, "test.intern.a");
  vt_op_id second = intern(c, "test.intern.b");
  EXPECT_TRUE(c, first != second);
  EXPECT_EQ(c, first, intern(c, "test.intern.a"));
  EXPECT_TEXT(c, "test.intern.a", vt_op_get_name(first));
  EXPECT_TEXT(c, "test.intern.b", vt_op_get_name(second));
  EXPECT_TEXT(c, NULL, vt_op_get_name(0));
  EXPECT_TEXT(c, NULL, vt_op_get_name(-1));
  EXPECT_TEXT(c, NULL, vt_op_get_name(INT32_MAX));
  memset(name, 'o', 64);
  name[64] = '\0';
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "63", vt_op_intern(name, &op));
  name[63] = '\0';
  EXPECT_OK(c, vt_op_intern(name, &op));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "name", vt_op_intern(NULL, &op));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "name", vt_op_intern("", &op));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_id", vt_op_intern("test.intern.c", NULL));
}

// An object of the program that nothing refers to but this file: its registration comes before main(), and still behind the
// library's own.

static vt_status before_main = VT_NOT_READY;

__attribute__((constructor)) static void register_before_main(void) {
  const vt_op_provider early = provider("early", 3);
  vt_op_id op = 0;
  (void)vt_suite_init();  // the environment of the suite comes first
  before_main = vt_op_intern("test.early", &op);
  before_main = before_main == VT_OK ? vt_op_provider_register(op, VT_DEVICE_CPU, &early) : before_main;
}

static void a_provider_registered_before_main_is_found(vt_case *c) {
  const vt_op_provider *found = NULL;
  EXPECT_EQ(c, VT_OK, before_main);
  REQUIRE_OK(c, vt_op_get(intern(c, "test.early"), VT_DEVICE_CPU, NULL, &found));
  EXPECT_TEXT(c, "early", found->name);
  REQUIRE_OK(c, vt_op_get(intern(c, "vt.all_reduce"), VT_DEVICE_CPU, NULL, &found));
  EXPECT_TEXT(c, VT_OP_NATIVE_NAME, found->name);
}

static void many_names_fit(vt_case *c) {
  vt_op_id ids[300];
  for (int i = 0; i < 300; i++) {
    char name[32];
    snprintf(name, sizeof(name), "test.many.%d", i);
    ids[i] = intern(c, name);
  }
  for (int i = 0; i < 300; i++) {
    char name[32];
    snprintf(name, sizeof(name), "test.many.%d", i);
    EXPECT_TEXT(c, name, vt_op_get_name(ids[i]));
  }
}

// Walks the list from the top and compares the names.
static void expect_order(vt_case *c, vt_op_id op, vt_device_type type, const void *descriptor, const char *const *names,
                         size_t count) {
  const vt_op_provider *found = NULL;
  for (size_t i = 0; i < count; i++) {
    vt_status status =
        i == 0 ? vt_op_get(op, type, descriptor, &found) : vt_op_get_below(op, type, names[i - 1], descriptor, &found);
    if (!EXPECT_EQ(c, VT_OK, status) || !EXPECT_TEXT(c, names[i], found->name)) {
      return;
    }
  }
  if (count > 0) {
    EXPECT_STATUS(c, VT_ERR_NOT_FOUND, vt_op_get_below(op, type, names[count - 1], descriptor, &found));
  }
}

// Priority falls, then names rise by bytes; the order of registration has no influence.
static void order_is_by_priority_then_name(vt_case *c) {
  static const struct {
    const char *name;
    int32_t priority;
  } all[] = {{"b", 0},  {"a", 0},          {"Z", 0},           {"last", -1000},    {"first", 50},
             {"aa", 0}, {"first-too", 50}, {"min", INT32_MIN}, {"max", INT32_MAX}, {"\xc3\xa9", 0}};
  static const char *const expected[] = {"max", "first", "first-too", "Z", "a", "aa", "b", "\xc3\xa9", "last", "min"};
  enum { COUNT = sizeof(all) / sizeof(all[0]) };
  for (size_t round = 0; round < 4; round++) {
    char name[32];
    snprintf(name, sizeof(name), "test.order.%zu", round);
    vt_op_id op = intern(c, name);
    for (size_t i = 0; i < COUNT; i++) {
      size_t k = (i * 3 + round * 7) % COUNT;
      vt_op_provider p = provider(all[k].name, all[k].priority);
      EXPECT_OK(c, vt_op_provider_register(op, VT_DEVICE_CPU, &p));
    }
    expect_order(c, op, VT_DEVICE_CPU, NULL, expected, COUNT);
    const vt_op_provider *found = NULL;
    EXPECT_STATUS(c, VT_ERR_NOT_FOUND, vt_op_get(op, VT_DEVICE_CUDA, NULL, &found));
  }
}

typedef struct question {
  int32_t answer;
  const void *seen;
} question;

static int32_t supports(void *user, vt_op_question *asked) {
  question *q = user;
  q->seen = asked->descriptor;
  return q->answer;
}

static void providers_decline(vt_case *c) {
  static question yes = {1, NULL};
  static question no = {0, NULL};
  int descriptor = 5;
  vt_op_id op = intern(c, "test.decline");
  vt_op_provider top = provider("top", 3);
  vt_op_provider middle = provider("middle", 2);
  vt_op_provider bottom = provider("bottom", 1);
  top.supports = supports;
  top.user = &no;
  middle.supports = supports;
  middle.user = &yes;
  EXPECT_OK(c, vt_op_provider_register(op, VT_DEVICE_CPU, &top));
  EXPECT_OK(c, vt_op_provider_register(op, VT_DEVICE_CPU, &middle));
  EXPECT_OK(c, vt_op_provider_register(op, VT_DEVICE_CPU, &bottom));
  static const char *const first[] = {"middle", "bottom"};
  expect_order(c, op, VT_DEVICE_CPU, &descriptor, first, 2);
  EXPECT_TRUE(c, no.seen == &descriptor && yes.seen == &descriptor);
  no.answer = 1;
  yes.answer = 0;
  static const char *const second[] = {"top", "bottom"};
  expect_order(c, op, VT_DEVICE_CPU, NULL, second, 2);
  EXPECT_TRUE(c, no.seen == NULL && yes.seen == NULL);
  const vt_op_provider *found = NULL;
  EXPECT_OK(c, vt_op_get(op, VT_DEVICE_CPU, NULL, &found));
  EXPECT_TRUE(c, found->fn == some_function && found->priority == 3 && found->user == &no);
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "unknown-name", vt_op_get_below(op, VT_DEVICE_CPU, "unknown-name", NULL, &found));
}

static void bad_registrations_are_errors_not_silence(vt_case *c) {
  vt_op_id op = intern(c, "test.bad");
  vt_op_provider good = provider("good", 0);
  vt_op_provider p = good;
  const vt_op_provider *found = NULL;
  char name[65];
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "test.bad", vt_op_get(op, VT_DEVICE_CPU, NULL, &found));
  EXPECT_STATUS(c, VT_ERR_INVALID_ARGUMENT, vt_op_provider_register(0, VT_DEVICE_CPU, &good));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "1000000", vt_op_provider_register(1000000, VT_DEVICE_CPU, &good));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "type 5", vt_op_provider_register(op, VT_DEVICE_TYPE_COUNT, &good));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "NULL", vt_op_provider_register(op, VT_DEVICE_CPU, NULL));
  p.name = NULL;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "name", vt_op_provider_register(op, VT_DEVICE_CPU, &p));
  p.name = "";
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "name", vt_op_provider_register(op, VT_DEVICE_CPU, &p));
  memset(name, 'p', 64);
  name[64] = '\0';
  p.name = name;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "63", vt_op_provider_register(op, VT_DEVICE_CPU, &p));
  p = good;
  p.fn = NULL;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "has no function", vt_op_provider_register(op, VT_DEVICE_CPU, &p));
  p = good;
  p.struct_size = 8;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "struct_size is 8", vt_op_provider_register(op, VT_DEVICE_CPU, &p));
  p.struct_size = offsetof(vt_op_provider, supports) + 4;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "inside a member", vt_op_provider_register(op, VT_DEVICE_CPU, &p));
  p = good;
  p.name = VT_OP_REFERENCE_NAME;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "reference tier", vt_op_provider_register(op, VT_DEVICE_CPU, &p));
  EXPECT_EQ(c, 0, vt_op_is_registered(op, VT_DEVICE_CPU));
  EXPECT_OK(c, vt_op_provider_register(op, VT_DEVICE_CPU, &good));
  EXPECT_EQ(c, 1, vt_op_is_registered(op, VT_DEVICE_CPU));
  EXPECT_EQ(c, 0, vt_op_is_registered(op, VT_DEVICE_TYPE_COUNT));
  p = good;
  p.priority = 9;
  EXPECT_FAILS(c, VT_ERR_ALREADY_EXISTS, "good", vt_op_provider_register(op, VT_DEVICE_CPU, &p));
  EXPECT_OK(c, vt_op_provider_register(op, VT_DEVICE_METAL, &good));
  EXPECT_OK(c, vt_op_get(op, VT_DEVICE_CPU, NULL, &found));
  EXPECT_EQ(c, 0, found->priority);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_provider", vt_op_get(op, VT_DEVICE_CPU, NULL, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "type -1", vt_op_get(op, -1, NULL, &found));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "name", vt_op_get_below(op, VT_DEVICE_CPU, NULL, NULL, &found));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_provider", vt_op_get_below(op, VT_DEVICE_CPU, "good", NULL, NULL));
  EXPECT_STATUS(c, VT_ERR_NOT_FOUND, vt_op_get(0, VT_DEVICE_CPU, NULL, &found));
}

static void a_name_is_copied(vt_case *c) {
  char name[16] = "volatile";
  vt_op_id op = intern(c, "test.copied");
  vt_op_provider p = provider(name, 0);
  const vt_op_provider *found = NULL;
  EXPECT_OK(c, vt_op_provider_register(op, VT_DEVICE_CPU, &p));
  strcpy(name, "gone");
  EXPECT_OK(c, vt_op_get(op, VT_DEVICE_CPU, NULL, &found));
  EXPECT_TEXT(c, "volatile", found->name);
}

static void register_many(vt_case *c, int32_t index, void *arg) {
  vt_op_id op = *(vt_op_id *)arg;
  for (int i = 0; i < 50; i++) {
    char name[32];
    const vt_op_provider *found = NULL;
    snprintf(name, sizeof(name), "p-%d-%02d", (int)index, i);
    vt_op_provider p = provider(name, i);
    EXPECT_OK(c, vt_op_provider_register(op, VT_DEVICE_CPU, &p));
    EXPECT_OK(c, vt_op_get(op, VT_DEVICE_CPU, NULL, &found));
    EXPECT_TRUE(c, found->priority >= i);
  }
}

static void look_ups_go_on_while_others_register(vt_case *c) {
  vt_op_id op = intern(c, "test.race");
  vt_test_threads(c, 4, register_many, &op);
  const vt_op_provider *found = NULL;
  size_t count = 0;
  vt_status status = vt_op_get(op, VT_DEVICE_CPU, NULL, &found);
  while (status == VT_OK) {
    count++;
    status = vt_op_get_below(op, VT_DEVICE_CPU, found->name, NULL, &found);
  }
  EXPECT_EQ(c, 200, count);
}

static void the_library_provides_its_own_operations(vt_case *c) {
  static const char *const names[] = {"vt.all_reduce", "vt.all_gather", "vt.send", "vt.recv", "vt.barrier"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    const vt_op_provider *found = NULL;
    REQUIRE_OK(c, vt_op_get(intern(c, names[i]), VT_DEVICE_CPU, NULL, &found));
    EXPECT_TEXT(c, VT_OP_NATIVE_NAME, found->name);
    EXPECT_EQ(c, VT_OP_NATIVE_PRIORITY, found->priority);
    EXPECT_TRUE(c, found->fn != NULL);
  }
}

const vt_test_case vt_cases_op[] = {
    {"op_names_are_interned", ONCE, names_are_interned},
    {"many_op_names_fit", ONCE, many_names_fit},
    {"op_order_is_by_priority_then_name", ONCE, order_is_by_priority_then_name},
    {"op_providers_decline", ONCE, providers_decline},
    {"bad_op_registrations_are_errors_not_silence", ONCE, bad_registrations_are_errors_not_silence},
    {"an_op_provider_name_is_copied", ONCE, a_name_is_copied},
    {"op_look_ups_go_on_while_others_register", ONCE, look_ups_go_on_while_others_register},
    {"a_provider_registered_before_main_is_found", ONCE, a_provider_registered_before_main_is_found},
    {"the_library_provides_its_own_operations", ONCE, the_library_provides_its_own_operations},
    VT_TEST_END};
