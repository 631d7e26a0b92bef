// validate_rig.h: two queues and two blocks under the validation layer.
#ifndef VT_TESTS_VALIDATE_RIG_H
#define VT_TESTS_VALIDATE_RIG_H

#include "vt_test.h"

enum { BYTES = 256 };

typedef struct rig {
  vt_queue *a;
  vt_queue *b;
  unsigned char *x;
  unsigned char *y;
} rig;

static inline rig make_rig(vt_case *c) {
  vt_test_validate(c);
  return (rig){vt_test_queue(c), vt_test_queue(c), vt_test_alloc(c, BYTES), vt_test_alloc(c, BYTES)};
}

static inline void order(vt_case *c, vt_queue *first, vt_queue *then) {
  vt_event *event = vt_test_event(c, 0);
  EXPECT_OK(c, vt_event_record(event, first));
  EXPECT_OK(c, vt_queue_after_event(then, event));
}

#endif
