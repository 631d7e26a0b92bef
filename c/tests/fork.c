// fork.c: in a forked child every call fails clearly, and releases are silent.
#include "vt_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct family {
  vt_queue *queue;
  vt_event *event;
  vt_graph *graph;
  vt_arena *arena;
  vt_comm_group *group;
  vt_device device;
} family;

// Answers 0 if the call failed as it must, else the step's number, so that the child's exit code says which one was wrong.
static int refused(int step, vt_status status) {
  return status == VT_ERR_FAILED_PRECONDITION && strstr(vt_last_error()->message, "forked child") != NULL ? 0 : step;
}

static void ignore_log(void *user, vt_log_level level, const char *message) {
  (void)user;
  (void)level;
  (void)message;
}

static void ignore_trace(void *user, const vt_trace_event *event) {
  (void)user;
  (void)event;
}

// The child may not print or allocate much: it answers by its exit code.
static int child_main(const family *f) {
  void *ptr = NULL;
  char byte = 0;
  char other = 0;
  vt_comm *comm = NULL;
  int wrong = refused(1, vt_queue_synchronize(f->queue));
  wrong = wrong ? wrong : refused(2, vt_copy(f->queue, &byte, &other, 1));
  wrong = wrong ? wrong : refused(3, vt_memset(f->queue, &byte, 1, 1));
  wrong = wrong ? wrong : refused(4, vt_queue_query(f->queue));
  wrong = wrong ? wrong : refused(5, vt_event_record(f->event, f->queue));
  wrong = wrong ? wrong : refused(6, vt_event_query(f->event));
  wrong = wrong ? wrong : refused(7, vt_event_synchronize(f->event));
  wrong = wrong ? wrong : refused(8, vt_queue_after_event(f->queue, f->event));
  wrong = wrong ? wrong : refused(9, vt_alloc(f->device, 8, &ptr));
  wrong = wrong ? wrong : refused(10, vt_pinned_alloc(f->device, 8, &ptr));
  wrong = wrong ? wrong : refused(11, vt_queue_create(f->device, NULL, (vt_queue **)&ptr));
  wrong = wrong ? wrong : refused(12, vt_event_create(f->device, 0, (vt_event **)&ptr));
  wrong = wrong ? wrong : refused(13, vt_arena_create(f->device, 8, (vt_arena **)&ptr));
  wrong = wrong ? wrong : refused(14, vt_queue_host_func(f->queue, vt_test_host_fail, NULL, NULL));
  wrong = wrong ? wrong : refused(15, vt_graph_begin_capture(f->queue));
  wrong = wrong ? wrong : refused(16, vt_queue_destroy(f->queue));
  wrong = wrong ? wrong : refused(17, vt_device_flush(f->device));
  wrong = wrong ? wrong : refused(18, vt_queue_wait_ticket(f->queue, 1, VT_WAIT_FOREVER));
  wrong = wrong ? wrong : refused(19, vt_graph_launch(f->graph, f->queue));
  wrong = wrong ? wrong : refused(20, vt_queue_replay(f->queue));
  wrong = wrong ? wrong : refused(21, vt_backend_register((vt_device){VT_DEVICE_XPU, 9}, "x", NULL, NULL));
  wrong = wrong ? wrong : refused(22, vt_comm_group_create(2, NULL, (vt_comm_group **)&ptr));
  wrong = wrong ? wrong : refused(23, vt_comm_batch_begin());
  vt_pool_stats stats = VT_POOL_STATS_INIT;
  vt_memory_info info = VT_MEMORY_INFO_INIT;
  wrong = wrong ? wrong : refused(26, vt_alloc_async(f->queue, 8, &ptr));
  wrong = wrong ? wrong : refused(27, vt_free_async(f->queue, &byte));
  wrong = wrong ? wrong : refused(28, vt_pool_trim(f->device, 0));
  wrong = wrong ? wrong : refused(29, vt_pool_set_limit(f->device, 0));
  wrong = wrong ? wrong : refused(30, vt_pool_get_stats(f->device, &stats));
  wrong = wrong ? wrong : refused(31, vt_alloc_with(f->device, 8, NULL, &ptr));
  wrong = wrong ? wrong : refused(32, vt_memory_get_info(f->device, f, &info));
  vt_memory_stats memory = VT_MEMORY_STATS_INIT;
  vt_op_id id;
  wrong = wrong ? wrong : refused(33, vt_memory_get_stats(f->device, VT_MEMORY_DEVICE, &memory));
  wrong = wrong ? wrong : refused(34, vt_op_intern("vt.all_reduce", &id));
  wrong = wrong ? wrong : refused(35, vt_log_set(ignore_log, NULL, VT_LOG_ERROR));
  wrong = wrong ? wrong : refused(36, vt_trace_set(ignore_trace, NULL));
  if (wrong == 0 && vt_comm_group_get_comm(f->group, 0, &comm) == VT_OK) {
    wrong = refused(24, vt_comm_barrier(comm, f->queue, NULL));
    wrong = wrong ? wrong : refused(25, vt_comm_abort(comm, "child"));
  }
  if (wrong != 0) {
    return wrong;
  }
  // Releases are silent: the record stays as it was, and nothing hangs or crashes.
  (void)vt_error_set(VT_ERR_INTERNAL, VT_DOMAIN_VT, 0, "child", "untouched");
  vt_queue_release(f->queue);
  vt_event_release(f->event);
  vt_graph_release(f->graph);
  vt_arena_release(f->arena);
  vt_comm_group_release(f->group);
  return strcmp(vt_last_error()->message, "untouched") == 0 ? 0 : 40;
}

static int wait_for_child(vt_case *c, pid_t child) {
  uint64_t deadline = vt_test_now_ns() + UINT64_C(20000000000);
  int status = 0;
  pid_t seen = 0;
  while ((seen = waitpid(child, &status, WNOHANG)) == 0 && vt_test_now_ns() < deadline) {
    vt_test_sleep_ns(1000000);
  }
  if (seen == 0) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    FAIL_CASE(c, "the child hangs");
    return -1;
  }
  if (!WIFEXITED(status)) {
    FAIL_CASE(c, "the child was ended by signal %d", WTERMSIG(status));
    return -1;
  }
  return WEXITSTATUS(status);
}

static void calls_in_a_forked_child_fail_and_releases_are_silent(vt_case *c) {
  family f = {.queue = vt_test_queue(c), .event = vt_test_event(c, 0), .arena = vt_test_arena(c, 64), .device = vt_test_device(c)};
  unsigned char *block = vt_test_alloc(c, 100);
  f.group = vt_test_group(c, 2, NULL);
  EXPECT_OK(c, vt_graph_begin_capture(f.queue));
  EXPECT_OK(c, vt_memset(f.queue, block, 1, 100));
  REQUIRE_OK(c, vt_graph_end_capture(f.queue, &f.graph));
  EXPECT_OK(c, vt_graph_launch(f.graph, f.queue));
  EXPECT_OK(c, vt_queue_synchronize(f.queue));
  EXPECT_OK(c, vt_event_record(f.event, f.queue));
  pid_t child = fork();
  if (child == 0) {
    alarm(15);
    _exit(child_main(&f));
  }
  REQUIRE_TRUE(c, child > 0);
  EXPECT_EQ(c, 0, wait_for_child(c, child));
  // The parent goes on as if nothing had happened.
  EXPECT_OK(c, vt_memset(f.queue, block, 0, 100));
  EXPECT_OK(c, vt_graph_launch(f.graph, f.queue));
  EXPECT_OK(c, vt_queue_synchronize(f.queue));
  EXPECT_FILLED(c, 1, block, 100);
  vt_graph_release(f.graph);
}

const vt_test_case vt_cases_fork[] = {{"calls_in_a_forked_child_fail_and_releases_are_silent", NEED_GRAPH | NEED_COMM | NEED_FORK,
                                       calls_in_a_forked_child_fail_and_releases_are_silent},
                                      VT_TEST_END};
