// status.c: statuses and the record of the last failure.
#include "vt_test.h"

#include <stdio.h>

static void status_names_and_numbers_are_fixed(vt_case *c) {
  static const struct {
    vt_status status;
    const char *name;
  } all[] = {{0, "OK"},
             {1, "NOT_READY"},
             {-1, "INVALID_ARGUMENT"},
             {-2, "OUT_OF_MEMORY"},
             {-3, "UNSUPPORTED"},
             {-4, "NOT_FOUND"},
             {-5, "ALREADY_EXISTS"},
             {-6, "FAILED_PRECONDITION"},
             {-7, "TIMEOUT"},
             {-8, "ABORTED"},
             {-9, "PEER_LOST"},
             {-10, "MISMATCH"},
             {-11, "DEVICE_LOST"},
             {-12, "INTERNAL"},
             {-13, "unknown status"},
             {2, "unknown status"}};
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
    if (strcmp(vt_status_get_name(all[i].status), all[i].name) != 0) {
      FAIL_CASE(c, "status %d is named %s, not %s", (int)all[i].status, vt_status_get_name(all[i].status), all[i].name);
    }
  }
  EXPECT_EQ(c, 100, VT_VERSION);
  EXPECT_EQ(c, VT_VERSION, vt_version());
}

static void last_error_survives_success_and_not_ready(vt_case *c) {
  size_t bytes;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "99", vt_dtype_get_size(99, &bytes));
  EXPECT_EQ(c, VT_ERR_INVALID_ARGUMENT, vt_last_error()->status);
  EXPECT_EQ(c, VT_DOMAIN_VT, vt_last_error()->domain);
  EXPECT_TRUE(c, strcmp(vt_last_error()->function, "vt_dtype_get_size") == 0);
  EXPECT_OK(c, vt_dtype_get_size(VT_DTYPE_F32, &bytes));
  vt_queue *queue = vt_test_queue(c);
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_LAST_ERROR(c, VT_ERR_INVALID_ARGUMENT, "99");
}

static void look_from_another_thread(vt_case *c, int32_t index, void *unused) {
  (void)unused;
  EXPECT_EQ(c, VT_OK, vt_last_error()->status);
  EXPECT_TRUE(c, strcmp(vt_last_error()->message, "") == 0);
  size_t bytes;
  char part[16];
  snprintf(part, sizeof(part), "%d", 1000 + (int)index);
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, part, vt_dtype_get_size(1000 + index, &bytes));
}

static void last_error_belongs_to_its_thread(vt_case *c) {
  size_t bytes;
  EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "77", vt_dtype_get_size(77, &bytes));
  vt_test_threads(c, 4, look_from_another_thread, NULL);
  EXPECT_LAST_ERROR(c, VT_ERR_INVALID_ARGUMENT, "77");
}

static void error_set_writes_the_record_and_cuts_long_texts(vt_case *c) {
  EXPECT_STATUS(c, VT_ERR_DEVICE_LOST, vt_error_set(VT_ERR_DEVICE_LOST, VT_DOMAIN_CUDA, 719, "launch", "rank %d of %s", 3, "four"));
  const vt_error *error = vt_last_error();
  EXPECT_EQ(c, VT_ERR_DEVICE_LOST, error->status);
  EXPECT_EQ(c, VT_DOMAIN_CUDA, error->domain);
  EXPECT_EQ(c, 719, error->native);
  EXPECT_TRUE(c, strcmp(error->function, "launch") == 0);
  EXPECT_TRUE(c, strcmp(error->message, "rank 3 of four") == 0);

  char text[2 * VT_ERROR_MESSAGE_MAX];
  memset(text, 'x', sizeof(text) - 1);
  text[sizeof(text) - 1] = '\0';
  EXPECT_STATUS(c, VT_ERR_INTERNAL, vt_error_set(VT_ERR_INTERNAL, VT_DOMAIN_ERRNO, 28, "f", "%s", text));
  EXPECT_EQ(c, VT_ERROR_MESSAGE_MAX - 1, strlen(vt_last_error()->message));
}

static void error_set_can_quote_the_last_message(vt_case *c) {
  (void)vt_error_set(VT_ERR_INTERNAL, VT_DOMAIN_VT, 0, "f", "inner %d", 5);
  (void)vt_error_set(VT_ERR_INTERNAL, VT_DOMAIN_VT, 0, "g", "outer: %s", vt_last_error()->message);
  EXPECT_TRUE(c, strcmp(vt_last_error()->message, "outer: inner 5") == 0);
}

const vt_test_case vt_cases_status[] = {
    {"status_names_and_numbers_are_fixed", ONCE, status_names_and_numbers_are_fixed},
    {"last_error_survives_success_and_not_ready", 0, last_error_survives_success_and_not_ready},
    {"last_error_belongs_to_its_thread", ONCE, last_error_belongs_to_its_thread},
    {"error_set_writes_the_record_and_cuts_long_texts", ONCE, error_set_writes_the_record_and_cuts_long_texts},
    {"error_set_can_quote_the_last_message", ONCE, error_set_can_quote_the_last_message},
    VT_TEST_END};
