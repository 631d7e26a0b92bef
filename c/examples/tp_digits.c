// tp_digits.c: reads 1797 handwritten digits with a network that is split over several ranks.
//
// Each rank is a thread with a main queue for the computation and a copy queue for the results, as an inference engine has them.
// The step of each batch size is captured once and replayed. The result of a step is awaited while the next one already runs.
// tp_rank.h is the part to read; tp_model.h is plain arithmetic, digits.h the files.
//
// Usage: tp_digits [DATA_DIR] [--classes FILE]. FILE gets one byte per image: the class that was read.
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <vllm_vt/vt.h>

#include "digits.h"
#include "tp_rank.h"

#ifndef EXAMPLES_DATA_DIR
#define EXAMPLES_DATA_DIR "examples/data"
#endif

// What a world of ranks found, and how fast.
typedef struct outcome {
  size_t world;
  double images_per_s;
  double reduce_us;     // of one all-reduce, mean over steps and ranks; waiting for the slowest rank is part of it
  double reduce_share;  // of the time of the run
} outcome;

// Whether a rank fails like this because another one has failed.
static bool is_consequence(vt_status status) {
  return status == VT_ERR_ABORTED || status == VT_ERR_PEER_LOST || status == VT_ERR_MISMATCH;
}

// Names a rank that failed, if one did: the cause, not a consequence of it.
static bool report_failure(const rank *ranks, size_t world) {
  const rank *failed = NULL;
  for (size_t i = 0; i < world; i++) {
    if (ranks[i].status != VT_OK && (failed == NULL || is_consequence(failed->status))) {
      failed = &ranks[i];
    }
  }
  if (failed != NULL) {
    fprintf(stderr, "rank %zu of %zu: %s\n", failed->index, world, failed->error);
  }
  return failed != NULL;
}

static bool ranks_join(rank *ranks, size_t world) {
  pthread_t threads[MAX_WORLD];
  size_t started = 0;
  while (started < world && pthread_create(&threads[started], NULL, rank_thread, &ranks[started]) == 0) {
    started++;
  }
  if (started < world) {
    fprintf(stderr, "can't start the thread of rank %zu\n", started);
    (void)vt_comm_abort(ranks[0].comm, "a rank has no thread");
  }
  for (size_t i = 0; i < started; i++) {
    pthread_join(threads[i], NULL);
  }
  return started == world && !report_failure(ranks, world);
}

static bool summarise(const rank *ranks, const run *job, outcome *out) {
  uint64_t slowest = 1;
  double reduce_ns = 0.0;
  double reduces = 0.0;
  for (size_t i = 0; i < job->world; i++) {
    if (memcmp(ranks[i].answers, ranks[0].answers, job->count) != 0) {
      fprintf(stderr, "ranks 0 and %zu of %zu read different digits\n", i, job->world);
      return false;
    }
    slowest = ranks[i].elapsed_ns > slowest ? ranks[i].elapsed_ns : slowest;
    reduce_ns += (double)ranks[i].reduce_ns;
    reduces += (double)ranks[i].reduces;
  }
  out->world = job->world;
  out->images_per_s = (double)(PASSES * job->count) / ((double)slowest * 1e-9);
  out->reduce_us = reduce_ns / reduces * 1e-3;
  out->reduce_share = reduce_ns / (double)job->world / (double)slowest;
  return true;
}

// Runs one world. `answers` gets [count] classes for each rank.
static bool run_world(const run *job, uint8_t *answers, outcome *out) {
  vt_comm_group *group = NULL;
  rank ranks[MAX_WORLD];
  vt_status status = vt_comm_group_create((int32_t)job->world, NULL, &group);
  for (size_t i = 0; status == VT_OK && i < job->world; i++) {
    ranks[i] = (rank){.run = job, .index = i, .answers = answers + i * job->count};
    status = vt_comm_group_get_comm(group, (int32_t)i, &ranks[i].comm);
  }
  if (status != VT_OK) {
    fprintf(stderr, "%s\n", vt_last_error()->message);
  }
  const bool ok = status == VT_OK && ranks_join(ranks, job->world) && summarise(ranks, job, out);
  vt_comm_group_release(group);
  return ok;
}

// The program around it.

// Reads the digits with worlds of 1, 2 and 4 ranks. `first` gets the answers of the first world; the others must agree.
static bool run_all(run *job, const digits *set, uint8_t *first, uint8_t *answers) {
  static const size_t worlds[] = {1, 2, MAX_WORLD};
  printf("world   right: all    right: test   images/s   all-reduce   of the time\n");
  for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
    outcome out;
    job->world = worlds[i];
    if (!run_world(job, answers, &out)) {
      return false;
    }
    if (i == 0) {
      memcpy(first, answers, set->count);
    }
    printf("%5zu   %8.2f %%    %9.2f %%   %8.0f   %7.1f us   %9.1f %%\n", out.world, digits_percent_right(set, answers, false),
           digits_percent_right(set, answers, true), out.images_per_s, out.reduce_us, 100.0 * out.reduce_share);
    if (memcmp(first, answers, set->count) != 0) {
      fprintf(stderr, "worlds of 1 and %zu ranks read different digits\n", out.world);
      return false;
    }
  }
  printf("All worlds read the same %zu digits.\n", set->count);
  return true;
}

static bool run_program(const digits *set, const mlp *net, const char *classes_path) {
  vt_device_info info = VT_DEVICE_INFO_INIT;
  void *images = NULL;
  uint8_t *answers = malloc((MAX_WORLD + 1) * set->count);
  if (answers == NULL || vt_device_get_info(cpu, &info) != VT_OK || info.host_addressable == 0 ||
      vt_pinned_alloc(cpu, set->count * DIGITS_PIXELS * sizeof(float), &images) != VT_OK) {
    fprintf(stderr, "can't use cpu:0: %s\n", vt_last_error()->message);
    free(answers);
    return false;
  }
  for (size_t i = 0; i < set->count * DIGITS_PIXELS; i++) {
    ((float *)images)[i] = (float)set->pixels[i] / 16.0f;
  }
  run job = {.net = net, .images = images, .count = set->count};
  const bool ok = run_all(&job, set, answers, answers + set->count) &&
                  (classes_path == NULL || digits_write_file(classes_path, answers, set->count));
  (void)vt_pinned_free(cpu, images);
  free(answers);
  return ok;
}

int main(int argc, char **argv) {
  const char *folder = EXAMPLES_DATA_DIR;
  const char *classes_path = NULL;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--classes") == 0 && i + 1 < argc) {
      classes_path = argv[++i];
    } else if (argv[i][0] != '-') {
      folder = argv[i];
    } else {
      fprintf(stderr, "usage: tp_digits [DATA_DIR] [--classes FILE]\n");
      return 1;
    }
  }
  digits set = {0};
  mlp net = {0};
  const bool ok = digits_load(folder, &set) && mlp_load(folder, &net) && run_program(&set, &net, classes_path);
  free(set.file);
  free(net.file);
  return ok ? 0 : 1;
}
