// runtime.c: the first use of the library, and its built-in backends.
#include <pthread.h>

#include "base/thread.h"
#include "core/log.h"
#include "core/op.h"
#include "core/registry.h"
#include "core/trace_file.h"
#include "core/validate.h"

// Built-in backends are named here, not registered by constructors, which a linker drops from an archive. A new backend adds a
// line.
static void (*const builtins[])(void) = {
    vt__op_env_read,
    vt__cpu_register,
    vt__comm_providers_register,
    vt__op_env_note,
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic uint32_t ready;
static _Thread_local bool initialising;

static void initialise(void) {
  initialising = true;
  vt__fork_watch();
  vt__log_init();
  for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++) {
    builtins[i]();
  }
  vt__trace_file_init();
  vt__validate_init();
  initialising = false;
  // release: partner is the acquire load in vt__runtime_init().
  atomic_store_explicit(&ready, 1, memory_order_release);
}

void vt__runtime_init(void) {
  // acquire: partner is the release store in initialise(). A built-in that looks something up while it registers must not wait for
  // itself.
  if (VT_UNLIKELY(atomic_load_explicit(&ready, memory_order_acquire) == 0) && !initialising) {
    pthread_once(&once, initialise);
  }
}
