// suite.c: the rows, the tables of cases, and the run of one case on one row.
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "plugin.h"
#include "toy_backend.h"

extern const vt_test_case vt_cases_status[];
extern const vt_test_case vt_cases_dtype[];
extern const vt_test_case vt_cases_device[];
extern const vt_test_case vt_cases_registry[];
extern const vt_test_case vt_cases_backend_abi[];
extern const vt_test_case vt_cases_plugin[];
extern const vt_test_case vt_cases_resource[];
extern const vt_test_case vt_cases_memory[];
extern const vt_test_case vt_cases_pool[];
extern const vt_test_case vt_cases_pool_model[];
extern const vt_test_case vt_cases_memory_options[];
extern const vt_test_case vt_cases_queue[];
extern const vt_test_case vt_cases_queue_async[];
extern const vt_test_case vt_cases_queue_failure[];
extern const vt_test_case vt_cases_event[];
extern const vt_test_case vt_cases_graph[];
extern const vt_test_case vt_cases_graph_branch[];
extern const vt_test_case vt_cases_graph_misuse[];
extern const vt_test_case vt_cases_graph_stored[];
extern const vt_test_case vt_cases_capture_random[];
extern const vt_test_case vt_cases_arena[];
extern const vt_test_case vt_cases_op[];
extern const vt_test_case vt_cases_op_control[];
extern const vt_test_case vt_cases_op_reference[];
extern const vt_test_case vt_cases_handle[];
extern const vt_test_case vt_cases_log[];
extern const vt_test_case vt_cases_trace[];
extern const vt_test_case vt_cases_validate[];
extern const vt_test_case vt_cases_validate_graph[];
extern const vt_test_case vt_cases_fork[];
extern const vt_test_case vt_cases_copy[];
extern const vt_test_case vt_cases_host_allocator[];
extern const vt_test_case vt_cases_toy[];
extern const vt_test_case vt_cases_harness[];
extern const vt_test_case vt_cases_comm_reduce[];
extern const vt_test_case vt_cases_comm_gather[];
extern const vt_test_case vt_cases_comm_ops[];
extern const vt_test_case vt_cases_comm_ops_types[];
extern const vt_test_case vt_cases_comm_split[];
extern const vt_test_case vt_cases_comm_message[];
extern const vt_test_case vt_cases_comm_errors[];
extern const vt_test_case vt_cases_comm_abort[];
extern const vt_test_case vt_cases_comm_batch[];
extern const vt_test_case vt_cases_comm_graph[];
extern const vt_test_case vt_cases_comm_inspect[];
extern const vt_test_case vt_cases_comm_refusal[];
extern const vt_test_case vt_cases_comm_wait[];
extern const vt_test_case vt_cases_wait_mode[];
extern const vt_test_case vt_cases_guest[];
extern const vt_test_case vt_cases_process[];
extern const vt_test_case vt_cases_graph_others[];
extern const vt_test_case vt_cases_op_refusal[];

static const vt_test_case *const tables[] = {
    vt_cases_status,         vt_cases_dtype,        vt_cases_device,         vt_cases_registry,
    vt_cases_resource,       vt_cases_memory,       vt_cases_queue,          vt_cases_queue_async,
    vt_cases_queue_failure,  vt_cases_event,        vt_cases_graph,          vt_cases_graph_branch,
    vt_cases_graph_misuse,   vt_cases_graph_stored, vt_cases_arena,          vt_cases_op,
    vt_cases_handle,         vt_cases_log,          vt_cases_fork,           vt_cases_toy,
    vt_cases_harness,        vt_cases_comm_reduce,  vt_cases_comm_gather,    vt_cases_comm_message,
    vt_cases_comm_errors,    vt_cases_comm_abort,   vt_cases_comm_batch,     vt_cases_comm_graph,
    vt_cases_comm_inspect,   vt_cases_comm_refusal, vt_cases_backend_abi,    vt_cases_plugin,
    vt_cases_op_control,     vt_cases_op_reference, vt_cases_trace,          vt_cases_host_allocator,
    vt_cases_capture_random, vt_cases_wait_mode,    vt_cases_guest,          vt_cases_pool,
    vt_cases_pool_model,     vt_cases_copy,         vt_cases_memory_options, vt_cases_validate,
    vt_cases_comm_wait,      vt_cases_process,      vt_cases_graph_others,   vt_cases_op_refusal,
    vt_cases_validate_graph, vt_cases_comm_ops,     vt_cases_comm_ops_types, vt_cases_comm_split,
};

#define TABLES (sizeof(tables) / sizeof(tables[0]))

#define CPU_OFFERS (NEED_GRAPH | NEED_COMM | NEED_EVENT_TIMING | NEED_CPU | NEED_DEVICES)

// The minimums are raised whenever cases are added: a case that silently goes away is a failure. They count what runs in one
// process; the second one is what ThreadSanitizer, which skips the most, leaves.
static vt_test_row_info rows[] = {
    {"cpu-sync", VT_DEVICE_CPU, 0, CPU_OFFERS | NEED_SYNC, 0, 414, 373},
    {"cpu-async", VT_DEVICE_CPU, VT_QUEUE_ASYNC, CPU_OFFERS | NEED_ASYNC | NEED_WORKER, 0, 384, 331},
    {"cpu-async-delays", VT_DEVICE_CPU, VT_QUEUE_ASYNC, CPU_OFFERS | NEED_ASYNC | NEED_WORKER, 1, 384, 331},
    {"toy", VT_DEVICE_METAL, 0, NEED_ASYNC | NEED_TOY, 0, 120, 113},
    {"plugin", VT_DEVICE_VULKAN, 0, NEED_PLUGIN, 0, 87, 87},  // what else it offers is seen when it is loaded
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))
#define PLUGIN_ROW (ROWS - 1)

#define MAX_RUNS 4096
#define NAME_BYTES 128

static struct {
  pthread_once_t once;
  size_t count;
  struct {
    const vt_test_case *test;
    size_t row;
    char name[NAME_BYTES];
  } runs[MAX_RUNS];
} suite = {.once = PTHREAD_ONCE_INIT};

static void list_case(const vt_test_case *test, size_t row) {
  if ((test->needs & ONCE) != 0 && row != 0) {
    return;
  }
  // A case without a place, or under a cut name, would be lost in silence.
  if (suite.count == MAX_RUNS) {
    fprintf(stderr, "no place for %s/%s: raise MAX_RUNS\n", rows[row].name, test->name);
    abort();
  }
  suite.runs[suite.count].test = test;
  suite.runs[suite.count].row = row;
  if (snprintf(suite.runs[suite.count].name, NAME_BYTES, "%s/%s", rows[row].name, test->name) >= NAME_BYTES) {
    fprintf(stderr, "the name %s/%s is too long\n", rows[row].name, test->name);
    abort();
  }
  suite.count++;
}

static void list_all(void) {
  for (size_t row = 0; row < ROWS; row++) {
    for (size_t table = 0; table < TABLES; table++) {
      for (const vt_test_case *test = tables[table]; test->name != NULL; test++) {
        list_case(test, row);
      }
    }
  }
}

size_t vt_suite_count(void) {
  pthread_once(&suite.once, list_all);
  return suite.count;
}

const char *vt_suite_name(size_t i) {
  return i < vt_suite_count() ? suite.runs[i].name : NULL;
}

size_t vt_suite_row_count(void) {
  return ROWS;
}

const char *vt_suite_row_name(size_t row) {
  return rows[row].name;
}

size_t vt_suite_row_minimum(size_t row) {
  (void)vt_suite_init();
  return vt_test_is_slow() ? rows[row].slow_minimum : rows[row].minimum;
}

size_t vt_suite_row_of(size_t i) {
  return i < vt_suite_count() ? suite.runs[i].row : ROWS;
}

static const struct {
  uint32_t need;
  const char *reason;
} reasons[] = {
    {NEED_SYNC, "needs synchronous queues"},     {NEED_ASYNC, "needs asynchronous queues"},
    {NEED_WORKER, "needs queues with a worker"}, {NEED_GRAPH, "needs graph capture"},
    {NEED_COMM, "needs communicators"},          {NEED_EVENT_TIMING, "needs timing events"},
    {NEED_CPU, "needs the CPU backend"},         {NEED_DEVICES, "needs several devices"},
    {NEED_TOY, "is about the plug-in backend"},  {NEED_PLUGIN, "is about a backend in a shared library"},
};

const char *vt_suite_skip_reason(size_t i) {
  if (i >= vt_suite_count()) {
    return "no such run";
  }
  (void)vt_suite_init();  // what the row of the shared library offers
  uint32_t needs = suite.runs[i].test->needs;
  uint32_t offers = rows[suite.runs[i].row].offers;
  for (size_t k = 0; k < sizeof(reasons) / sizeof(reasons[0]); k++) {
    if ((needs & reasons[k].need) != 0 && (offers & reasons[k].need) == 0) {
      return reasons[k].reason;
    }
  }
  if ((needs & (NEED_FORK | NEED_NO_TSAN)) != 0 && vt_test_is_tsan()) {
    return "not under ThreadSanitizer";
  }
  return NULL;
}

static vt_status host_allocator;
static vt_status first_registration;
static const char *plugin_problem;
static pthread_once_t init_once = PTHREAD_ONCE_INIT;

static void init(void) {
  setenv("VT_CPU_DEVICES", "4", 1);
  host_allocator = vt_test_alloc_begin();
  first_registration = vt_toy_register((vt_device){VT_DEVICE_METAL, 0});
  plugin_problem = vt_test_plugin_load();
  rows[PLUGIN_ROW].offers |= vt_test_plugin_offers();
  if (!vt_test_plugin_is_own()) {
    rows[PLUGIN_ROW].minimum = 1;
    rows[PLUGIN_ROW].slow_minimum = 1;
  }
}

vt_status vt_suite_init(void) {
  pthread_once(&init_once, init);
  return first_registration;
}

static uint64_t choose_seed(void) {
  const char *text = getenv("VT_TEST_SEED");
  return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 0) : vt_test_now_ns() ^ ((uint64_t)getpid() << 32);
}

static int result_of(vt_case *c, char *message, size_t capacity) {
  if (c->failures > 0) {
    snprintf(message, capacity, "%.*s  %d checks failed; VT_TEST_SEED=%llu\n", (int)c->text_bytes, c->text, c->failures,
             (unsigned long long)c->seed);
    return VT_SUITE_FAIL;
  }
  snprintf(message, capacity, "%.*s", (int)c->text_bytes, c->text);
  return c->skipped ? VT_SUITE_SKIP : VT_SUITE_PASS;
}

int vt_suite_run(size_t i, char *message, size_t capacity) {
  const char *reason = vt_suite_skip_reason(i);
  if (reason != NULL) {
    snprintf(message, capacity, "%s", reason);
    return VT_SUITE_SKIP;
  }
  if (vt_suite_init() != VT_OK) {
    snprintf(message, capacity, "  the plug-in backend could not be registered: %s\n", vt_status_get_name(vt_suite_init()));
    return VT_SUITE_FAIL;
  }
  if (host_allocator != VT_OK) {
    snprintf(message, capacity, "  the host allocator could not be set: %s\n", vt_status_get_name(host_allocator));
    return VT_SUITE_FAIL;
  }
  if (suite.runs[i].row == PLUGIN_ROW && plugin_problem != NULL) {
    snprintf(message, capacity, "  the plug-in: %s\n", plugin_problem);
    return VT_SUITE_FAIL;
  }
  vt_case *c = calloc(1, sizeof(*c));
  if (c == NULL) {
    snprintf(message, capacity, "  no memory\n");
    return VT_SUITE_FAIL;
  }
  c->test = suite.runs[i].test;
  c->row = &rows[suite.runs[i].row];
  c->seed = choose_seed();
  c->grace_ns = vt_test_is_slow() ? UINT64_C(20000000000) : UINT64_C(5000000000);
  pthread_mutex_init(&c->mutex, NULL);
  vt_test_census_take(&c->before);
  vt_test_watch_begin(c);
  vt_test_reports_begin(c);
  if (c->row->delays) {
    vt_test_delays_begin(c->seed);
  }
  c->test->fn(c);
  vt_test_clean_up(c);
  if (c->row->delays) {
    vt_test_delays_end();
  }
  vt_test_reports_end(c);
  vt_test_watch_end(c);
  int result = result_of(c, message, capacity);
  pthread_mutex_destroy(&c->mutex);
  free(c);
  return result;
}
