// seed_contract.c: the declarations of vllm.cpp's backend.h and communicator.h, one by one, each beside our call for it.
//
// Every line is run and its promise checked. The first column of the list is the declaration, the second our call.
// The program fails if one promise isn't kept.
#define _POSIX_C_SOURCE 200809L

#include <semaphore.h>
#include <string.h>
#include <vllm_vt/vt.h>

#include "seed_communicator.h"
#include "seed_list.h"
#include "toy_backend.h"

// A host function that holds its queue until the gate is opened with sem_post().
static vt_status wait_for_gate(void *gate) {
  while (sem_wait(gate) != 0) {
  }
  return VT_OK;
}

static bool all_bytes(const void *block, size_t count, unsigned char value) {
  for (size_t i = 0; i < count; i++) {
    if (((const unsigned char *)block)[i] != value) {
      return false;
    }
  }
  return true;
}

// class Backend: memory and queues.
static void backend_memory_and_queues(void) {
  void *a = NULL;
  void *b = NULL;
  vt_queue *queue = NULL;
  section("backend.h: class Backend, memory and queues");

  // virtual void* Alloc(size_t bytes): at least 64-byte alignment.
  row("Backend::Alloc(bytes)", "vt_alloc(device, bytes, &p)",
      vt_alloc(cpu, 1000, &a) == VT_OK && vt_alloc(cpu, 1000, &b) == VT_OK && (uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0);
  // virtual Queue CreateQueue().
  row("Backend::CreateQueue()", "vt_queue_create(device, options, &queue)", vt_queue_create(cpu, NULL, &queue) == VT_OK);
  // virtual void Memset(Queue& q, void* p, int value, size_t bytes).
  row("Backend::Memset(q, p, value, bytes)", "vt_memset(queue, p, value, bytes)",
      vt_memset(queue, a, 7, 1000) == VT_OK && all_bytes(a, 1000, 7));
  // virtual void Copy(Queue& q, void* dst, const void* src, size_t bytes): done on return, as the queue is synchronous.
  row("Backend::Copy(q, dst, src, bytes)", "vt_copy(queue, dst, src, bytes)",
      vt_copy(queue, b, a, 1000) == VT_OK && all_bytes(b, 1000, 7));
  // virtual void Synchronize(Queue&).
  row("Backend::Synchronize(q)", "vt_queue_synchronize(queue)", vt_queue_synchronize(queue) == VT_OK);
  // virtual void DestroyQueue(Queue&): may be called while work is in flight; here it never waits.
  vt_queue_release(queue);
  row("Backend::DestroyQueue(q)", "vt_queue_release(queue)", vt_queue_query(queue) == VT_ERR_INVALID_ARGUMENT);
  // virtual void Free(void* p).
  row("Backend::Free(p)", "vt_free(device, p)",
      vt_free(cpu, a) == VT_OK && vt_free(cpu, b) == VT_OK && vt_free(cpu, NULL) == VT_OK);
  // virtual void FlushPending(): nothing to do on a device that submits eagerly; the toy below counts its flushes.
  row("Backend::FlushPending()", "vt_device_flush(device)", vt_device_flush(cpu) == VT_OK);
  // virtual void* AllocPinned(size_t bytes): 0 gives a valid block.
  row("Backend::AllocPinned(bytes)", "vt_pinned_alloc(device, bytes, &p)", vt_pinned_alloc(cpu, 0, &a) == VT_OK && a != NULL);
  // virtual void FreePinned(void* p).
  row("Backend::FreePinned(p)", "vt_pinned_free(device, p)", vt_pinned_free(cpu, a) == VT_OK);
}

// class Backend: what the device is and can do.
static void backend_facts(void) {
  vt_device_info info = VT_DEVICE_INFO_INIT;
  section("backend.h: class Backend, facts");
  must(vt_device_get_info(cpu, &info), "vt_device_get_info");

  // virtual bool UnifiedMemory() const: true on CPU. Whether the host may dereference is a narrower fact of its own.
  row("Backend::UnifiedMemory()", "vt_device_info.unified_memory, .host_addressable",
      info.unified_memory == 1 && info.host_addressable == 1);
  // virtual int DeviceCapabilityMajor() const, DeviceCapabilityMinor() const: {0, 0} where it has no meaning.
  row("Backend::DeviceCapabilityMajor()", "vt_device_info.compute_major", info.compute_major == 0);
  row("Backend::DeviceCapabilityMinor()", "vt_device_info.compute_minor", info.compute_minor == 0);
  // virtual bool SupportsAuxStream() const: a second queue overlaps, on CPU too.
  row("Backend::SupportsAuxStream()", "vt_device_info.caps & VT_CAP_AUX_QUEUE", (info.caps & VT_CAP_AUX_QUEUE) != 0);
  // virtual bool SupportsGraphCapture() const.
  row("Backend::SupportsGraphCapture()", "vt_device_info.caps & VT_CAP_GRAPH_CAPTURE", (info.caps & VT_CAP_GRAPH_CAPTURE) != 0);
}

// class Backend: events, across two asynchronous queues.
static void backend_events(void) {
  sem_t gate;
  vt_event *event = NULL;
  vt_device device = {VT_DEVICE_XPU, 9};
  vt_queue *main_queue = async_queue();
  vt_queue *copy_queue = async_queue();
  int value = 0;
  int copied = 0;
  const int written = 42;
  section("backend.h: events");
  sem_init(&gate, 0, 0);

  // virtual Event CreateEvent(bool blocking = false).
  row("Backend::CreateEvent(blocking)", "vt_event_create(device, VT_EVENT_BLOCKING, &event)",
      vt_event_create(cpu, VT_EVENT_BLOCKING, &event) == VT_OK);
  // struct Event { Device device; void* handle; }: an opaque handle that knows its device.
  row("Event::device, Event::handle", "vt_event_get_device(event, &device), vt_event_get_native",
      vt_event_get_device(event, &device) == VT_OK && device.type == cpu.type && device.index == cpu.index);
  // virtual void RecordEvent(Event& e, Queue& q): returns at once though the queue is held.
  must(vt_queue_host_func(main_queue, wait_for_gate, &gate, NULL), "vt_queue_host_func");
  must(vt_copy(main_queue, &value, &written, sizeof value), "vt_copy");
  row("Backend::RecordEvent(e, q)", "vt_event_record(event, queue)", vt_event_record(event, main_queue) == VT_OK);
  // virtual bool QueryEvent(Event& e): pending, not "always complete".
  row("Backend::QueryEvent(e)", "vt_event_query(event)", vt_event_query(event) == VT_NOT_READY);
  // virtual void QueueWaitEvent(Queue& q, Event& e): orders the copy queue, doesn't block the host.
  bool ok = vt_queue_after_event(copy_queue, event) == VT_OK && vt_copy(copy_queue, &copied, &value, sizeof copied) == VT_OK;
  row("Backend::QueueWaitEvent(q, e)", "vt_queue_after_event(queue, event)", ok && vt_queue_query(copy_queue) == VT_NOT_READY);
  // virtual void SynchronizeEvent(Event& e).
  sem_post(&gate);
  row("Backend::SynchronizeEvent(e)", "vt_event_synchronize(event)", vt_event_synchronize(event) == VT_OK && value == written);
  // virtual void DestroyEvent(Event& e).
  vt_event_release(event);
  row("Backend::DestroyEvent(e)", "vt_event_release(event)",
      vt_event_query(event) == VT_ERR_INVALID_ARGUMENT && vt_queue_synchronize(copy_queue) == VT_OK && copied == written);

  must(vt_queue_destroy(main_queue), "vt_queue_destroy");
  must(vt_queue_destroy(copy_queue), "vt_queue_destroy");
  sem_destroy(&gate);
}

// Launches once and answers whether the captured copy saw the present source.
static bool replayed(vt_status launched, vt_queue *queue, const int *dst, int expected) {
  return launched == VT_OK && vt_queue_synchronize(queue) == VT_OK && *dst == expected;
}

// class Backend: graphs, in the stored form and by handle.
static void backend_graphs(void) {
  vt_queue *queue = async_queue();
  vt_graph *graph = NULL;
  int src = 1;
  int dst = 0;
  section("backend.h: graphs");

  // virtual void BeginCapture(Queue& q): records, doesn't run.
  bool ok = vt_graph_begin_capture(queue) == VT_OK && vt_copy(queue, &dst, &src, sizeof dst) == VT_OK;
  row("Backend::BeginCapture(q)", "vt_graph_begin_capture(queue)", ok && dst == 0);
  // virtual void EndCapture(Queue& q): the queue keeps the graph.
  row("Backend::EndCapture(q)", "vt_graph_end_capture(queue, NULL)", vt_graph_end_capture(queue, NULL) == VT_OK && dst == 0);
  // virtual void Replay(Queue& q).
  row("Backend::Replay(q)", "vt_queue_replay(queue)", replayed(vt_queue_replay(queue), queue, &dst, 1));
  // virtual void* EndCaptureGraph(Queue& q): the caller keeps the graph.
  must(vt_graph_begin_capture(queue), "vt_graph_begin_capture");
  must(vt_copy(queue, &dst, &src, sizeof dst), "vt_copy");
  row("Backend::EndCaptureGraph(q)", "vt_graph_end_capture(queue, &graph)", vt_graph_end_capture(queue, &graph) == VT_OK);
  // virtual void ReplayGraph(Queue& q, void* graph): the source is read at each launch.
  src = 2;
  row("Backend::ReplayGraph(q, graph)", "vt_graph_launch(graph, queue)", replayed(vt_graph_launch(graph, queue), queue, &dst, 2));
  // virtual void DestroyGraph(void* graph).
  vt_graph_release(graph);
  row("Backend::DestroyGraph(graph)", "vt_graph_release(graph)", vt_graph_launch(graph, queue) == VT_ERR_INVALID_ARGUMENT);

  must(vt_queue_destroy(queue), "vt_queue_destroy");
}

static int table_allocs;

static vt_status table_alloc(vt_device device, size_t bytes, void **out_ptr) {
  static toy counter;
  (void)device;
  table_allocs++;
  return toy_alloc(&counter, bytes, out_ptr);
}

static vt_status table_free(vt_device device, void *ptr) {
  (void)device;
  table_allocs--;
  free(ptr);
  return VT_OK;
}

static vt_status table_create_queue(vt_device device, const vt_queue_options *options, uint64_t id, void **out_queue) {
  (void)device;
  return toy_queue_create(NULL, options, id, out_queue);
}

static void table_destroy_queue(vt_device device, void *queue, void (*done)(void *user), void *user) {
  (void)device;
  toy_queue_destroy(NULL, queue, done, user);
}

// The registry: by type, which is index 0, and by device. Nothing is ever unregistered, so there is no ~Backend().
static void registry(void) {
  static toy first;
  static toy second;
  const vt_device metal0 = {VT_DEVICE_METAL, 0};
  const vt_device metal1 = {VT_DEVICE_METAL, 1};
  const vt_backend *backend = NULL;
  section("backend.h: registry");

  // Backend* TryGetBackend(DeviceType type): NULL where there is none.
  row("TryGetBackend(type)", "vt_backend_find_default(type)",
      vt_backend_find_default(VT_DEVICE_METAL) == NULL && vt_backend_find_default(VT_DEVICE_CPU) != NULL);
  // Backend& GetBackend(DeviceType type): an error where there is none.
  row("GetBackend(type)", "vt_backend_get_default(type, &backend)",
      vt_backend_get_default(VT_DEVICE_METAL, &backend) == VT_ERR_NOT_FOUND &&
          vt_backend_get_default(VT_DEVICE_CPU, &backend) == VT_OK && backend == vt_backend_find(cpu));
  // void RegisterBackend(DeviceType type, Backend* backend): a type is index 0.
  row("RegisterBackend(type, backend)", "vt_backend_register((vt_device){type, 0}, name, ops, self)",
      vt_backend_register(metal0, "toy", &toy_ops, &first) == VT_OK && vt_device_flush(metal0) == VT_OK && first.flushes == 1);
  // void RegisterBackend(Device device, Backend* backend).
  row("RegisterBackend(device, backend)", "vt_backend_register(device, name, ops, self)",
      vt_backend_find(metal1) == NULL && vt_backend_register(metal1, "toy", &toy_ops, &second) == VT_OK);
  // Backend& GetBackend(Device device): {type, 0} is the slot of the type.
  row("GetBackend(device)", "vt_backend_get(device, &backend)",
      vt_backend_get(metal0, &backend) == VT_OK && backend == vt_backend_find_default(VT_DEVICE_METAL));
  // Backend* TryGetBackend(Device device): another index is another backend; index 0 never stands in.
  row("TryGetBackend(device)", "vt_backend_find(device)",
      vt_backend_find(metal1) != NULL && vt_backend_find(metal1) != backend &&
          vt_backend_find((vt_device){VT_DEVICE_METAL, 2}) == NULL);
  // inline constexpr size_t kMaxDevicesPerType = 16.
  row("kMaxDevicesPerType", "VT_MAX_DEVICES_PER_TYPE",
      VT_MAX_DEVICES_PER_TYPE == 16 && vt_backend_get((vt_device){VT_DEVICE_CPU, 16}, &backend) == VT_ERR_INVALID_ARGUMENT);
}

// The device-explicit resource vocabulary.
static void device_resources(void) {
  // struct DeviceResourceOps { alloc, free, create_queue, destroy_queue }: all four or refused.
  const vt_device_resource_ops half = {.struct_size = sizeof half, .alloc = table_alloc, .free = table_free};
  const vt_device_resource_ops whole = {
      .struct_size = sizeof whole,
      .alloc = table_alloc,
      .free = table_free,
      .create_queue = table_create_queue,
      .destroy_queue = table_destroy_queue,
  };
  const vt_device metal0 = {VT_DEVICE_METAL, 0};
  const vt_device metal1 = {VT_DEVICE_METAL, 1};
  void *block = NULL;
  vt_queue *queue = NULL;
  section("backend.h: device-explicit resources");

  row("struct DeviceResourceOps", "vt_device_resource_ops", vt_device_resource_register(metal1, &half) == VT_ERR_INVALID_ARGUMENT);
  // void RegisterDeviceResourceOps(Device device, const DeviceResourceOps* ops).
  row("RegisterDeviceResourceOps(device, ops)", "vt_device_resource_register(device, ops)",
      vt_device_resource_register(metal1, &whole) == VT_OK);
  // void RegisterDeviceResourceOps(DeviceType type, const DeviceResourceOps* ops): a type is index 0.
  row("RegisterDeviceResourceOps(type, ops)", "vt_device_resource_register((vt_device){type, 0}, ops)",
      vt_device_resource_register(metal0, &whole) == VT_OK);
  // void* Alloc(Device device, size_t bytes): through the table of that device.
  row("Alloc(device, bytes)", "vt_alloc(device, bytes, &p)", vt_alloc(metal1, 100, &block) == VT_OK && table_allocs == 1);
  // void Free(Device device, void* p).
  row("Free(device, p)", "vt_free(device, p)", vt_free(metal1, block) == VT_OK && table_allocs == 0);
  // Queue CreateQueue(Device device).
  row("CreateQueue(device)", "vt_queue_create(device, NULL, &queue)", vt_queue_create(metal1, NULL, &queue) == VT_OK);
  // void DestroyQueue(Queue& q): waits for the queue's work.
  row("DestroyQueue(q)", "vt_queue_destroy(queue)", vt_queue_destroy(queue) == VT_OK);
}

int main(void) {
  printf("seed declaration -> our call\n");
  backend_memory_and_queues();
  backend_facts();
  backend_events();
  backend_graphs();
  registry();
  device_resources();
  comm_group();
  printf("\n%s\n", failures == 0 ? "All promises are kept." : "Not all promises are kept.");
  return failures == 0 ? 0 : 1;
}
