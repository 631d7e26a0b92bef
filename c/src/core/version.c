// version.c: which library this is.
#include "vllm_vt/export.h"

int32_t vt_version(void) {
  return VT_VERSION;
}
