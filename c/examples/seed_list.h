// seed_list.h: the list that seed_contract.c prints, and what stops it.
#ifndef EXAMPLES_SEED_LIST_H
#define EXAMPLES_SEED_LIST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <vllm_vt/vt.h>

static const vt_device cpu = {VT_DEVICE_CPU, 0};
static int failures;

static inline void section(const char *title) {
  printf("\n%s\n", title);
}

// Prints one line of the list. `ok` says whether the promise was kept.
static inline void row(const char *seed, const char *ours, bool ok) {
  printf("  %-46s -> %-58s %s\n", seed, ours, ok ? "ok" : "FAILED");
  if (!ok) {
    printf("  last error: %s\n", vt_last_error()->message);
    failures++;
  }
}

// Stops the program where going on has no sense.
static inline void must(vt_status status, const char *what) {
  if (status != VT_OK) {
    fprintf(stderr, "%s: %s\n", what, vt_last_error()->message);
    exit(1);
  }
}

static inline vt_queue *async_queue(void) {
  vt_queue_options options = VT_QUEUE_OPTIONS_INIT;
  vt_queue *queue = NULL;
  options.flags = VT_QUEUE_ASYNC;
  must(vt_queue_create(cpu, &options, &queue), "vt_queue_create");
  return queue;
}

#endif
