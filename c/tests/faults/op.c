// op.c: operations, providers, and what a plug-in registers.
#include "../toy_backend.h"
#include "faults.h"

static const vt_device cpu = {VT_DEVICE_CPU, 0};

static void a_function(void) {}

static vt_status a_reference(void *args) {
  (void)args;
  return VT_OK;
}

// Texts that differ from pass to pass: what is registered stays. The library copies them.
static const char *name_of(int pass, const char *what) {
  static char text[4][32];
  static int next;
  char *to = text[next++ % 4];
  (void)snprintf(to, sizeof(text[0]), "%s%d", what, pass);
  return to;
}

static vt_op_id new_op(const char *name) {
  vt_op_id op = 0;
  DO(vt_op_intern, (name, &op));
  SURE(op != 0);
  return op;
}

static void add_provider(vt_op_id op, const char *name) {
  vt_op_provider provider = {.struct_size = sizeof(provider), .name = name, .fn = a_function};
  DO(vt_op_provider_register, (op, VT_DEVICE_CPU, &provider));
}

static void look_up(vt_op_id op, const char *name) {
  const vt_op_provider *found = NULL;
  vt_op_policy policy = VT_OP_POLICY_INIT;
  vt_op_stats stats = {.struct_size = sizeof(stats)};
  char text[256];
  policy.names = &name;
  policy.count = 1;
  DO_ANYWAY(vt_op_get, (op, VT_DEVICE_CPU, NULL, &found));  // a thread without counters counts elsewhere
  DO_ANYWAY(vt_op_get_with, (op, VT_DEVICE_CPU, &policy, NULL, NULL, &found));
  DO_ANYWAY(vt_op_get_below, (op, VT_DEVICE_CPU, "a-first", NULL, &found));
  LOOK(vt_op_is_registered, (op, VT_DEVICE_CPU));
  LOOK(vt_op_get_name, (op));
  LOOK(vt_op_get_last_selected, (op, VT_DEVICE_CPU));
  LOOK(vt_op_get_generation, ());
  LOOK(vt_op_explain, (op, VT_DEVICE_CPU, NULL, NULL, text, sizeof(text)));
  ASK(vt_op_provider_get_stats, (op, VT_DEVICE_CPU, name, &stats));
  SURE(stats.selections == 2 && stats.fallbacks == 1);
}

static void providers(int pass) {
  vt_op_id op = new_op(name_of(pass, "fault.op"));
  const char *name = name_of(pass, "b-second");
  add_provider(op, "a-first");
  add_provider(op, name);
  look_up(op, name);
  DO(vt_op_caps_publish, (VT_DEVICE_CPU, &pass, sizeof(pass)));
  DO(vt_op_provider_disable, (name));
  DO(vt_op_provider_enable, (name));
  TELL(vt_op_set_strict, (1));
  TELL(vt_op_set_strict, (0));
}

// More operations and providers than there is room for at first.
static void many_operations(int pass) {
  vt_op_id op = 0;
  char name[32];
  for (int i = 0; i < 70; i++) {
    (void)snprintf(name, sizeof(name), "fault.many%d.%d", pass, i);
    DO_UNLESS(i > 0 && i < 55, vt_op_intern, (name, &op));
  }
  for (int i = 0; i < 35; i++) {
    (void)snprintf(name, sizeof(name), "p%d", i);
    vt_op_provider provider = {.struct_size = sizeof(provider), .name = name, .fn = a_function};
    DO_UNLESS(i > 0 && i < 24, vt_op_provider_register, (op, VT_DEVICE_CPU, &provider));
  }
}

// Other threads have no counters yet: what they count is not lost.
static void reference(int pass) {
  vt_op_reference how = {.struct_size = sizeof(how), .fn = a_reference};
  vt_op_id op = new_op(name_of(pass, "fault.ref"));
  vt_queue_options options = VT_QUEUE_OPTIONS_INIT;
  vt_queue *queue = NULL;
  vt_op_stats stats = {.struct_size = sizeof(stats)};
  options.flags = VT_QUEUE_ASYNC;
  DO(vt_op_reference_register, (op, &how));
  DO(vt_queue_create, (cpu, &options, &queue));
  DO_EITHER(vt_op_call_reference, (op, queue, NULL));  // the worker is needed, the counters of this thread are not
  ASK(vt_queue_destroy, (queue));
  ASK(vt_op_provider_get_stats, (op, VT_DEVICE_CPU, VT_OP_REFERENCE_NAME, &stats));
  SURE(stats.selections == 1);
}

static vt_status own_alloc(vt_device device, size_t bytes, void **out_ptr) {
  (void)device;
  (void)bytes;
  *out_ptr = NULL;
  return VT_OK;
}

static vt_status own_free(vt_device device, void *ptr) {
  (void)device;
  (void)ptr;
  return VT_OK;
}

static vt_status own_create(vt_device device, const vt_queue_options *options, uint64_t id, void **out_queue) {
  (void)device;
  (void)options;
  (void)id;
  (void)out_queue;
  return VT_OK;
}

static void own_destroy(vt_device device, void *queue, void (*done)(void *user), void *user) {
  (void)device;
  (void)queue;
  done(user);
}

static void resources(int pass) {
  static vt_device_resource_ops ops[8];
  ops[pass] = (vt_device_resource_ops){sizeof(ops[0]), own_alloc, own_free, own_create, own_destroy};
  DO(vt_device_resource_register, ((vt_device){VT_DEVICE_XPU, pass}, &ops[pass]));
  DO(vt_device_resource_register, ((vt_device){VT_DEVICE_XPU, pass}, &ops[pass]));  // the same again
}

static void backends(int pass) {
  DO(vt_backend_register, ((vt_device){VT_DEVICE_METAL, pass}, "toy", vt_toy_get_ops(), NULL));
  DO(vt_backend_register, ((vt_device){VT_DEVICE_METAL, pass}, "toy", vt_toy_get_ops(), NULL));  // the same again
}

const scenario fault_scenarios_op[] = {{"providers", providers, false}, {"many_operations", many_operations, false},
                                       {"reference", reference, false}, {"resources", resources, false},
                                       {"backends", backends, false},   {NULL, NULL, false}};
