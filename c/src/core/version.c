// version.c: which library this is.
#include "vllm_vt/export.h"

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

// For those who have the file and can't run it: build.rs looks for this text.
__attribute__((used)) static const char version_text[] =
    "libvllm_vt version " VERSION_TEXT(VT_VERSION_MAJOR, VT_VERSION_MINOR, VT_VERSION_PATCH);

int32_t vt_version(void) {
  return VT_VERSION;
}
