// quiet.c: what asks for nothing and belongs to no other scenario.
#include "faults.h"

static const vt_device cpu = {VT_DEVICE_CPU, 0};

static void types(int pass) {
  size_t a;
  size_t b;
  vt_dtype dtype;
  float f = 1;
  uint16_t h = 0;
  (void)pass;
  LOOK(vt_dtype_get_name, (VT_DTYPE_F32));
  ASK(vt_dtype_get_size, (VT_DTYPE_F32, &a));
  ASK(vt_dtype_get_block, (VT_DTYPE_F32, &a, &b));
  ASK(vt_dtype_get_row_bytes, (VT_DTYPE_F32, 8, &a));
  ASK(vt_dtype_find_ggml, (8, &dtype));
  ASK(vt_dtype_convert, (&h, VT_DTYPE_F16, &f, VT_DTYPE_F32, 1));
  LOOK(vt_f16_from_f32, (1.0f));
  LOOK(vt_f16_to_f32, (h));
  LOOK(vt_bf16_from_f32, (1.0f));
  LOOK(vt_bf16_to_f32, (h));
}

static void names(int pass) {
  (void)pass;
  LOOK(vt_version, ());
  LOOK(vt_host_concurrency, ());
  LOOK(vt_status_get_name, (VT_OK));
  LOOK(vt_device_type_get_name, (VT_DEVICE_CPU));
  LOOK(vt_handle_get_live_count, (VT_HANDLE_QUEUE));
  LOOK(vt_last_error, ());
  LOOK(vt_error_set, (VT_ERR_INTERNAL, VT_DOMAIN_VT, 0, "f", "text %d", 1));
}

static void devices(int pass) {
  const vt_backend *backend = NULL;
  vt_device_info info = VT_DEVICE_INFO_INIT;
  vt_memory_stats stats = VT_MEMORY_STATS_INIT;
  int32_t count;
  (void)pass;
  DO(vt_backend_get, (cpu, &backend));
  ASK(vt_backend_get, (cpu, &backend));
  ASK(vt_backend_get_default, (VT_DEVICE_CPU, &backend));
  LOOK(vt_backend_find, (cpu));
  LOOK(vt_backend_find_default, (VT_DEVICE_CPU));
  LOOK(vt_backend_get_name, (backend));
  ASK(vt_device_get_info, (cpu, &info));
  ASK(vt_device_get_count, (VT_DEVICE_CPU, &count));
  ASK(vt_memory_get_stats, (cpu, VT_MEMORY_DEVICE, &stats));
}

const scenario fault_scenarios_quiet[] = {
    {"types", types, false}, {"names", names, false}, {"devices", devices, false}, {NULL, NULL, false}};
