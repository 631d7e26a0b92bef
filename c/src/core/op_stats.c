// op_stats.c: what providers did.
//
// A look-up counts on lines of its own thread, without atomic read-modify-write operations. A reader sums all threads; what a
// thread counted is added to the totals when it ends.
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "core/check.h"
#include "core/op.h"

// The counters of a living thread.
typedef struct block {
  vt__op_counts *counts;
  uint32_t capacity;
  struct block *next;
  struct block **link;  // what points to this one
} block;

_Thread_local vt__op_mine vt__op_mine_now;
static _Thread_local block *my_block;

// Taken alone or inside vt__op_mutex; guards what follows, and the shape of every block.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static block *blocks;
static vt__op_counts *totals;  // of threads that ended, and of those without a block
static uint32_t totals_capacity;
static uint32_t allotted;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;

// Copies `count` of the counters into new memory for `capacity`. NULL if there is none.
static vt__op_counts *grown(const vt__op_counts *from, uint32_t count, uint32_t capacity) {
  vt__op_counts *to = vt__malloc_aligned(VT_CACHE_LINE, capacity * sizeof(*to));
  if (to == NULL) {
    return NULL;
  }
  memset(to, 0, capacity * sizeof(*to));
  for (uint32_t i = 0; i < count; i++) {
    for (int place = 0; place < VT__OP_COUNTS; place++) {
      // relaxed: their thread doesn't write meanwhile.
      atomic_store_explicit(&to[i].at[place], atomic_load_explicit(&from[i].at[place], memory_order_relaxed), memory_order_relaxed);
    }
  }
  return to;
}

bool vt__op_counters_allot(uint32_t count, uint32_t *out_first) {
  bool enough = true;
  pthread_mutex_lock(&mutex);
  if (allotted + count > totals_capacity) {
    uint32_t capacity = totals_capacity == 0 ? 32 : totals_capacity * 2;
    vt__op_counts *to = grown(totals, totals_capacity, capacity);
    enough = to != NULL;
    if (enough) {
      vt__free(totals);
      totals = to;
      totals_capacity = capacity;
    }
  }
  if (enough) {
    *out_first = allotted;
    allotted += count;
  }
  pthread_mutex_unlock(&mutex);
  return enough;
}

static void add(_Atomic uint64_t *to, uint64_t amount) {
  // relaxed: the mutex is held, or only this thread writes.
  atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + amount, memory_order_relaxed);
}

// Runs at the end of a thread that has counted.
static void retire(void *ended) {
  block *mine = ended;
  // relaxed: as in vt__op_count_slow().
  if (atomic_load_explicit(&vt__forked, memory_order_relaxed) != 0) {
    return;
  }
  pthread_mutex_lock(&mutex);
  for (uint32_t i = 0; i < mine->capacity; i++) {
    for (int place = 0; place < VT__OP_COUNTS; place++) {
      // relaxed: only this thread writes.
      add(&totals[i].at[place], atomic_load_explicit(&mine->counts[i].at[place], memory_order_relaxed));
    }
  }
  *mine->link = mine->next;
  if (mine->next != NULL) {
    mine->next->link = mine->link;
  }
  pthread_mutex_unlock(&mutex);
  vt__free(mine->counts);
  vt__free(mine);
  my_block = NULL;
  vt__op_mine_now = (vt__op_mine){0};
}

static void make_key(void) {
  key_made = pthread_key_create(&key, retire) == 0;
}

// Gives this thread a block. The mutex is held.
static void begin_block(void) {
  block *mine = key_made ? vt__calloc(1, sizeof(*mine)) : NULL;
  if (mine == NULL || pthread_setspecific(key, mine) != 0) {
    vt__free(mine);
    return;
  }
  mine->next = blocks;
  mine->link = &blocks;
  if (blocks != NULL) {
    blocks->link = &mine->next;
  }
  blocks = mine;
  my_block = mine;
}

// Gives this thread counters for all that was allotted, as far as there is memory. The mutex is held.
static void grow_mine(void) {
  if (my_block == NULL) {
    begin_block();
  }
  vt__op_counts *to = my_block == NULL ? NULL : grown(my_block->counts, my_block->capacity, totals_capacity);
  if (to != NULL) {
    vt__free(my_block->counts);
    my_block->counts = to;
    my_block->capacity = totals_capacity;
    vt__op_mine_now = (vt__op_mine){.counts = to, .capacity = totals_capacity};
  }
}

void vt__op_count_slow(uint32_t number, int place) {
  // relaxed: set by the fork handler of this very thread. In a child the mutex may belong to a thread that isn't there.
  if (atomic_load_explicit(&vt__forked, memory_order_relaxed) != 0) {
    return;
  }
  pthread_once(&key_once, make_key);
  pthread_mutex_lock(&mutex);
  grow_mine();
  vt__op_counts *counts = number < vt__op_mine_now.capacity ? vt__op_mine_now.counts : totals;
  add(&counts[number].at[place], 1);
  pthread_mutex_unlock(&mutex);
}

// The place of a reason among those of an entry; the last place stands for all that find none.
static int place_of(vt__op_entry *entry, const char *reason) {
  for (int i = 0; i < VT_OP_STATS_REASONS - 1; i++) {
    // release, acquire: each other's partners, here and in fill().
    const char *there = atomic_load_explicit(&entry->reasons[i], memory_order_acquire);
    if (there == NULL &&
        atomic_compare_exchange_strong_explicit(&entry->reasons[i], &there, reason, memory_order_release, memory_order_acquire)) {
      return i;
    }
    if (there == reason || strcmp(there, reason) == 0) {
      return i;
    }
  }
  return VT_OP_STATS_REASONS - 1;
}

void vt__op_note_decline(vt__op_entry *entry, const char *reason) {
  vt__op_count(entry->number, VT__OP_REASONS + place_of(entry, reason));
  // relaxed: only tells whether to store. Written only when it changes: many threads may decline alike.
  if (atomic_load_explicit(&entry->last_reason, memory_order_relaxed) != reason) {
    // release: partner is the acquire load in fill().
    atomic_store_explicit(&entry->last_reason, reason, memory_order_release);
  }
}

static uint64_t sum(uint32_t number, int place) {
  // relaxed, here and below: other threads go on counting.
  uint64_t all = atomic_load_explicit(&totals[number].at[place], memory_order_relaxed);
  for (const block *b = blocks; b != NULL; b = b->next) {
    all += number < b->capacity ? atomic_load_explicit(&b->counts[number].at[place], memory_order_relaxed) : 0;
  }
  return all;
}

static void fill(const vt__op_entry *entry, vt_op_stats *out) {
  // acquire: partner is the release store in vt__op_note_decline().
  out->last_reason = atomic_load_explicit(&entry->last_reason, memory_order_acquire);
  pthread_mutex_lock(&mutex);
  out->selections = sum(entry->number, VT__OP_SELECTIONS);
  out->fallbacks = sum(entry->number, VT__OP_FALLBACKS);
  for (int i = 0; i < VT_OP_STATS_REASONS; i++) {
    vt_op_refusal *refusal = &out->reasons[i];
    refusal->count = sum(entry->number, VT__OP_REASONS + i);
    out->declines += refusal->count;
    if (i == VT_OP_STATS_REASONS - 1) {
      refusal->reason = refusal->count == 0 ? NULL : "other reasons";
    } else {
      // acquire: partner is the release in place_of().
      refusal->reason = atomic_load_explicit(&entry->reasons[i], memory_order_acquire);
    }
  }
  pthread_mutex_unlock(&mutex);
}

// The entry of a provider, or of the reference tier. Answers whether it is disabled, too.
static const vt__op_entry *find(vt_op_id id, vt_device_type type, const char *name, bool *out_disabled) {
  vt__op *op = vt__op_find(id);
  if (op == NULL) {
    return NULL;
  }
  if (strcmp(name, VT_OP_REFERENCE_NAME) == 0) {
    // acquire: partner is the release store in vt_op_reference_register().
    vt__op_reference_tier *tier = atomic_load_explicit(&op->tier, memory_order_acquire);
    *out_disabled = vt__op_tier_is_disabled();
    return tier == NULL ? NULL : &tier->entries[type];
  }
  // acquire: partner is the release store in op_list.c.
  const vt__op_list *list = atomic_load_explicit(&op->lists[type], memory_order_acquire);
  const vt__op_entry *entry = vt__op_entry_of(list, name);
  *out_disabled = entry != NULL && !vt__op_entry_is_enabled(list, entry);
  return entry;
}

vt_status vt_op_provider_get_stats(vt_op_id id, vt_device_type type, const char *name, vt_op_stats *out_stats) {
  VT_TRY(vt__check_not_forked(__func__));
  VT_CHECK_ARG(vt__op_is_type(type), "device type %d is unknown", type);
  VT_CHECK_ARG(name != NULL, "name is NULL");
  VT_CHECK_ARG(out_stats != NULL, "out_stats is NULL");
  VT_CHECK_ARG(out_stats->struct_size >= offsetof(vt_op_stats, disabled), "out_stats->struct_size is %zu", out_stats->struct_size);
  bool disabled = false;
  const vt__op_entry *entry = find(id, type, name, &disabled);
  if (entry == NULL) {
    return vt__fail(VT_ERR_NOT_FOUND, "%s (id %d) has no provider \"%s\" on %s", vt__op_name_for_text(id), id, name,
                    vt_device_type_get_name(type));
  }
  vt_op_stats stats = {.struct_size = out_stats->struct_size, .disabled = disabled};
  fill(entry, &stats);
  size_t bytes = stats.struct_size;
  if (bytes > sizeof(stats)) {
    memset((char *)out_stats + sizeof(stats), 0, bytes - sizeof(stats));
  }
  memcpy(out_stats, &stats, vt__min_size(bytes, sizeof(stats)));
  return VT_OK;
}

const char *vt_op_get_last_selected(vt_op_id id, vt_device_type type) {
  vt__op *op = vt__op_is_type(type) ? vt__op_find(id) : NULL;
  // acquire: partner is the release store in vt__op_note_selected().
  const vt__op_entry *last = op == NULL ? NULL : atomic_load_explicit(&op->last[type], memory_order_acquire);
  return last == NULL ? NULL : last->name;
}
