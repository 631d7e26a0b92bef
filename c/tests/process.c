// process.c: loading the library, its first use, and the end of the process, each in a process of its own. See process/loader.c.
#include "vt_test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RIGHT = 7, NO_SUCH_CALL = 8, REPEATS = 3 };

// Where this program is: the loader and the engine that it loads lie beside it.
static int find_folder(char *folder, size_t capacity) {
  ssize_t length = readlink("/proc/self/exe", folder, capacity - 1);
  folder[length < 0 ? 0 : length] = '\0';
  char *slash = strrchr(folder, '/');
  if (slash == NULL) {
    return 0;
  }
  *slash = '\0';
  char loader[PATH_MAX + 16];
  snprintf(loader, sizeof(loader), "%s/vt_loader", folder);
  return access(loader, X_OK) == 0;
}

// Runs the loader in an environment. Answers its exit code, or -1 where it was killed; what it wrote is in `output`.
static int load(vt_case *c, const char *environment, const char *arguments, char *output, size_t capacity) {
  char folder[PATH_MAX];
  char command[3 * PATH_MAX];
  if (!find_folder(folder, sizeof(folder))) {
    return -2;
  }
  const char *runner = getenv("VT_TEST_RUNNER");
  // ThreadSanitizer would sleep for a second at each exit.
  snprintf(command, sizeof(command),
           "TSAN_OPTIONS=$TSAN_OPTIONS:atexit_sleep_ms=0 VT_CPU_DEVICES=1 %s exec %s '%s/vt_loader' '%s/vt_session.so' %s 2>&1",
           environment, runner == NULL ? "" : runner, folder, folder, arguments);
  FILE *pipe = popen(command, "r");
  if (pipe == NULL) {
    FAIL_CASE(c, "no child process");
    return -1;
  }
  size_t bytes = fread(output, 1, capacity - 1, pipe);
  output[bytes] = '\0';
  int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_run(vt_case *c, const char *environment, const char *arguments, const char *expected_output) {
  static char output[16384];
  int code = load(c, environment, arguments, output, sizeof(output));
  if (code == -2) {
    SKIP_CASE(c, "vt_loader isn't beside this program");
  }
  if (code != RIGHT || strcmp(output, expected_output) != 0) {
    FAIL_CASE(c, "vt_loader %s: exit code %d, \"%s\"", arguments, code, output);
  }
}

static const char *const ways[] = {"return", "exit", "_exit", "quick_exit", "elsewhere"};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void a_process_may_end_in_any_way_while_everything_is_in_use(vt_case *c) {
  for (size_t i = 0; i < WAYS * REPEATS && vt_test_is_clean(c); i++) {
    char arguments[64];
    snprintf(arguments, sizeof(arguments), "leave %s nowhere", ways[i % WAYS]);
    expect_run(c, "", arguments, "");
  }
}

// Also where a trace is written, which is completed at the exit: by then, the later handlers' work is past it.
static void everything_may_be_used_and_given_back_at_the_end_of_the_process(vt_case *c) {
  static const char *const places[] = {"before", "behind", "static", "library"};
  char trace[] = "/tmp/vt_process_XXXXXX";
  char traced[64];
  int file = mkstemp(trace);
  snprintf(traced, sizeof(traced), "VT_TRACE=%s", trace);
  for (size_t i = 0; i < WAYS * 4 && vt_test_is_clean(c); i++) {
    const char *way = ways[i % WAYS];
    const char *place = places[i / WAYS];
    char arguments[64];
    snprintf(arguments, sizeof(arguments), "leave %s %s", way, place);
    // _exit runs nothing, and quick_exit only what asked for it.
    int quick = strcmp(way, "quick_exit") == 0;
    int runs = strcmp(way, "_exit") != 0 && (!quick || i / WAYS < 2);
    expect_run(c, i % 2 == 0 ? "" : traced, arguments, runs ? "used at the end\n" : "");
  }
  close(file);
  unlink(trace);
}

static void loading_the_library_changes_nothing_of_the_host(vt_case *c) {
  expect_run(c, "", "host", "");
}

static void first_use_may_come_from_many_threads_at_once(vt_case *c) {
  for (int i = 0; i < 5 && vt_test_is_clean(c); i++) {
    expect_run(c, "", "race", "");
  }
}

static void any_call_may_be_the_first_one(vt_case *c) {
  static char output[16384];
  char arguments[64];
  int code = RIGHT;
  int n = 0;
  for (; code == RIGHT; n++) {
    snprintf(arguments, sizeof(arguments), "first %d", n);
    code = load(c, "", arguments, output, sizeof(output));
  }
  if (code == -2) {
    SKIP_CASE(c, "vt_loader isn't beside this program");
  }
  if (code != NO_SUCH_CALL || n < 16) {
    FAIL_CASE(c, "first call %d: exit code %d, \"%s\"", n - 1, code, output);
  }
}

static void a_library_that_uses_ours_may_be_closed_and_loaded_again(vt_case *c) {
  expect_run(c, "", "again", "");
}

const vt_test_case vt_cases_process[] = {
    {"a_process_may_end_in_any_way_while_everything_is_in_use", ONCE, a_process_may_end_in_any_way_while_everything_is_in_use},
    {"everything_may_be_used_and_given_back_at_the_end_of_the_process", ONCE,
     everything_may_be_used_and_given_back_at_the_end_of_the_process},
    {"loading_the_library_changes_nothing_of_the_host", ONCE, loading_the_library_changes_nothing_of_the_host},
    {"first_use_may_come_from_many_threads_at_once", ONCE, first_use_may_come_from_many_threads_at_once},
    {"any_call_may_be_the_first_one", ONCE, any_call_may_be_the_first_one},
    {"a_library_that_uses_ours_may_be_closed_and_loaded_again", ONCE, a_library_that_uses_ours_may_be_closed_and_loaded_again},
    VT_TEST_END};
