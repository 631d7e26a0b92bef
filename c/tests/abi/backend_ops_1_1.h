// backend_ops_1_1.h: what backend ABI 1.1 added behind the table of backend_ops_1_0.h: member, offset and size in bytes. A table
// may lack any of these.
#ifndef ABI_BACKEND_OPS_1_1_H
#define ABI_BACKEND_OPS_1_1_H

#define ABI_1_1_BACKEND_OPS(X) X(event_wait_by, 264, 8) X(copy_batch, 272, 8) X(copy_2d, 280, 8)

enum { ABI_1_1_MINOR = 1 };

#endif
