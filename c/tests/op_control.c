// op_control.c: steering and watching the choice of providers. Nothing is ever unregistered, so each case uses names of its own.
#include "vt_test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void some_function(void) {}

static vt_op_id intern(vt_case *c, const char *name) {
  vt_op_id op = 0;
  EXPECT_OK(c, vt_op_intern(name, &op));
  return op;
}

// What a provider of these cases answers.
typedef struct opinion {
  _Atomic(const char *) refusal;  // NULL: it wants the call
} opinion;

static int32_t ask(void *user, vt_op_question *question) {
  opinion *mine = user;
  // relaxed: what it points to is constant.
  question->reason = atomic_load_explicit(&mine->refusal, memory_order_relaxed);
  return question->reason == NULL;
}

static void set(opinion *mine, const char *refusal) {
  atomic_store_explicit(&mine->refusal, refusal, memory_order_relaxed);
}

static void add(vt_case *c, vt_op_id op, vt_device_type type, const char *name, int32_t priority, opinion *mine) {
  vt_op_provider provider = {.struct_size = sizeof(provider), .name = name, .priority = priority, .fn = some_function};
  provider.supports = mine == NULL ? NULL : ask;
  provider.user = mine;
  EXPECT_OK(c, vt_op_provider_register(op, type, &provider));
}

static const char *chosen(vt_op_id op, vt_device_type type) {
  const vt_op_provider *found = NULL;
  return vt_op_get(op, type, NULL, &found) == VT_OK ? found->name : NULL;
}

static vt_op_stats stats_of(vt_case *c, vt_op_id op, vt_device_type type, const char *name) {
  vt_op_stats stats = VT_OP_STATS_INIT;
  EXPECT_OK(c, vt_op_provider_get_stats(op, type, name, &stats));
  return stats;
}

static void end_strict(void *unused) {
  (void)unused;
  vt_op_set_strict(0);
}

static void begin_strict(vt_case *c) {
  vt_test_defer(c, end_strict, NULL);
  vt_op_set_strict(1);
}

// Four providers, of which two tie: {10, 5, 5, 0}.
static vt_op_id four(vt_case *c, const char *name, opinion *top) {
  vt_op_id op = intern(c, name);
  add(c, op, VT_DEVICE_CPU, "p-last", 0, NULL);
  add(c, op, VT_DEVICE_CPU, "p-tie-b", 5, NULL);
  add(c, op, VT_DEVICE_CPU, "p-top", 10, top);
  add(c, op, VT_DEVICE_CPU, "p-tie-a", 5, NULL);
  return op;
}

static void a_policy_chooses_among_its_names_in_their_order(vt_case *c) {
  static const char *const names[] = {"p-last", "p-nobody", "p-tie-b"};
  vt_op_id op = four(c, "test.policy.list", NULL);
  vt_op_policy policy = VT_OP_POLICY_INIT;
  const vt_op_provider *found = NULL;
  policy.names = names;
  policy.count = 3;
  REQUIRE_OK(c, vt_op_get_with(op, VT_DEVICE_CPU, &policy, NULL, NULL, &found));
  EXPECT_TEXT(c, "p-last", found->name);
  // The next one on the list, not the next one by priority.
  REQUIRE_OK(c, vt_op_get_with(op, VT_DEVICE_CPU, &policy, "p-last", NULL, &found));
  EXPECT_TEXT(c, "p-tie-b", found->name);
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "below \"p-tie-b\"", vt_op_get_with(op, VT_DEVICE_CPU, &policy, "p-tie-b", NULL, &found));
  // On the op, but not on the list.
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "p-top", vt_op_get_with(op, VT_DEVICE_CPU, &policy, "p-top", NULL, &found));
  policy.names = names + 1;
  policy.count = 1;
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "\"p-nobody\" refused: it is not registered",
               vt_op_get_with(op, VT_DEVICE_CPU, &policy, NULL, NULL, &found));
  policy.count = 0;
  EXPECT_STATUS(c, VT_ERR_NOT_FOUND, vt_op_get_with(op, VT_DEVICE_CPU, &policy, NULL, NULL, &found));
  policy.names = NULL;
  REQUIRE_OK(c, vt_op_get_with(op, VT_DEVICE_CPU, &policy, NULL, NULL, &found));
  EXPECT_TEXT(c, "p-top", found->name);
}

static void bad_policies_are_refused(vt_case *c) {
  static const char *const names[] = {"p-last", NULL};
  vt_op_id op = four(c, "test.policy.bad", NULL);
  vt_op_policy policy = VT_OP_POLICY_INIT;
  const vt_op_provider *found = NULL;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "policy is NULL", vt_op_get_with(op, VT_DEVICE_CPU, NULL, NULL, NULL, &found));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_provider", vt_op_get_with(op, VT_DEVICE_CPU, &policy, NULL, NULL, NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "type 9", vt_op_get_with(op, 9, &policy, NULL, NULL, &found));
  policy.count = 1;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "count", vt_op_get_with(op, VT_DEVICE_CPU, &policy, NULL, NULL, &found));
  policy.names = names;
  policy.count = 2;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "NULL", vt_op_get_with(op, VT_DEVICE_CPU, &policy, NULL, NULL, &found));
  policy.count = 1;
  policy.flags = 1u << 31;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "flags", vt_op_get_with(op, VT_DEVICE_CPU, &policy, NULL, NULL, &found));
  policy.flags = 0;
  policy.struct_size = 4;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "struct_size", vt_op_get_with(op, VT_DEVICE_CPU, &policy, NULL, NULL, &found));
  policy.struct_size = offsetof(vt_op_policy, names) + 4;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "inside a member", vt_op_get_with(op, VT_DEVICE_CPU, &policy, NULL, NULL, &found));
}

// The same answers, whether one look-up is strict or all are.
static void expect_strict(vt_case *c, vt_op_id op, const vt_op_policy *policy, opinion *top) {
  const vt_op_provider *found = NULL;
  set(top, NULL);
  EXPECT_OK(c, vt_op_get_with(op, VT_DEVICE_CPU, policy, NULL, NULL, &found));
  EXPECT_TEXT(c, "p-top", found->name);
  set(top, "only f16");
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "\"p-top\", which refused: only f16",
               vt_op_get_with(op, VT_DEVICE_CPU, policy, NULL, NULL, &found));
  uint64_t declines = stats_of(c, op, VT_DEVICE_CPU, "p-top").declines;
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "\"p-top\" declined", vt_op_get_with(op, VT_DEVICE_CPU, policy, "p-top", NULL, &found));
  EXPECT_EQ(c, declines + 1, stats_of(c, op, VT_DEVICE_CPU, "p-top").declines);
}

static void a_strict_look_up_lets_nobody_stand_in(vt_case *c) {
  static const char *const missing[] = {"p-nobody", "p-last"};
  static opinion top;
  vt_op_id op = four(c, "test.strict", &top);
  vt_op_policy policy = VT_OP_POLICY_INIT;
  const vt_op_provider *found = NULL;
  policy.flags = VT_OP_STRICT;
  expect_strict(c, op, &policy, &top);
  EXPECT_EQ(c, 0, stats_of(c, op, VT_DEVICE_CPU, "p-tie-a").selections);
  EXPECT_OK(c, vt_op_get(op, VT_DEVICE_CPU, NULL, &found));  // others may
  EXPECT_TEXT(c, "p-tie-a", found->name);
  policy.names = missing;
  policy.count = 2;
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "p-nobody", vt_op_get_with(op, VT_DEVICE_CPU, &policy, NULL, NULL, &found));
  policy = (vt_op_policy)VT_OP_POLICY_INIT;
  begin_strict(c);
  expect_strict(c, op, &policy, &top);
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "only f16", vt_op_get(op, VT_DEVICE_CPU, NULL, &found));
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "declined", vt_op_get_below(op, VT_DEVICE_CPU, "p-top", NULL, &found));
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "p-nobody", vt_op_get_below(op, VT_DEVICE_CPU, "p-nobody", NULL, &found));
  vt_op_set_strict(0);
  EXPECT_TEXT(c, "p-tie-a", chosen(op, VT_DEVICE_CPU));
}

static void statistics_count_every_choice_and_refusal(vt_case *c) {
  static opinion top;
  vt_op_id op = four(c, "test.stats", &top);
  const vt_op_provider *found = NULL;
  EXPECT_TEXT(c, NULL, vt_op_get_last_selected(op, VT_DEVICE_CPU));
  for (int i = 0; i < 3; i++) {
    EXPECT_TEXT(c, "p-top", chosen(op, VT_DEVICE_CPU));
  }
  EXPECT_TEXT(c, "p-top", vt_op_get_last_selected(op, VT_DEVICE_CPU));
  set(&top, "no bf16");
  EXPECT_TEXT(c, "p-tie-a", chosen(op, VT_DEVICE_CPU));
  EXPECT_TEXT(c, "p-tie-a", chosen(op, VT_DEVICE_CPU));
  set(&top, "too large");
  EXPECT_TEXT(c, "p-tie-a", chosen(op, VT_DEVICE_CPU));
  EXPECT_OK(c, vt_op_get_below(op, VT_DEVICE_CPU, "p-tie-a", NULL, &found));
  EXPECT_TEXT(c, "p-tie-b", vt_op_get_last_selected(op, VT_DEVICE_CPU));
  // Nothing below is an error, and still counted; an unknown name is one, too.
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "below \"p-last\"", vt_op_get_below(op, VT_DEVICE_CPU, "p-last", NULL, &found));
  EXPECT_STATUS(c, VT_ERR_NOT_FOUND, vt_op_get_below(op, VT_DEVICE_CPU, "p-nobody", NULL, &found));
  vt_op_stats stats = stats_of(c, op, VT_DEVICE_CPU, "p-top");
  EXPECT_EQ(c, 3, stats.selections);
  EXPECT_EQ(c, 0, stats.fallbacks);
  EXPECT_EQ(c, 3, stats.declines);
  EXPECT_TEXT(c, "too large", stats.last_reason);
  EXPECT_TEXT(c, "no bf16", stats.reasons[0].reason);
  EXPECT_EQ(c, 2, stats.reasons[0].count);
  EXPECT_TEXT(c, "too large", stats.reasons[1].reason);
  EXPECT_EQ(c, 1, stats.reasons[1].count);
  EXPECT_TEXT(c, NULL, stats.reasons[2].reason);
  stats = stats_of(c, op, VT_DEVICE_CPU, "p-tie-a");
  EXPECT_EQ(c, 3, stats.selections);
  EXPECT_EQ(c, 3, stats.fallbacks);
  EXPECT_EQ(c, 1, stats.declines);
  EXPECT_TEXT(c, "its function declined", stats.last_reason);
  EXPECT_EQ(c, 1, stats_of(c, op, VT_DEVICE_CPU, "p-tie-b").fallbacks);
  EXPECT_EQ(c, 1, stats_of(c, op, VT_DEVICE_CPU, "p-last").declines);
  EXPECT_EQ(c, 0, stats_of(c, op, VT_DEVICE_CPU, "p-last").selections);
}

static void reasons_beyond_the_room_are_counted_together(vt_case *c) {
  static const char *const reasons[] = {"r0", "r1", "r2", "r3", "r4", "r5", "r6"};
  static opinion only;
  vt_op_id op = intern(c, "test.reasons");
  add(c, op, VT_DEVICE_CPU, "p-only", 0, &only);
  for (int i = 0; i < 7; i++) {
    set(&only, reasons[i]);
    EXPECT_TEXT(c, NULL, chosen(op, VT_DEVICE_CPU));
    EXPECT_MESSAGE(c, reasons[i]);
  }
  vt_op_stats stats = stats_of(c, op, VT_DEVICE_CPU, "p-only");
  EXPECT_EQ(c, 7, stats.declines);
  EXPECT_TEXT(c, "r4", stats.reasons[4].reason);
  EXPECT_TEXT(c, "other reasons", stats.reasons[5].reason);
  EXPECT_EQ(c, 2, stats.reasons[5].count);
  EXPECT_TEXT(c, "r6", stats.last_reason);
  // Callers of an earlier version get what they know.
  vt_op_stats old = {.struct_size = offsetof(vt_op_stats, disabled), .disabled = 77};
  EXPECT_OK(c, vt_op_provider_get_stats(op, VT_DEVICE_CPU, "p-only", &old));
  EXPECT_EQ(c, 7, old.declines);
  EXPECT_EQ(c, 77, old.disabled);
  old.struct_size = 8;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "struct_size is 8", vt_op_provider_get_stats(op, VT_DEVICE_CPU, "p-only", &old));
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "p-other", vt_op_provider_get_stats(op, VT_DEVICE_CPU, "p-other", &stats));
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "metal", vt_op_provider_get_stats(op, VT_DEVICE_METAL, "p-only", &stats));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "name", vt_op_provider_get_stats(op, VT_DEVICE_CPU, NULL, &stats));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "out_stats", vt_op_provider_get_stats(op, VT_DEVICE_CPU, "p-only", NULL));
}

enum { LOOK_UPS = 5000 };

static void look_up_many(vt_case *c, int32_t index, void *arg) {
  (void)index;
  for (int i = 0; i < LOOK_UPS; i++) {
    if (chosen(*(vt_op_id *)arg, VT_DEVICE_CPU) == NULL) {
      FAIL_CASE(c, "look-up %d found nobody", i);
      return;
    }
  }
}

static void statistics_of_threads_that_ended_are_kept(vt_case *c) {
  vt_op_id op = four(c, "test.stats.threads", NULL);
  look_up_many(c, 0, &op);
  vt_test_threads(c, 4, look_up_many, &op);
  vt_test_threads(c, 4, look_up_many, &op);
  EXPECT_EQ(c, 9 * LOOK_UPS, stats_of(c, op, VT_DEVICE_CPU, "p-top").selections);
}

static void enable_again(void *name) {
  (void)vt_op_provider_enable(name);
}

static void a_disabled_name_is_passed_over_everywhere(vt_case *c) {
  static char name[] = "p-disabled";
  vt_op_id first = intern(c, "test.disable.a");
  vt_op_id second = intern(c, "test.disable.b");
  const vt_op_provider *found = NULL;
  add(c, first, VT_DEVICE_CPU, name, 9, NULL);
  add(c, first, VT_DEVICE_CPU, "p-below", 0, NULL);
  add(c, first, VT_DEVICE_METAL, name, 9, NULL);
  uint64_t before = vt_op_get_generation();
  vt_test_defer(c, enable_again, name);
  EXPECT_OK(c, vt_op_provider_disable(name));
  EXPECT_OK(c, vt_op_provider_disable(name));
  EXPECT_TRUE(c, vt_op_get_generation() > before);
  add(c, second, VT_DEVICE_CPU, name, 9, NULL);  // later ones, too
  EXPECT_TEXT(c, "p-below", chosen(first, VT_DEVICE_CPU));
  EXPECT_EQ(c, 0, stats_of(c, first, VT_DEVICE_CPU, "p-below").fallbacks);
  EXPECT_TEXT(c, NULL, chosen(first, VT_DEVICE_METAL));
  EXPECT_TEXT(c, NULL, chosen(second, VT_DEVICE_CPU));
  EXPECT_EQ(c, 1, vt_op_is_registered(second, VT_DEVICE_CPU));
  EXPECT_EQ(c, 1, stats_of(c, second, VT_DEVICE_CPU, name).disabled);
  // A call that had chosen it before may still decline.
  EXPECT_OK(c, vt_op_get_below(first, VT_DEVICE_CPU, name, NULL, &found));
  EXPECT_TEXT(c, "p-below", found->name);
  // A policy that asks for it learns why it doesn't get it.
  const char *const names[] = {name};
  vt_op_policy policy = {sizeof(policy), VT_OP_STRICT, names, 1};
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "it is disabled", vt_op_get_with(first, VT_DEVICE_CPU, &policy, NULL, NULL, &found));
  EXPECT_OK(c, vt_op_provider_enable(name));
  EXPECT_TEXT(c, name, chosen(first, VT_DEVICE_CPU));
  EXPECT_TEXT(c, name, chosen(second, VT_DEVICE_CPU));
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, name, vt_op_provider_enable(name));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "NULL", vt_op_provider_disable(NULL));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "empty", vt_op_provider_enable(""));
}

typedef struct book {
  int count;
  char last[VT_ERROR_MESSAGE_MAX];
} book;

static void take_message(void *user, vt_log_level level, const char *message) {
  book *mine = user;
  (void)level;
  mine->count++;
  snprintf(mine->last, sizeof(mine->last), "%s", message);
}

static void a_name_that_nobody_has_is_noted_once(vt_case *c) {
  static book notes;
  static char name[] = "p-unheard-of";
  vt_test_log(c, take_message, &notes, VT_LOG_WARN);
  vt_test_defer(c, enable_again, name);
  EXPECT_OK(c, vt_op_provider_disable(name));
  EXPECT_EQ(c, 1, notes.count);
  EXPECT_TRUE(c, strstr(notes.last, name) != NULL);
  EXPECT_OK(c, vt_op_provider_enable(name));
  EXPECT_OK(c, vt_op_provider_disable(name));
  EXPECT_EQ(c, 1, notes.count);
}

typedef struct seen_caps {
  const void *caps;
  size_t bytes;
} seen_caps;

static int32_t needs_caps(void *user, vt_op_question *question) {
  seen_caps *seen = user;
  *seen = (seen_caps){question->caps, question->caps_bytes};
  question->reason = question->caps == NULL ? "capabilities aren't published" : NULL;
  return question->caps != NULL;
}

static void caps_reach_the_providers_when_they_are_published(vt_case *c) {
  static seen_caps seen;
  vt_op_id op = intern(c, "test.caps");
  vt_op_provider provider = {sizeof(provider), "p-caps", 0, some_function, needs_caps, &seen};
  EXPECT_OK(c, vt_op_provider_register(op, VT_DEVICE_XPU, &provider));
  EXPECT_TEXT(c, NULL, chosen(op, VT_DEVICE_XPU));
  EXPECT_MESSAGE(c, "\"p-caps\" refused: capabilities aren't published");
  char caps[] = "sm 90";
  uint64_t before = vt_op_get_generation();
  EXPECT_OK(c, vt_op_caps_publish(VT_DEVICE_XPU, caps, sizeof(caps)));
  EXPECT_TRUE(c, vt_op_get_generation() > before);
  memset(caps, 'x', sizeof(caps));
  EXPECT_TEXT(c, "p-caps", chosen(op, VT_DEVICE_XPU));
  EXPECT_EQ(c, 6, seen.bytes);
  EXPECT_BYTES(c, "sm 90", seen.caps, 6);
  EXPECT_EQ(c, 0, (uintptr_t)seen.caps % 16);
  const void *first = seen.caps;
  EXPECT_OK(c, vt_op_caps_publish(VT_DEVICE_XPU, "sm 121", 7));
  EXPECT_TEXT(c, "p-caps", chosen(op, VT_DEVICE_XPU));
  EXPECT_BYTES(c, "sm 121", seen.caps, 7);
  EXPECT_BYTES(c, "sm 90", first, 6);  // a look-up that is still going on may read it
  EXPECT_OK(c, vt_op_caps_publish(VT_DEVICE_XPU, "sm 80", 6));
  EXPECT_TEXT(c, "p-caps", chosen(op, VT_DEVICE_XPU));
  EXPECT_BYTES(c, "sm 80", seen.caps, 6);
  EXPECT_OK(c, vt_op_caps_publish(VT_DEVICE_XPU, "sm 90", 6));
  EXPECT_TEXT(c, "p-caps", chosen(op, VT_DEVICE_XPU));
  EXPECT_TRUE(c, seen.caps == first);
  // A provider that comes later sees them, too; other types don't.
  provider.name = "p-caps-later";
  provider.priority = 1;
  EXPECT_OK(c, vt_op_provider_register(op, VT_DEVICE_XPU, &provider));
  EXPECT_OK(c, vt_op_provider_register(op, VT_DEVICE_VULKAN, &provider));
  EXPECT_TEXT(c, "p-caps-later", chosen(op, VT_DEVICE_XPU));
  EXPECT_TEXT(c, NULL, chosen(op, VT_DEVICE_VULKAN));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "type 5", vt_op_caps_publish(VT_DEVICE_TYPE_COUNT, "", 1));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "NULL", vt_op_caps_publish(VT_DEVICE_XPU, NULL, 1));
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "0", vt_op_caps_publish(VT_DEVICE_XPU, "", 0));
}

static void expect_explained(vt_case *c, vt_op_id op, const vt_op_policy *policy, const char *expected) {
  char text[600];
  char whole[600];
  snprintf(whole, sizeof(whole), expected, (int)op);
  EXPECT_EQ(c, strlen(whole), vt_op_explain(op, VT_DEVICE_CPU, policy, NULL, text, sizeof(text)));
  EXPECT_TEXT(c, whole, text);
}

static void a_look_up_is_explained_in_words(vt_case *c) {
  static char name[] = "p-explained-off";
  static const char *const names[] = {"p-tie-b", "p-nobody", "p-top"};
  static opinion top;
  vt_op_id op = four(c, "test.explain", &top);
  add(c, op, VT_DEVICE_CPU, name, 7, NULL);
  vt_test_defer(c, enable_again, name);
  EXPECT_OK(c, vt_op_provider_disable(name));
  set(&top, "only f16");
  expect_explained(c, op, NULL,
                   "test.explain (id %d) on cpu, no caps published:\n"
                   "  \"p-top\", priority 10: refuses: only f16\n"
                   "  \"p-tie-a\", priority 5: chosen\n"
                   "  \"p-tie-b\", priority 5: stands by\n"
                   "  \"p-last\", priority 0: stands by\n"
                   "  \"p-explained-off\", priority 7: is disabled\n");
  vt_op_policy policy = {sizeof(policy), VT_OP_STRICT, NULL, 0};
  expect_explained(c, op, &policy,
                   "test.explain (id %d) on cpu, no caps published, strict:\n"
                   "  \"p-top\", priority 10: refuses: only f16\n"
                   "  \"p-tie-a\", priority 5: may not stand in, the look-up is strict\n"
                   "  \"p-tie-b\", priority 5: may not stand in, the look-up is strict\n"
                   "  \"p-last\", priority 0: may not stand in, the look-up is strict\n"
                   "  \"p-explained-off\", priority 7: is disabled\n"
                   "  no provider serves the call\n");
  policy = (vt_op_policy){sizeof(policy), 0, names, 3};
  expect_explained(c, op, &policy,
                   "test.explain (id %d) on cpu, no caps published:\n"
                   "  \"p-tie-b\", priority 5: chosen\n"
                   "  \"p-nobody\": refuses: it is not registered\n"
                   "  \"p-top\", priority 10: refuses: only f16\n");
  EXPECT_EQ(c, 0, stats_of(c, op, VT_DEVICE_CPU, "p-top").declines);
  char small[8];
  EXPECT_TRUE(c, vt_op_explain(op, VT_DEVICE_CPU, NULL, NULL, small, sizeof(small)) > 100);
  EXPECT_TEXT(c, "test.ex", small);
  EXPECT_TRUE(c, vt_op_explain(op, VT_DEVICE_CPU, NULL, NULL, NULL, 0) > 100);
  EXPECT_EQ(c, 0, vt_op_explain(op, VT_DEVICE_CPU, NULL, NULL, NULL, 1));
  EXPECT_EQ(c, 0, vt_op_explain(op, -1, NULL, NULL, small, sizeof(small)));
  EXPECT_LAST_ERROR(c, VT_ERR_INVALID_ARGUMENT, "type -1");
}

// One thread changes everything that can be changed while the others look up.
static void change_and_look_up(vt_case *c, int32_t index, void *arg) {
  vt_op_id op = *(vt_op_id *)arg;
  for (int i = 0; i < (vt_test_is_slow() ? 100 : 1000); i++) {
    const vt_op_provider *found = NULL;
    EXPECT_OK(c, vt_op_get(op, VT_DEVICE_VULKAN, NULL, &found));
    EXPECT_TRUE(c, strcmp(found->name, "p-stays") == 0 || strcmp(found->name, "p-comes-and-goes") == 0);
    if (index == 0) {
      EXPECT_OK(c, vt_op_provider_disable("p-comes-and-goes"));
      EXPECT_OK(c, vt_op_get(op, VT_DEVICE_VULKAN, NULL, &found));
      EXPECT_TEXT(c, "p-stays", found->name);
      EXPECT_OK(c, vt_op_caps_publish(VT_DEVICE_VULKAN, &i, i % 2 == 0 ? 1 : 2));
      EXPECT_OK(c, vt_op_provider_enable("p-comes-and-goes"));
    } else if (index == 1) {
      vt_op_stats stats = VT_OP_STATS_INIT;
      EXPECT_OK(c, vt_op_provider_get_stats(op, VT_DEVICE_VULKAN, "p-stays", &stats));
      EXPECT_TRUE(c, vt_op_get_last_selected(op, VT_DEVICE_VULKAN) != NULL);
    }
  }
}

static void look_ups_go_on_while_everything_changes(vt_case *c) {
  vt_op_id op = intern(c, "test.changes");
  add(c, op, VT_DEVICE_VULKAN, "p-stays", 0, NULL);
  add(c, op, VT_DEVICE_VULKAN, "p-comes-and-goes", 1, NULL);
  vt_test_threads(c, 4, change_and_look_up, &op);
}

#define ENV_CASE "the_environment_disables_like_the_api"

// In a process of its own, in which the variable was set.
static void in_that_environment(vt_case *c) {
  vt_op_id op = intern(c, "test.env");
  vt_op_id all_reduce = intern(c, "vt.all_reduce");
  const vt_op_provider *found = NULL;
  add(c, op, VT_DEVICE_CPU, "p env", 3, NULL);
  add(c, op, VT_DEVICE_CPU, "p-env", 2, NULL);
  add(c, op, VT_DEVICE_CPU, "p-other", 1, NULL);
  EXPECT_TEXT(c, "p-other", chosen(op, VT_DEVICE_CPU));
  const char *const names[] = {"p-env", "p-other"};
  vt_op_policy policy = {sizeof(policy), 0, names, 2};
  EXPECT_OK(c, vt_op_get_with(op, VT_DEVICE_CPU, &policy, NULL, NULL, &found));
  EXPECT_TEXT(c, "p-other", found->name);
  policy.flags = VT_OP_STRICT;
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "it is disabled", vt_op_get_with(op, VT_DEVICE_CPU, &policy, NULL, NULL, &found));
  EXPECT_FAILS(c, VT_ERR_NOT_FOUND, "vt.all_reduce", vt_op_get(all_reduce, VT_DEVICE_CPU, NULL, &found));
  EXPECT_OK(c, vt_op_provider_enable(VT_OP_NATIVE_NAME));
  EXPECT_OK(c, vt_op_provider_enable("p-env"));
  EXPECT_TEXT(c, VT_OP_NATIVE_NAME, chosen(all_reduce, VT_DEVICE_CPU));
  EXPECT_TEXT(c, "p-env", chosen(op, VT_DEVICE_CPU));
  for (int i = 0; i < 40; i++) {
    char name[16];
    snprintf(name, sizeof(name), "p-many-%d", i);
    EXPECT_OK(c, vt_op_provider_enable(name));
  }
}

// Runs this very case with the variable, and collects what it says.
static int run_with(vt_case *c, char *output, size_t capacity) {
  char self[1000] = {0};
  char command[4000];
  if (readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0) {
    FAIL_CASE(c, "where this program is can't be read");
    return -1;
  }
  size_t length = (size_t)snprintf(command, sizeof(command), "VT_LOG=warn VT_OP_PROVIDER_DISABLE=',p-env , vt-native,,p env");
  for (int i = 0; i < 40; i++) {
    length += (size_t)snprintf(command + length, sizeof(command) - length, ",p-many-%d", i);
  }
  const char *runner = getenv("VT_TEST_RUNNER");
  snprintf(command + length, sizeof(command) - length, "' %s '%s' --filter cpu-sync/" ENV_CASE " 2>&1", runner ? runner : "", self);
  FILE *pipe = popen(command, "r");
  if (pipe == NULL) {
    FAIL_CASE(c, "no child process");
    return -1;
  }
  size_t bytes = fread(output, 1, capacity - 1, pipe);
  output[bytes] = '\0';
  return pclose(pipe);
}

static int count_of(const char *text, const char *part) {
  int count = 0;
  for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
    count++;
  }
  return count;
}

static void the_environment_disables_like_the_api(vt_case *c) {
  static char output[65536];
  if (getenv("VT_OP_PROVIDER_DISABLE") != NULL) {
    in_that_environment(c);
    return;
  }
  if (!EXPECT_EQ(c, 0, run_with(c, output, sizeof(output)))) {
    FAIL_CASE(c, "%s", output);
  }
  // Each name that nobody had on first use is noted once; the native provider was there.
  EXPECT_EQ(c, 1, count_of(output, "VT_OP_PROVIDER_DISABLE names \"p-many-39\""));
  EXPECT_EQ(c, 1, count_of(output, "VT_OP_PROVIDER_DISABLE names \"p-env\""));
  EXPECT_EQ(c, 42, count_of(output, "VT_OP_PROVIDER_DISABLE names"));
}

const vt_test_case vt_cases_op_control[] = {
    {"a_policy_chooses_among_its_names_in_their_order", ONCE, a_policy_chooses_among_its_names_in_their_order},
    {"bad_op_policies_are_refused", ONCE, bad_policies_are_refused},
    {"a_strict_look_up_lets_nobody_stand_in", ONCE, a_strict_look_up_lets_nobody_stand_in},
    {"op_statistics_count_every_choice_and_refusal", ONCE, statistics_count_every_choice_and_refusal},
    {"reasons_beyond_the_room_are_counted_together", ONCE, reasons_beyond_the_room_are_counted_together},
    {"op_statistics_of_threads_that_ended_are_kept", ONCE, statistics_of_threads_that_ended_are_kept},
    {"a_disabled_name_is_passed_over_everywhere", ONCE, a_disabled_name_is_passed_over_everywhere},
    {"a_disabled_name_that_nobody_has_is_noted_once", ONCE, a_name_that_nobody_has_is_noted_once},
    {"caps_reach_the_providers_when_they_are_published", ONCE, caps_reach_the_providers_when_they_are_published},
    {"a_look_up_is_explained_in_words", ONCE, a_look_up_is_explained_in_words},
    {"op_look_ups_go_on_while_everything_changes", ONCE, look_ups_go_on_while_everything_changes},
    {ENV_CASE, ONCE, the_environment_disables_like_the_api},
    VT_TEST_END};
