// host_allocator.c: the door to base/alloc.h.
#include "vllm_vt/host_allocator.h"

#include "base/alloc.h"
#include "core/check.h"

vt_status vt_host_allocator_set(const vt_host_allocator *allocator) {
  VT_TRY(vt__check_usable(__func__));
  VT_CHECK_ARG(allocator != NULL, "allocator is NULL");
  VT_CHECK_ARG(allocator->struct_size >= sizeof(*allocator), "struct_size %zu of the host allocator is too small",
               allocator->struct_size);
  VT_CHECK_ARG(allocator->alloc != NULL && allocator->free != NULL, "a host allocator needs both of alloc and free");
  vt__allocator wanted = {.alloc = allocator->alloc, .free = allocator->free, .user = allocator->user};
  if (!vt__allocator_set(&wanted)) {
    return vt__fail(VT_ERR_FAILED_PRECONDITION,
                    "the library has allocated memory already, or has a host allocator: set it once, before anything else");
  }
  return VT_OK;
}
