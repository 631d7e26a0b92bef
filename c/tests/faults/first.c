// first.c: the first use of the library, by every function that can be it, with all that the environment may ask for.
//
// A first use that fails is no last one: the next call finds all devices, providers and hooks.
#include <stdlib.h>

#include "faults.h"

static const vt_device cpu = {VT_DEVICE_CPU, 0};

static void set_environment(void) {
  (void)setenv("VT_CPU_DEVICES", "4", 1);
  (void)setenv("VT_LOG", "error", 1);
  (void)setenv("VT_OP_PROVIDER_DISABLE", "first, second", 1);
  (void)setenv("VT_TRACE", "/dev/null", 1);
}

// The environment had its effect, at the latest when the next call has set up what an earlier one could do without.
static void check(void) {
  int32_t count = 0;
  vt_op_id op = 0;
  DO(vt_device_get_count, (VT_DEVICE_CPU, &count));
  SURE(count == 4);
  DO(vt_op_intern, ("vt.all_reduce", &op));
  SURE(vt_op_is_registered(op, VT_DEVICE_CPU) == 1);
  SURE(vt_op_provider_enable("nobody") == VT_ERR_NOT_FOUND);
  SURE(vt_trace_file_begin("/dev/null") == VT_ERR_ALREADY_EXISTS);
  DO(vt_op_provider_enable, ("second"));
  DO(vt_op_provider_disable, ("second"));
}

#define FIRST(name, call)      \
  static void name(int pass) { \
    if (pass == 0) {           \
      set_environment();       \
    }                          \
    call;                      \
    check();                   \
  }

// Those that answer no status say it in the record.
static void find_backend(bool by_type) {
  const char *name = by_type ? "vt_backend_find_default" : "vt_backend_find";
  fault_begin(name);
  const vt_backend *found = by_type ? vt_backend_find_default(VT_DEVICE_CPU) : vt_backend_find(cpu);
  if (!fault_end(found != NULL ? VT_OK : vt_last_error()->status, FAULT_UNDONE)) {
    fault_begin(name);
    found = by_type ? vt_backend_find_default(VT_DEVICE_CPU) : vt_backend_find(cpu);
    (void)fault_end(found != NULL ? VT_OK : vt_last_error()->status, FAULT_NONE);
  }
}

static void make_queue(void) {
  vt_queue *queue = NULL;
  DO(vt_queue_create, (cpu, NULL, &queue));
  vt_queue_release(queue);
}

static void make_event(void) {
  vt_event *event = NULL;
  DO(vt_event_create, (cpu, 0, &event));
  vt_event_release(event);
}

static void make_arena(void) {
  vt_arena *arena = NULL;
  DO(vt_arena_create, (cpu, 64, &arena));
  vt_arena_release(arena);
}

static void make_block(void) {
  void *block = NULL;
  DO(vt_alloc, (cpu, 64, &block));
  DO(vt_free, (cpu, block));
}

static void make_group(void) {
  vt_comm_group *group = NULL;
  DO(vt_comm_group_create, (2, NULL, &group));
  vt_comm_group_release(group);
}

static void a_function(void) {}

static void register_provider(int pass) {
  vt_op_id op = 0;
  char name[16];
  (void)snprintf(name, sizeof(name), "first%d", pass);
  vt_op_provider provider = {.struct_size = sizeof(provider), .name = name, .fn = a_function};
  SURE(vt_op_intern("fault.first", &op) == VT_OK);  // this is no first use yet
  DO(vt_op_provider_register, (op, VT_DEVICE_CPU, &provider));
}

static void look_up(void) {
  const vt_op_provider *found = NULL;
  vt_op_id op = 0;
  SURE(vt_op_intern("vt.all_reduce", &op) == VT_OK);  // this is no first use yet
  DO_EITHER(vt_op_get, (op, VT_DEVICE_CPU, NULL, &found));
}

FIRST(backend_get, DO(vt_backend_get, (cpu, &(const vt_backend *){NULL})))
FIRST(backend_get_default, DO(vt_backend_get_default, (VT_DEVICE_CPU, &(const vt_backend *){NULL})))
FIRST(backend_find, find_backend(false))
FIRST(backend_find_default, find_backend(true))
FIRST(device_get_count, DO(vt_device_get_count, (VT_DEVICE_CPU, &(int32_t){0})))
FIRST(device_get_info, DO(vt_device_get_info, (cpu, &(vt_device_info)VT_DEVICE_INFO_INIT)))
FIRST(memory_get_stats, DO(vt_memory_get_stats, (cpu, VT_MEMORY_DEVICE, &(vt_memory_stats)VT_MEMORY_STATS_INIT)))
FIRST(queue_create, make_queue())
FIRST(event_create, make_event())
FIRST(arena_create, make_arena())
FIRST(alloc, make_block())
FIRST(group_create, make_group())
FIRST(provider_register, register_provider(pass))
FIRST(provider_disable, DO(vt_op_provider_disable, ("third")))
FIRST(caps_publish, DO(vt_op_caps_publish, (VT_DEVICE_CPU, &pass, sizeof(pass))))
FIRST(op_get, look_up())

const scenario fault_scenarios_first[] = {
    {"first_backend_get", backend_get, true},
    {"first_backend_get_default", backend_get_default, true},
    {"first_backend_find", backend_find, true},
    {"first_backend_find_default", backend_find_default, true},
    {"first_device_get_count", device_get_count, true},
    {"first_device_get_info", device_get_info, true},
    {"first_memory_get_stats", memory_get_stats, true},
    {"first_queue_create", queue_create, true},
    {"first_event_create", event_create, true},
    {"first_arena_create", arena_create, true},
    {"first_alloc", alloc, true},
    {"first_group_create", group_create, true},
    {"first_provider_register", provider_register, true},
    {"first_provider_disable", provider_disable, true},
    {"first_caps_publish", caps_publish, true},
    {"first_op_get", op_get, true},
    {NULL, NULL, false},
};
