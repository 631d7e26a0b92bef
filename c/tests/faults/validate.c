// validate.c: the validation layer: what it can't note it doesn't judge, and the call that it watches succeeds.
#include <stdatomic.h>

#include "faults.h"

static const vt_device cpu = {VT_DEVICE_CPU, 0};

static void ignore(void *user, const vt_validate_report *report) {
  (void)user;
  (void)report;
}

static void use_all(void) {
  void *block = NULL;
  vt_queue *queue = NULL;
  vt_event *event = NULL;
  vt_arena *arena = NULL;
  void *ptr;
  DO_EITHER(vt_alloc, (cpu, 64, &block));
  DO_EITHER(vt_queue_create, (cpu, NULL, &queue));
  DO_EITHER(vt_event_create, (cpu, 0, &event));
  DO_EITHER(vt_arena_create, (cpu, 128, &arena));
  DO_ANYWAY(vt_arena_alloc, (arena, 64, &ptr));
  DO_ANYWAY(vt_memset, (queue, ptr, 1, 64));
  DO_ANYWAY(vt_copy, (queue, block, ptr, 64));
  DO_ANYWAY(vt_event_record, (event, queue));
  DO_ANYWAY(vt_event_synchronize, (event));
  DO_ANYWAY(vt_validate_touch, (queue, block, 64, VT_TOUCH_READ));
  DO_ANYWAY(vt_validate_host_access, (block, 64, VT_TOUCH_WRITE));
  vt_event_release(event);
  vt_arena_release(arena);
  vt_queue_release(queue);
  DO_ANYWAY(vt_free, (cpu, block));
}

static void validation(int pass) {
  void *before = NULL;
  (void)pass;
  DO(vt_alloc, (cpu, 64, &before));
  DO(vt_validate_enable, ());
  TELL(vt_validate_set, (ignore, NULL));
  LOOK(vt_validate_is_enabled, ());
  use_all();
  LOOK(vt_validate_get_count, (VT_VALIDATE_RACE));
  LOOK(vt_validate_kind_get_name, (VT_VALIDATE_RACE));
  ASK(vt_validate_disable, ());
  TELL(vt_validate_set, (NULL, NULL));
  ASK(vt_free, (cpu, before));
}

const scenario fault_scenarios_validate[] = {{"validation", validation, false}, {NULL, NULL, false}};
