// plain.c: calls that need no queue: arenas, blocks, providers, types, hooks.
#include <string.h>

#include "fuzz.h"

static const vt_device cpu = {VT_DEVICE_CPU, 0};

static void step_arena(plain *p, fuzz_input *in, int capturing) {
  int i = fuzz_byte(in) & 1;
  uint8_t what = fuzz_below(in, 8);
  size_t bytes = fuzz_byte(in);
  void *ptr = NULL;
  if (p->arenas[i] == NULL) {
    p->capacity[i] = bytes * 8;
    p->used[i] = 0;
    p->marked[i] = 0;
    CALL(capturing ? FUZZ_MOMENT : FUZZ_OK, vt_arena_create(cpu, p->capacity[i], &p->arenas[i]));
    return;
  }
  size_t padded = (bytes + 63) / 64 * 64;
  int fits = padded <= p->capacity[i] - p->used[i];
  if (what < 3) {
    if (CALL(fits ? FUZZ_OK : FUZZ_MEMORY, vt_arena_alloc(p->arenas[i], bytes, &ptr)) == VT_OK) {
      memset(ptr, 1, bytes);
      p->used[i] += padded;
    }
  } else if (what == 3) {
    CALL(FUZZ_MEMORY | FUZZ_INVALID, vt_arena_alloc_elements(p->arenas[i], SIZE_MAX - bytes, (vt_dtype)fuzz_below(in, 40), &ptr));
  } else if (what == 4) {
    CALL(FUZZ_OK, vt_arena_get_mark(p->arenas[i], &p->marks[i]));
    p->marked[i] = 1;
  } else if (what == 5 && p->marked[i]) {
    uint32_t allowed = p->marks[i].used <= p->used[i] ? FUZZ_OK : FUZZ_INVALID;
    if (CALL(allowed, vt_arena_rewind(p->arenas[i], p->marks[i])) == VT_OK) {
      p->used[i] = p->marks[i].used;
    }
  } else if (what == 6) {
    CALL(FUZZ_OK, vt_arena_reset(p->arenas[i]));
    p->used[i] = 0;
    if (p->marked[i]) {
      CALL(FUZZ_INVALID, vt_arena_rewind(p->arenas[i], p->marks[i]));
      p->marked[i] = 0;
    }
  } else if (what == 7) {
    vt_arena *dead = p->arenas[i];
    vt_arena_release(dead);
    p->arenas[i] = NULL;
    CALL(FUZZ_INVALID, vt_arena_alloc(dead, 1, &ptr));
  }
  if (p->arenas[i] != NULL) {
    vt_arena_stats stats = VT_ARENA_STATS_INIT;
    CALL(FUZZ_OK, vt_arena_get_stats(p->arenas[i], &stats));
    MUST(stats.used == p->used[i] && stats.capacity == p->capacity[i]);
  }
}

static vt_status take(int kind, size_t bytes, void **out) {
  return kind == VT_MEMORY_PINNED ? vt_pinned_alloc(cpu, bytes, out) : vt_alloc(cpu, bytes, out);
}

static vt_status give(vt_device device, int kind, void *block) {
  return kind == VT_MEMORY_PINNED ? vt_pinned_free(device, block) : vt_free(device, block);
}

static void step_block(plain *p, fuzz_input *in, int capturing) {
  static const size_t sizes[] = {0, 1, 63, 64, 65, 100, 4096, 70000};
  int i = fuzz_below(in, 6);
  uint8_t what = fuzz_byte(in);
  if (p->blocks[i] == NULL) {
    size_t bytes = sizes[what & 7];
    p->kinds[i] = what >> 3 & 1;
    if (CALL(capturing ? FUZZ_MOMENT : FUZZ_OK, take(p->kinds[i], bytes, &p->blocks[i])) == VT_OK) {
      MUST((uintptr_t)p->blocks[i] % 64 == 0);
      memset(p->blocks[i], 7, bytes);
    }
    void *none = NULL;
    CALL(capturing ? FUZZ_MOMENT : FUZZ_MEMORY, vt_alloc(cpu, SIZE_MAX - (what & 127), &none));
    MUST(none == NULL);
    return;
  }
  uint32_t wrong = capturing ? FUZZ_MOMENT : FUZZ_INVALID;
  CALL(wrong, give(cpu, !p->kinds[i], p->blocks[i]));
  CALL(wrong, give((vt_device){VT_DEVICE_CPU, 1}, p->kinds[i], p->blocks[i]));
  CALL(capturing ? FUZZ_MOMENT : FUZZ_NOT_FOUND, give((vt_device){VT_DEVICE_XPU, 15}, p->kinds[i], p->blocks[i]));
  if (CALL(capturing ? FUZZ_MOMENT : FUZZ_OK, give(cpu, p->kinds[i], p->blocks[i])) == VT_OK) {
    CALL(FUZZ_INVALID, give(cpu, p->kinds[i], p->blocks[i]));
    p->blocks[i] = NULL;
  }
}

static int32_t supports(void *user, vt_op_question *question) {
  question->reason = "not today";
  return question->caps_bytes != 0 && question->descriptor == user;
}

static void a_function(void) {}

static const char *const op_names[] = {"fuzz.a", "fuzz.b", "fuzz.c"};
static const char *const provider_names[] = {"p", "q", "r", VT_OP_REFERENCE_NAME, VT_OP_NATIVE_NAME, "nobody"};

static vt_op_id op_of(fuzz_input *in) {
  vt_op_id id = 0;
  CALL(FUZZ_OK, vt_op_intern(op_names[fuzz_below(in, 3)], &id));
  return id;
}

static void step_look_up(fuzz_input *in, const char *name, vt_device_type type) {
  const vt_op_provider *found = NULL;
  vt_op_policy policy = VT_OP_POLICY_INIT;
  vt_op_id id = op_of(in);
  const uint32_t any = FUZZ_OK | FUZZ_NOT_FOUND | FUZZ_UNSUPPORTED | (type < 0 || type > 4 ? (uint32_t)FUZZ_INVALID : 0u);
  char text[64];
  policy.flags = fuzz_byte(in) & 1;
  policy.count = fuzz_below(in, 3);
  policy.names = provider_names;
  CALL(any, vt_op_get(id, type, NULL, &found));
  CALL(any, vt_op_get_below(id, type, name, name, &found));
  CALL(any, vt_op_get_with(id, type, &policy, NULL, name, &found));
  (void)vt_op_explain(id, type, &policy, NULL, text, fuzz_below(in, 64));
  vt_op_stats stats = {.struct_size = sizeof(stats)};
  CALL(FUZZ_OK | FUZZ_NOT_FOUND | FUZZ_INVALID, vt_op_provider_get_stats(id, type, name, &stats));
}

static void step_op(fuzz_input *in) {
  uint8_t what = fuzz_below(in, 6);
  const char *name = provider_names[fuzz_below(in, 6)];
  vt_device_type type = (vt_device_type)fuzz_below(in, 7) - 1;
  vt_op_provider provider = {.struct_size = sizeof(provider), .name = name, .priority = fuzz_byte(in) & 3, .fn = a_function};
  provider.supports = (fuzz_byte(in) & 1) != 0 ? supports : NULL;
  static const char caps[4] = "cap";
  switch (what) {
    case 0:
      CALL(FUZZ_OK | FUZZ_EXISTS | FUZZ_INVALID, vt_op_provider_register(op_of(in), type, &provider));
      break;
    case 1:
      CALL(FUZZ_OK, vt_op_provider_disable(name));
      CALL(FUZZ_OK, vt_op_provider_enable(name));  // collectives need theirs
      break;
    case 2:
      CALL(FUZZ_OK | FUZZ_NOT_FOUND, vt_op_provider_enable(name));
      break;
    case 3:
      CALL(FUZZ_OK | FUZZ_INVALID, vt_op_caps_publish(type, caps, fuzz_below(in, 4)));
      break;
    default:
      step_look_up(in, name, type);
  }
}

static void step_type(fuzz_input *in) {
  unsigned char from[256] = {0};
  unsigned char to[256];
  vt_dtype a = (vt_dtype)fuzz_below(in, 44) - 2;
  vt_dtype b = (vt_dtype)fuzz_below(in, 44) - 2;
  size_t bytes = 0;
  size_t elements = 0;
  for (size_t i = 0; i < sizeof(from); i++) {
    from[i] = (unsigned char)(i * 37 + fuzz_byte(in));
  }
  CALL(FUZZ_OK | FUZZ_INVALID | FUZZ_UNSUPPORTED, vt_dtype_convert(to, a, from, b, fuzz_below(in, 32)));
  (void)vt_dtype_get_name(a);
  CALL(FUZZ_OK | FUZZ_INVALID | FUZZ_UNSUPPORTED, vt_dtype_get_size(a, &bytes));
  CALL(FUZZ_OK | FUZZ_INVALID, vt_dtype_get_block(b, &elements, &bytes));
  CALL(FUZZ_OK | FUZZ_INVALID, vt_dtype_get_row_bytes(a, (int64_t)fuzz_byte(in) - 3, &bytes));
  CALL(FUZZ_OK | FUZZ_NOT_FOUND | FUZZ_INVALID | FUZZ_UNSUPPORTED, vt_dtype_find_ggml((int32_t)fuzz_byte(in) - 2, &a));
}

static void ignore_log(void *user, vt_log_level level, const char *message) {
  (void)user;
  (void)level;
  MUST(message != NULL && message[0] != 0);
}

static void ignore_trace(void *user, const vt_trace_event *event) {
  (void)user;
  MUST(event->name != NULL && event->queue_name != NULL);
}

static void step_hook(fuzz_input *in, int capturing) {
  uint8_t what = fuzz_below(in, 6);
  vt_device_info info = VT_DEVICE_INFO_INIT;
  switch (what) {
    case 0:
      CALL(FUZZ_OK | FUZZ_INVALID, vt_log_set(ignore_log, NULL, (vt_log_level)fuzz_below(in, 7) - 1));
      break;
    case 1:
      CALL(FUZZ_OK, vt_trace_set((fuzz_byte(in) & 1) != 0 ? ignore_trace : NULL, NULL));
      break;
    case 2:
      CALL(FUZZ_OK | FUZZ_EXISTS, vt_trace_file_begin("/dev/null"));
      break;
    case 3:
      CALL(FUZZ_OK | FUZZ_MOMENT, vt_trace_file_end());
      break;
    default:
      CALL(FUZZ_OK | FUZZ_NOT_FOUND | FUZZ_INVALID,
           vt_device_get_info((vt_device){(vt_device_type)fuzz_below(in, 7) - 1, (int32_t)fuzz_below(in, 18) - 1}, &info));
      CALL(capturing ? FUZZ_MOMENT : FUZZ_OK, vt_device_flush(cpu));
  }
}

void plain_step(plain *p, fuzz_input *in, int capturing) {
  uint8_t what = fuzz_below(in, 8);
  if (what < 2) {
    step_arena(p, in, capturing);
  } else if (what < 4) {
    step_block(p, in, capturing);
  } else if (what < 6) {
    step_op(in);
  } else if (what < 7) {
    step_type(in);
  } else {
    step_hook(in, capturing);
  }
}

void plain_end(plain *p) {
  for (int i = 0; i < 2; i++) {
    vt_arena_release(p->arenas[i]);
  }
  for (int i = 0; i < 6; i++) {
    if (p->blocks[i] != NULL) {
      CALL(FUZZ_OK, give(cpu, p->kinds[i], p->blocks[i]));
    }
  }
}

// None of `wrong` is a queue or a communicator.
void plain_wrong_handles(fuzz_input *in, void *const wrong[], size_t count) {
  void *handle = wrong[fuzz_below(in, (uint8_t)count)];
  vt_queue *queue = handle;
  unsigned char byte;
  switch (fuzz_below(in, 8)) {
    case 0:
      CALL(FUZZ_INVALID, vt_memset(queue, &byte, 0, 1));
      break;
    case 1:
      CALL(FUZZ_INVALID, vt_queue_destroy(queue));
      break;
    case 2:
      CALL(FUZZ_INVALID, vt_graph_begin_capture(queue));
      break;
    case 3:
      CALL(FUZZ_INVALID, vt_graph_end_capture(queue, NULL));
      break;
    case 4:
      CALL(FUZZ_INVALID, vt_comm_query(handle));
      break;
    case 5:
      MUST(vt_queue_get_id(queue) == 0 && vt_comm_get_rank(handle) == -1);
      break;
    case 6:
      vt_queue_release(queue);
      break;
    default:
      CALL(FUZZ_INVALID, vt_queue_retain(queue));
  }
}
