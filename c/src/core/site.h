// site.h: the public call that is running, and where it came from.
#ifndef VT_CORE_SITE_H
#define VT_CORE_SITE_H

typedef struct vt__call_site {
  const char *function;
  const void *caller;
} vt__call_site;

// Both stand in the public function itself.
#define VT__CALLER __builtin_return_address(0)
#define VT__HERE ((vt__call_site){__func__, VT__CALLER})

#endif
