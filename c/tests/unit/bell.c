// bell.c: everything that a rank may sleep for rings the bell that it sleeps on. A sleep is short, so a forgotten ring would only
// be slow, and nothing else would show it.
#include <pthread.h>
#include <time.h>

#include "comm/inproc/inproc.h"
#include "unit.h"

#define WORLD 3
#define COUNT 4096  // more than what travels with a publication

typedef enum act {
  MEETS,  // the awaited rank comes
  SENDS,  // a message is sent, or received
  TAKES,
  ABORTS,  // the group is aborted
  GOES,    // the awaited rank is released
  REFUSED,
  ACTS,
} act;

typedef struct scene {
  vt_comm_group *group;
  vt_comm *comms[WORLD];
  vt_queue *queue;
  act what;
  vt_status status;
} scene;

static vt_comm_call call_of(vt_wait_mode wait) {
  vt_comm_call opts = VT_COMM_CALL_INIT;
  opts.wait = wait;
  return opts;
}

// Rank 0 sleeps on the bell of rank 1.
static void *sleeper(void *arg) {
  scene *s = arg;
  float data[COUNT] = {0};
  vt_comm_call opts = call_of(VT_WAIT_MODE_BLOCK);
  if (s->what == SENDS) {
    s->status = vt_comm_recv(s->comms[0], s->queue, data, COUNT, VT_DTYPE_F32, 1, &opts);
  } else if (s->what == TAKES) {
    s->status = vt_comm_send(s->comms[0], s->queue, data, COUNT, VT_DTYPE_F32, 1, &opts);
  } else {
    s->status = vt_comm_all_reduce(s->comms[0], s->queue, data, data, COUNT, VT_DTYPE_F32, VT_REDUCE_SUM, &opts);
  }
  return NULL;
}

static void *third_rank(void *arg) {
  scene *s = arg;
  float data[COUNT] = {0};
  (void)vt_comm_all_reduce(s->comms[2], s->queue, data, data, COUNT, VT_DTYPE_F32, VT_REDUCE_SUM, NULL);
  return NULL;
}

static void rouse(scene *s) {
  float data[COUNT] = {0};
  switch (s->what) {
    case SENDS:
      CHECK(vt_comm_send(s->comms[1], s->queue, data, COUNT, VT_DTYPE_F32, 0, NULL) == VT_OK);
      break;
    case TAKES:
      CHECK(vt_comm_recv(s->comms[1], s->queue, data, COUNT, VT_DTYPE_F32, 0, NULL) == VT_OK);
      break;
    case ABORTS:
      CHECK(vt_comm_abort(s->comms[2], NULL) == VT_OK);
      break;
    case GOES:
      vt_comm_release(s->comms[1]);
      break;
    case REFUSED:
      CHECK(vt_comm_all_reduce(s->comms[1], s->queue, NULL, data, COUNT, VT_DTYPE_F32, VT_REDUCE_SUM, NULL) < 0);
      break;
    default:
      CHECK(vt_comm_all_reduce(s->comms[1], s->queue, data, data, COUNT, VT_DTYPE_F32, VT_REDUCE_SUM, NULL) == VT_OK);
  }
}

// Until rank 0 sleeps on the bell, or has been about to.
static uint32_t await_sleeper(vt__bell *bell) {
  uint32_t seen = 0;
  for (int i = 0; i < 20000 && seen % 2 == 0; i++) {
    struct timespec ms = {0, 1000000};
    (void)nanosleep(&ms, NULL);
    // relaxed: the value alone is of interest.
    seen = atomic_load_explicit(bell, memory_order_relaxed);
  }
  CHECK(seen % 2 == 1);
  return seen;
}

static void play(act what, vt_status expected) {
  scene s = {.what = what};
  vt_queue_options options = VT_QUEUE_OPTIONS_INIT;
  CHECK(vt_queue_create((vt_device){VT_DEVICE_CPU, 0}, &options, &s.queue) == VT_OK);
  CHECK(vt_comm_group_create(WORLD, NULL, &s.group) == VT_OK);
  for (int32_t r = 0; r < WORLD; r++) {
    CHECK(vt_comm_group_get_comm(s.group, r, &s.comms[r]) == VT_OK && vt_comm_retain(s.comms[r]) == VT_OK);
  }
  vt_comm_group_release(s.group);
  vt__bell *bell = &((vt__inproc *)s.comms[0]->state)->ranks[1].bell;
  bool all = what == MEETS || what == REFUSED;
  pthread_t threads[2];
  CHECK(pthread_create(&threads[0], NULL, sleeper, &s) == 0);
  uint32_t before = await_sleeper(bell);
  CHECK(!all || pthread_create(&threads[1], NULL, third_rank, &s) == 0);
  rouse(&s);
  // relaxed: as in await_sleeper().
  CHECK(atomic_load_explicit(bell, memory_order_relaxed) > before);
  CHECK(pthread_join(threads[0], NULL) == 0);
  CHECK(!all || pthread_join(threads[1], NULL) == 0);
  CHECK(s.status == expected);
  for (int32_t r = 0; r < WORLD; r++) {
    if (what != GOES || r != 1) {
      vt_comm_release(s.comms[r]);
    }
  }
  CHECK(vt_queue_destroy(s.queue) == VT_OK);
}

// What rank 1 finds in the middle of its part of the data: rank 0 has done its own and sleeps until rank 1 has left.
typedef struct leaving {
  vt__bell *bell;
  uint32_t before;
} leaving;

static void stay_inside(void *user, int32_t rank, uint64_t sequence, size_t chunk) {
  leaving *l = user;
  (void)sequence;
  if (rank == 1 && chunk == 0) {
    l->before = await_sleeper(l->bell);
  }
}

static void the_end_of_a_ranks_part_rings(void) {
  leaving l = {0};
  scene s = {.what = MEETS};
  vt_queue_options options = VT_QUEUE_OPTIONS_INIT;
  vt_comm_group_options hooked = VT_COMM_GROUP_OPTIONS_INIT;
  hooked.chunk_hook = stay_inside;
  hooked.chunk_user = &l;
  CHECK(vt_queue_create((vt_device){VT_DEVICE_CPU, 0}, &options, &s.queue) == VT_OK);
  CHECK(vt_comm_group_create(2, &hooked, &s.group) == VT_OK);
  for (int32_t r = 0; r < 2; r++) {
    CHECK(vt_comm_group_get_comm(s.group, r, &s.comms[r]) == VT_OK);
  }
  l.bell = &((vt__inproc *)s.comms[0]->state)->ranks[1].bell;
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, sleeper, &s) == 0);
  rouse(&s);
  // relaxed: as in await_sleeper().
  CHECK(atomic_load_explicit(l.bell, memory_order_relaxed) > l.before && l.before > 0);
  CHECK(pthread_join(thread, NULL) == 0 && s.status == VT_OK);
  vt_comm_group_release(s.group);
  CHECK(vt_queue_destroy(s.queue) == VT_OK);
}

// A ring after a thread took hold of the bell ends the sleep that has not begun yet.
static void a_ring_changes_the_word_of_a_sleeper_once(void) {
  vt__bell bell = 0;
  vt__backoff backoff = vt__backoff_begin(2, VT__WAIT_SLEEP);
  while (!backoff.tired) {
    (void)vt__backoff_wait(&backoff, &bell);
  }
  vt__bell_ring(&bell);
  CHECK(bell == 0);
  (void)vt__backoff_wait(&backoff, &bell);
  CHECK(bell == 1);
  vt__bell_ring(&bell);
  CHECK(bell == 2);
  vt__bell_ring(&bell);
  CHECK(bell == 2);
  while (!vt__backoff_wait(&backoff, &bell)) {
  }
}

// However long a thread has polled, it is told to look at the time.
static void the_time_is_looked_at_without_end(void) {
  for (vt__wait_policy policy = VT__WAIT_YIELD; policy <= VT__WAIT_SPIN; policy++) {
    vt__backoff backoff = vt__backoff_begin(2, policy);
    backoff.polls = UINT32_MAX - 8;
    int32_t looks = 0;
    for (int32_t i = 0; i < 600; i++) {
      looks += vt__backoff_wait(&backoff, NULL);
    }
    CHECK(looks > 1);
  }
}

void unit_bell(void) {
  the_time_is_looked_at_without_end();
  a_ring_changes_the_word_of_a_sleeper_once();
  the_end_of_a_ranks_part_rings();
  play(MEETS, VT_OK);
  play(SENDS, VT_OK);
  play(TAKES, VT_OK);
  play(ABORTS, VT_ERR_ABORTED);
  play(GOES, VT_ERR_PEER_LOST);
  play(REFUSED, VT_ERR_MISMATCH);
}
