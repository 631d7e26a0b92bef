// site.h: the public call that is running, and where it came from.
#ifndef VT_CORE_SITE_H
#define VT_CORE_SITE_H

typedef struct vt__call_site {
  const char *function;
  const void *caller;
} vt__call_site;

// Stands in the public function itself.
#define VT__HERE ((vt__call_site){__func__, __builtin_return_address(0)})

#endif
