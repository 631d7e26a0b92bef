// runtime.c: the first use of the library, and its built-in backends.
#include <pthread.h>

#include "base/thread.h"
#include "core/check.h"
#include "core/isa.h"
#include "core/log.h"
#include "core/op.h"
#include "core/registry.h"
#include "core/trace_file.h"
#include "core/validate.h"

// Built-in backends are named here, not registered by constructors, which a linker drops from an archive. A new backend adds a
// line.
// Each may be called again after it answered false, which says that there was no memory.
static bool (*const builtins[])(void) = {
    vt__fork_watch,  vt__log_init,      vt__isa_init, vt__op_env_read, vt__cpu_register, vt__comm_providers_register,
    vt__op_env_note, vt__validate_init,
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t ready;
static _Thread_local bool initialising;

static bool run_builtins(void) {
  bool enough = true;
  for (size_t i = 0; enough && i < sizeof(builtins) / sizeof(builtins[0]); i++) {
    enough = builtins[i]();
  }
  return enough;
}

// The mutex is held.
static bool initialise(void) {
  initialising = true;
  bool enough = run_builtins();
  if (enough) {
    vt__trace_file_init();
    // release: partner is the acquire load in vt__runtime_init().
    atomic_store_explicit(&ready, 1, memory_order_release);
  }
  initialising = false;
  return enough;
}

vt_status vt__runtime_init(const char *function) {
  // acquire: partner is the release store in initialise(). A built-in that looks something up while it registers must not wait for
  // itself.
  if (VT_LIKELY(atomic_load_explicit(&ready, memory_order_acquire) != 0) || initialising) {
    return VT_OK;
  }
  // relaxed: set by the fork handler of this very thread. In a child the mutex may belong to a thread that isn't there.
  if (atomic_load_explicit(&vt__forked, memory_order_relaxed) != 0) {
    return vt__check_usable_slow(function);
  }
  pthread_mutex_lock(&mutex);
  // relaxed: stored under the mutex.
  bool done = atomic_load_explicit(&ready, memory_order_relaxed) != 0 || initialise();
  pthread_mutex_unlock(&mutex);
  return done ? VT_OK : vt_error_set(VT_ERR_OUT_OF_MEMORY, VT_DOMAIN_VT, 0, function, "no memory to set the library up");
}
