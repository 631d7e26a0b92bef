// backend_abi.c: tables of the first release, of earlier and of later versions, and tables that lack something.
#include "vt_test.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

// The kept interface, with today's structs in the types of its functions: so those types can be compared as well.
#define ABI_1_0_STRUCT(name) struct vt_##name
#include "abi/backend_ops_1_0.h"
#include "abi/backend_ops_1_1.h"
#include "backend_1_0.h"
#include "toy_backend.h"

// What the listing, the kept copy and today's header say about each member.

#define SIZE_OF(type, member) sizeof(((type *)0)->member)
#define SAME_PLACE(of, member, offset, size)                                                                                       \
  _Static_assert(offsetof(struct abi_1_0_##of, member) == (offset) && SIZE_OF(struct abi_1_0_##of, member) == (size),              \
                 "the kept copy of " #of "." #member " was changed");                                                              \
  _Static_assert(offsetof(vt_##of, member) == (offset) && SIZE_OF(vt_##of, member) == (size),                                      \
                 #of "." #member " has moved: that needs another ABI major");                                                      \
  _Static_assert(__builtin_types_compatible_p(__typeof__(((vt_##of *)0)->member), __typeof__(((struct abi_1_0_##of *)0)->member)), \
                 #of "." #member " has another type: that needs another ABI major");

#define SAME_METHOD(member, offset, size, need) SAME_PLACE(backend_ops, member, offset, size)
#define SAME_DEVICE(member, offset, size) SAME_PLACE(device, member, offset, size)
#define SAME_ERROR(member, offset, size) SAME_PLACE(error, member, offset, size)
#define SAME_INFO(member, offset, size) SAME_PLACE(device_info, member, offset, size)
#define SAME_OPTION(member, offset, size) SAME_PLACE(queue_options, member, offset, size)
#define SAME_CALL(member, offset, size) SAME_PLACE(host_call, member, offset, size)
#define SAME_RESOURCE(member, offset, size) SAME_PLACE(device_resource_ops, member, offset, size)

ABI_1_0_BACKEND_OPS(SAME_METHOD)
ABI_1_0_DEVICE(SAME_DEVICE)
ABI_1_0_ERROR(SAME_ERROR)
ABI_1_0_DEVICE_INFO(SAME_INFO)
ABI_1_0_QUEUE_OPTIONS(SAME_OPTION)
ABI_1_0_HOST_CALL(SAME_CALL)
ABI_1_0_DEVICE_RESOURCE_OPS(SAME_RESOURCE)

#define ADDED_METHOD(member, offset, size)                                                                  \
  _Static_assert(offsetof(vt_backend_ops, member) == (offset) && SIZE_OF(vt_backend_ops, member) == (size), \
                 "backend_ops." #member " has moved: that needs another ABI major");

ABI_1_1_BACKEND_OPS(ADDED_METHOD)

// Structs that carry no size of their own never change; the others only grow. A table reads on one screen.
#define KEPT_SIZE(of) \
  _Static_assert(sizeof(struct abi_1_0_##of) == (size_t)ABI_1_0_SIZE_##of, "the kept copy of " #of " was changed")
#define FIXED(of) _Static_assert(sizeof(vt_##of) == (size_t)ABI_1_0_SIZE_##of, #of " has another size")
#define GROWS(of) _Static_assert(sizeof(vt_##of) >= (size_t)ABI_1_0_SIZE_##of, #of " became smaller")

KEPT_SIZE(backend_ops);
KEPT_SIZE(device);
KEPT_SIZE(error);
KEPT_SIZE(device_info);
KEPT_SIZE(queue_options);
KEPT_SIZE(host_call);
KEPT_SIZE(device_resource_ops);
FIXED(device);
FIXED(error);
FIXED(host_call);
GROWS(backend_ops);
GROWS(device_info);
GROWS(queue_options);
GROWS(device_resource_ops);
_Static_assert(sizeof(vt_backend_ops) <= 16 + 40 * sizeof(vt_fn), "the backend table has more than 40 methods");

#define SAME_FUNCTION(name) _Static_assert(__builtin_types_compatible_p(vt_##name, abi_1_0_##name), "vt_" #name " has another type")

SAME_FUNCTION(fn);
SAME_FUNCTION(host_fn);
SAME_FUNCTION(log_fn);
SAME_FUNCTION(comm_all_reduce_fn);
SAME_FUNCTION(comm_all_gather_fn);
SAME_FUNCTION(comm_send_fn);
SAME_FUNCTION(comm_recv_fn);
SAME_FUNCTION(comm_barrier_fn);
SAME_FUNCTION(comm_chunk_fn);

#define SAME_NUMBER(ours, kept) _Static_assert((int)(ours) == (int)(kept), #ours " has another number")

SAME_NUMBER(VT_BACKEND_ABI_MAJOR, ABI_1_0_MAJOR);
SAME_NUMBER(VT_BACKEND_ABI_MINOR, ABI_1_1_MINOR);
SAME_NUMBER(VT_OK, ABI_1_0_OK);
SAME_NUMBER(VT_NOT_READY, ABI_1_0_NOT_READY);
SAME_NUMBER(VT_ERR_INVALID_ARGUMENT, ABI_1_0_INVALID_ARGUMENT);
SAME_NUMBER(VT_ERR_OUT_OF_MEMORY, ABI_1_0_OUT_OF_MEMORY);
SAME_NUMBER(VT_ERR_UNSUPPORTED, ABI_1_0_UNSUPPORTED);
SAME_NUMBER(VT_ERR_NOT_FOUND, ABI_1_0_NOT_FOUND);
SAME_NUMBER(VT_ERR_ALREADY_EXISTS, ABI_1_0_ALREADY_EXISTS);
SAME_NUMBER(VT_ERR_FAILED_PRECONDITION, ABI_1_0_FAILED_PRECONDITION);
SAME_NUMBER(VT_ERR_TIMEOUT, ABI_1_0_TIMEOUT);
SAME_NUMBER(VT_ERR_ABORTED, ABI_1_0_ABORTED);
SAME_NUMBER(VT_ERR_PEER_LOST, ABI_1_0_PEER_LOST);
SAME_NUMBER(VT_ERR_MISMATCH, ABI_1_0_MISMATCH);
SAME_NUMBER(VT_ERR_DEVICE_LOST, ABI_1_0_DEVICE_LOST);
SAME_NUMBER(VT_ERR_INTERNAL, ABI_1_0_INTERNAL);
SAME_NUMBER(VT_CAP_ASYNC_QUEUES, ABI_1_0_CAP_ASYNC_QUEUES);
SAME_NUMBER(VT_CAP_EVENTS, ABI_1_0_CAP_EVENTS);
SAME_NUMBER(VT_CAP_GRAPH_CAPTURE, ABI_1_0_CAP_GRAPH_CAPTURE);
SAME_NUMBER(VT_CAP_AUX_QUEUE, ABI_1_0_CAP_AUX_QUEUE);
SAME_NUMBER(VT_CAP_STREAM_ALLOC, ABI_1_0_CAP_STREAM_ALLOC);
SAME_NUMBER(VT_QUEUE_ASYNC, ABI_1_0_QUEUE_ASYNC);
SAME_NUMBER(VT_QUEUE_FAIL_FULL, ABI_1_0_QUEUE_FAIL_FULL);
SAME_NUMBER(VT_EVENT_BLOCKING, ABI_1_0_EVENT_BLOCKING);
SAME_NUMBER(VT_EVENT_TIMING, ABI_1_0_EVENT_TIMING);

// Nothing is ever unregistered, so each case of this file uses indices of its own.
enum { SLOT_FIRST_RELEASE = 6, SLOT_SHORT = 7, SLOT_LATER = 8, SLOT_FREE = 14 };

static vt_device slot(int32_t index) {
  return (vt_device){VT_DEVICE_VULKAN, index};
}

// Where a table that is right answers ALREADY_EXISTS, since the place is taken: so many tables can be tried.
static vt_device taken(void) {
  return (vt_device){VT_DEVICE_METAL, 0};
}

// Work of each kind on a synchronous device of this file.
static void expect_device_works(vt_case *c, vt_device device) {
  vt_queue *queue = vt_test_queue_on(c, device);
  unsigned char *block = NULL;
  uint64_t ticket = 0;
  _Atomic int32_t calls = 0;
  REQUIRE_OK(c, vt_alloc(device, 256, (void **)&block));
  EXPECT_EQ(c, 1, vt_queue_is_synchronous(queue));
  EXPECT_OK(c, vt_memset(queue, block, 7, 128));
  EXPECT_OK(c, vt_copy(queue, block + 128, block, 128));
  EXPECT_FILLED(c, 7, block, 256);
  EXPECT_OK(c, vt_queue_host_func(queue, vt_test_host_count, &calls, vt_test_drop_count));
  // relaxed: the same thread.
  EXPECT_EQ(c, 2, atomic_load_explicit(&calls, memory_order_relaxed));
  EXPECT_OK(c, vt_queue_get_ticket(queue, &ticket));
  EXPECT_EQ(c, 3, ticket);
  // What came later is made of what the table has.
  const vt_copy_op ops[] = {{block, block + 128, 16}, {block + 16, block + 144, 16}};
  EXPECT_OK(c, vt_copy_batch(queue, ops, 2));
  EXPECT_OK(c, vt_copy_2d(queue, block, 32, block + 128, 16, 8, 3));
  EXPECT_OK(c, vt_queue_get_ticket(queue, &ticket));
  EXPECT_EQ(c, 8, ticket);
  EXPECT_OK(c, vt_queue_wait_ticket(queue, ticket, VT_WAIT_FOREVER));
  EXPECT_OK(c, vt_queue_synchronize(queue));
  EXPECT_OK(c, vt_free(device, block));
}

static void a_table_of_the_first_release_loads_and_works(vt_case *c) {
  vt_device device = slot(SLOT_FIRST_RELEASE);
  REQUIRE_OK(c, vt_backend_register(device, "first release", vt_backend_1_0_get_table(), NULL));
  EXPECT_OK(c, vt_backend_register(device, "first release", vt_backend_1_0_get_table(), NULL));
  expect_device_works(c, device);
  vt_device_info info = VT_DEVICE_INFO_INIT;
  EXPECT_OK(c, vt_device_get_info(device, &info));
  EXPECT_TEXT(c, "backend of ABI 1.0", info.name);
  EXPECT_EQ(c, 4096, info.memory_total);
  // A method that only answers a number gets words from the runtime.
  void *block = NULL;
  EXPECT_FAILS(c, VT_ERR_OUT_OF_MEMORY, "'first release' of vulkan:6 failed in alloc", vt_alloc(device, SIZE_MAX / 2 + 1, &block));
}

// What the table leaves out is either really so, or refused.
static void what_the_first_release_left_out_is_answered_truly(vt_case *c) {
  vt_device device = slot(SLOT_FIRST_RELEASE);
  REQUIRE_OK(c, vt_backend_register(device, "first release", vt_backend_1_0_get_table(), NULL));
  vt_queue *queue = vt_test_queue_on(c, device);
  vt_event *event = NULL;
  void *block = NULL;
  EXPECT_TRUE(c, vt_queue_get_native(queue) != NULL);
  EXPECT_OK(c, vt_device_flush(device));
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "first release", vt_pinned_alloc(device, 8, &block));
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "first release", vt_event_create(device, VT_EVENT_TIMING, &event));
  EXPECT_FAILS(c, VT_ERR_UNSUPPORTED, "first release", vt_graph_begin_capture(queue));
  REQUIRE_OK(c, vt_event_create(device, 0, &event));
  EXPECT_TRUE(c, vt_event_get_native(event) == NULL);
  EXPECT_OK(c, vt_event_record(event, queue));
  EXPECT_OK(c, vt_event_query(event));
  vt_event_release(event);
}

// A page of memory with nothing readable behind it.
static char *page_before_a_hole(vt_case *c, size_t *out_bytes) {
  size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
  char *pages = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!EXPECT_TRUE(c, pages != MAP_FAILED) || !EXPECT_EQ(c, 0, mprotect(pages + bytes, bytes, PROT_NONE))) {
    return NULL;
  }
  *out_bytes = bytes;
  return pages;
}

static void nothing_behind_struct_size_is_read(vt_case *c) {
  size_t bytes = 0;
  char *page = page_before_a_hole(c, &bytes);
  REQUIRE_TRUE(c, page != NULL);
  vt_backend_ops whole = *vt_toy_get_ops();
  const size_t sizes[] = {offsetof(vt_backend_ops, alloc), offsetof(vt_backend_ops, get_info), offsetof(vt_backend_ops, flush)};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    char *table = page + bytes - sizes[i];
    whole.struct_size = sizes[i];
    memcpy(table, &whole, sizes[i]);
    if (sizes[i] <= offsetof(vt_backend_ops, get_info)) {
      EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "get_info",
                   vt_backend_register(taken(), "cut", (const vt_backend_ops *)(void *)table, vt_toy_get_self()));
    } else {
      EXPECT_FAILS(c, VT_ERR_ALREADY_EXISTS, "metal:0",
                   vt_backend_register(taken(), "cut", (const vt_backend_ops *)(void *)table, vt_toy_get_self()));
    }
  }
  munmap(page, 2 * bytes);
}

// The table is copied: what a plug-in does with its own afterwards is nothing to the runtime.
static void a_registered_table_may_go_away(vt_case *c) {
  static struct abi_1_0_backend_ops table;
  memcpy(&table, vt_backend_1_0_get_table(), sizeof(table));
  REQUIRE_OK(c, vt_backend_register(slot(SLOT_SHORT), "gone", (const vt_backend_ops *)(void *)&table, NULL));
  memset(&table, 0, sizeof(table));
  expect_device_works(c, slot(SLOT_SHORT));
}

static _Atomic int32_t tail_calls;

static void never_called(void) {
  // relaxed: a counter.
  atomic_fetch_add_explicit(&tail_calls, 1, memory_order_relaxed);
}

static void a_table_of_a_much_later_minor_version_loads_without_its_tail(vt_case *c) {
  static struct {
    struct abi_1_0_backend_ops head;
    vt_fn today[64];  // where today's table, should it be longer, and a later one go on
  } later;
  memcpy(&later.head, vt_backend_1_0_get_table(), sizeof(later.head));
  later.head.abi_minor = 99;
  later.head.struct_size = sizeof(later);
  // Only what this library doesn't know is filled: what it knows must be NULL or right.
  size_t known = (sizeof(vt_backend_ops) - sizeof(later.head)) / sizeof(vt_fn);
  for (size_t i = known; i < 64; i++) {
    later.today[i] = never_called;
  }
  REQUIRE_OK(c, vt_backend_register(slot(SLOT_LATER), "later", (const vt_backend_ops *)(void *)&later, NULL));
  expect_device_works(c, slot(SLOT_LATER));
  // relaxed: the same thread.
  EXPECT_EQ(c, 0, atomic_load_explicit(&tail_calls, memory_order_relaxed));
}

static _Atomic int32_t info_calls;

static vt_status counting_info(void *self, vt_device_info *out_info) {
  // relaxed: a counter.
  atomic_fetch_add_explicit(&info_calls, 1, memory_order_relaxed);
  return vt_toy_get_ops()->get_info(self, out_info);
}

static void a_table_of_another_major_version_is_refused_before_it_is_called(vt_case *c) {
  const uint32_t majors[] = {0, 2, 99, UINT32_MAX};
  vt_backend_ops ops = *vt_toy_get_ops();
  ops.get_info = counting_info;
  for (size_t i = 0; i < sizeof(majors) / sizeof(majors[0]); i++) {
    ops.abi_major = majors[i];
    EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, "this library speaks 1.",
                 vt_backend_register(slot(SLOT_FREE), "other", &ops, vt_toy_get_self()));
  }
  // relaxed: the same thread.
  EXPECT_EQ(c, 0, atomic_load_explicit(&info_calls, memory_order_relaxed));
  EXPECT_TRUE(c, vt_backend_find(slot(SLOT_FREE)) == NULL);
}

// Tables that lack one method or one group, for each member of the listing.

typedef enum { HEAD, REQUIRED, PINNED, EVENTS, GRAPHS, OPTIONAL } need;

static const struct {
  const char *name;
  size_t offset;
  need need;
} listing[] = {
#define LISTED(member, offset, size, need) {#member, offset, need},
    ABI_1_0_BACKEND_OPS(LISTED)};

#define LISTED_COUNT (sizeof(listing) / sizeof(listing[0]))

static uint32_t device_caps;

static vt_status info_with_caps(void *self, vt_device_info *out_info) {
  (void)self;
  out_info->caps = device_caps;
  return VT_OK;
}

// A table with a pointer in every place, which is checked and never called.
static vt_backend_ops full_table(uint32_t caps) {
  vt_fn filler = never_called;
  vt_backend_ops ops = *vt_toy_get_ops();
  for (size_t i = 0; i < LISTED_COUNT; i++) {
    if (listing[i].need != HEAD) {
      memcpy((char *)&ops + listing[i].offset, &filler, sizeof(filler));
    }
  }
  ops.get_info = info_with_caps;
  device_caps = caps;
  return ops;
}

static void leave_out(vt_backend_ops *ops, size_t i) {
  vt_fn none = NULL;
  memcpy((char *)ops + listing[i].offset, &none, sizeof(none));
}

static void each_listed_method_is_needed_as_the_listing_says(vt_case *c) {
  const uint32_t caps[] = {0, VT_CAP_ASYNC_QUEUES | VT_CAP_EVENTS, VT_CAP_GRAPH_CAPTURE | VT_CAP_EVENTS};
  for (size_t k = 0; k < sizeof(caps) / sizeof(caps[0]); k++) {
    for (size_t i = 0; i < LISTED_COUNT; i++) {
      vt_backend_ops ops = full_table(caps[k]);
      if (listing[i].need == HEAD) {
        continue;
      }
      leave_out(&ops, i);
      if (listing[i].need == OPTIONAL) {
        EXPECT_FAILS(c, VT_ERR_ALREADY_EXISTS, "metal:0", vt_backend_register(taken(), "one less", &ops, NULL));
      } else {
        EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, listing[i].name, vt_backend_register(taken(), "one less", &ops, NULL));
      }
    }
  }
}

static vt_backend_ops without_group(uint32_t caps, need group) {
  vt_backend_ops ops = full_table(caps);
  for (size_t i = 0; i < LISTED_COUNT; i++) {
    if (listing[i].need == group || (group == EVENTS && listing[i].need == GRAPHS)) {
      leave_out(&ops, i);
    }
  }
  return ops;
}

static void a_device_that_claims_more_than_its_table_holds_is_refused(vt_case *c) {
  static const struct {
    uint32_t caps;
    need group;
    const char *missed;  // NULL: the group may be left out
  } claims[] = {
      {0, PINNED, NULL},
      {0, EVENTS, NULL},
      {0, GRAPHS, NULL},
      {VT_CAP_ASYNC_QUEUES, PINNED, "pinned_alloc"},
      {VT_CAP_ASYNC_QUEUES, EVENTS, "event_create"},
      {VT_CAP_ASYNC_QUEUES | VT_CAP_EVENTS, GRAPHS, NULL},
      {VT_CAP_GRAPH_CAPTURE, GRAPHS, "capture_begin"},
      {VT_CAP_GRAPH_CAPTURE, EVENTS, "event_create"},
  };
  for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
    vt_backend_ops ops = without_group(claims[i].caps, claims[i].group);
    if (claims[i].missed == NULL) {
      EXPECT_FAILS(c, VT_ERR_ALREADY_EXISTS, "metal:0", vt_backend_register(taken(), "claims", &ops, NULL));
    } else {
      EXPECT_FAILS(c, VT_ERR_INVALID_ARGUMENT, claims[i].missed, vt_backend_register(taken(), "claims", &ops, NULL));
    }
  }
}

const vt_test_case vt_cases_backend_abi[] = {
    {"a_table_of_the_first_release_loads_and_works", ONCE, a_table_of_the_first_release_loads_and_works},
    {"what_the_first_release_left_out_is_answered_truly", ONCE, what_the_first_release_left_out_is_answered_truly},
    {"nothing_behind_struct_size_is_read", ONCE, nothing_behind_struct_size_is_read},
    {"a_registered_table_may_go_away", ONCE, a_registered_table_may_go_away},
    {"a_table_of_a_much_later_minor_version_loads_without_its_tail", ONCE,
     a_table_of_a_much_later_minor_version_loads_without_its_tail},
    {"a_table_of_another_major_version_is_refused_before_it_is_called", ONCE,
     a_table_of_another_major_version_is_refused_before_it_is_called},
    {"each_listed_method_is_needed_as_the_listing_says", ONCE, each_listed_method_is_needed_as_the_listing_says},
    {"a_device_that_claims_more_than_its_table_holds_is_refused", ONCE, a_device_that_claims_more_than_its_table_holds_is_refused},
    VT_TEST_END};
