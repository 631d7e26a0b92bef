// main.c: runs the conformance suite from the command line.
//
//   vt_conformance [--filter TEXT] [--row ROW]   runs what matches; exit code 0 if nothing failed and no row ran too few cases
//   vt_conformance --list                        one line per run: name, and behind a tab the reason why it will be skipped
//   vt_conformance --run NUMBER                  runs one line of the list; exit code 0 passed, 1 failed, 2 skipped
//   vt_conformance --minimum                     checks that no row lists fewer cases than are kept; runs nothing
//
// VT_TEST_SEED=n repeats a run's random numbers. VT_TEST_SLOW=1 gives the cases more time and smaller sizes.
// VT_TEST_DEADLINE=n lets the watchdog stop a case after n seconds in place of 60.
// VT_TEST_RUNNER="EMULATOR OPTIONS" stands before this program's path where a case starts it again.
#include <stdio.h>
#include <stdlib.h>

#include "suite.h"

#define MESSAGE_BYTES 16384
#define MAX_ROWS 16
#define FAILURES_BYTES 4096

// A plug-in may register before main().
__attribute__((constructor)) static void register_early(void) {
  vt_suite_init();
}

typedef struct totals {
  size_t passed;
  size_t failed;
  size_t skipped;
  size_t ran[MAX_ROWS];
  char failures[FAILURES_BYTES];  // said once more at the end, which a cut log still has
  size_t failures_bytes;
} totals;

static void list_runs(void) {
  for (size_t i = 0; i < vt_suite_count(); i++) {
    const char *reason = vt_suite_skip_reason(i);
    printf("%s%s%s\n", vt_suite_name(i), reason == NULL ? "" : "\t", reason == NULL ? "" : reason);
  }
}

static int run_one(size_t i) {
  static char message[MESSAGE_BYTES];
  int result = vt_suite_run(i, message, sizeof(message));
  printf("%s", message);
  return result;
}

// Keeps a case's name and its first failed check, which is the first line of its message.
static void note_failure(totals *sum, const char *name, const char *message) {
  size_t room = FAILURES_BYTES - sum->failures_bytes;
  int bytes = snprintf(sum->failures + sum->failures_bytes, room, "FAILED  %s\n%.*s\n", name, (int)strcspn(message, "\n"), message);
  if (bytes > 0 && (size_t)bytes < room) {
    sum->failures_bytes += (size_t)bytes;
  } else {
    sum->failures[sum->failures_bytes] = '\0';  // the ones that fit are whole
  }
}

static void run_and_count(size_t i, totals *sum) {
  static char message[MESSAGE_BYTES];
  uint64_t begin = vt_test_now_ns();
  int result = vt_suite_run(i, message, sizeof(message));
  double ms = (double)(vt_test_now_ns() - begin) / 1e6;
  if (result == VT_SUITE_SKIP) {
    sum->skipped++;
    printf("skipped %s: %s\n", vt_suite_name(i), message);
    return;
  }
  sum->ran[vt_suite_row_of(i)]++;
  if (result == VT_SUITE_PASS) {
    sum->passed++;
    printf("ok      %s (%.1f ms)\n", vt_suite_name(i), ms);
  } else {
    sum->failed++;
    printf("FAILED  %s (%.1f ms)\n%s", vt_suite_name(i), ms, message);
    note_failure(sum, vt_suite_name(i), message);
  }
  fflush(stdout);
}

// Whether each row that was asked for ran as many cases as it must.
static int check_minimum(const totals *sum, const char *only_row) {
  int enough = 1;
  for (size_t row = 0; row < vt_suite_row_count(); row++) {
    const char *name = vt_suite_row_name(row);
    if ((only_row == NULL || strcmp(only_row, name) == 0) && sum->ran[row] < vt_suite_row_minimum(row)) {
      printf("row %s has %zu cases, fewer than the %zu that are kept\n", name, sum->ran[row], vt_suite_row_minimum(row));
      enough = 0;
    }
  }
  return enough;
}

static int check_listed(void) {
  totals listed = {0};
  for (size_t i = 0; i < vt_suite_count(); i++) {
    listed.ran[vt_suite_row_of(i)] += vt_suite_skip_reason(i) == NULL;
  }
  return check_minimum(&listed, NULL) ? 0 : 1;
}

static int run_many(const char *filter, const char *only_row) {
  static totals sum;
  for (size_t i = 0; i < vt_suite_count(); i++) {
    const char *row = vt_suite_row_name(vt_suite_row_of(i));
    if ((only_row == NULL || strcmp(only_row, row) == 0) && (filter == NULL || strstr(vt_suite_name(i), filter) != NULL)) {
      run_and_count(i, &sum);
    }
  }
  printf("%zu passed, %zu failed, %zu skipped\n%s", sum.passed, sum.failed, sum.skipped, sum.failures);
  int enough = filter != NULL || check_minimum(&sum, only_row);
  return sum.failed == 0 && enough && sum.passed > 0 ? 0 : 1;
}

int main(int argc, char **argv) {
  const char *filter = NULL;
  const char *row = NULL;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--list") == 0) {
      list_runs();
      return 0;
    }
    if (strcmp(argv[i], "--minimum") == 0) {
      return check_listed();
    }
    if (i + 1 < argc && strcmp(argv[i], "--run") == 0) {
      return run_one(strtoul(argv[i + 1], NULL, 10));
    }
    if (i + 1 < argc && strcmp(argv[i], "--filter") == 0) {
      filter = argv[++i];
    } else if (i + 1 < argc && strcmp(argv[i], "--row") == 0) {
      row = argv[++i];
    } else {
      fprintf(stderr, "usage: %s [--list | --minimum | --run NUMBER] [--filter TEXT] [--row ROW]\n", argv[0]);
      return 64;
    }
  }
  return run_many(filter, row);
}
