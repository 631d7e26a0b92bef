// backend_1_0.h: a backend that was compiled at ABI 1.0, see backend_1_0.c.
#ifndef VT_BACKEND_1_0_H
#define VT_BACKEND_1_0_H

// The table as the library sees it: a vt_backend_ops of some ABI, which says itself how large it is.
const void *vt_backend_1_0_get_table(void);

#endif
