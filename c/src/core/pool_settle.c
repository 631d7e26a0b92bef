// pool_settle.c: from lanes and limbo to shared, see pool.h.
//
// Backends are asked without the lock, since a poll may run work, and that may end a queue or call the pool. A queue that is asked
// is kept alive by a reference.
#include "base/alloc.h"
#include "core/queue.h"

static vt_queue *queues;  // of the process, from their begin to their end
static uint64_t epoch;    // of the block that came into limbo last

// VT_OK: the work up to `ticket` has completed. VT_NOT_READY: it has not. Else the queue failed there or before.
static vt_status ask(vt_queue *queue, uint64_t ticket) {
  const vt_backend *backend = queue->backend;
  vt__blocks_unlock();
  vt_status status = backend->ops.queue_wait_ticket(backend->self, queue->native, ticket, 0);
  vt__blocks_lock();
  return status;
}

// A queue may be asked if it is no member of a capture, which counts references, and isn't going away.
static bool hold(vt_queue *queue) {
  // relaxed: a capture that begins right now sees one reference more for a moment.
  return (atomic_load_explicit(&queue->state, memory_order_relaxed) & VT__QUEUE_CAPTURING) == 0 && vt__handle_try_ref(queue);
}

// With the last reference the queue ends, and so may call back here.
static void let_go(vt_queue *queue) {
  vt__blocks_unlock();
  vt__handle_unref(queue);
  vt__blocks_lock();
}

static void move(vt__shelf *from, vt__pool_block *block, vt__shelf *to) {
  vt__shelf_remove(from, block);
  vt__shelf_put(to, block);
}

// Moves what was freed there up to `ticket`.
static void complete(vt__pool *pool, vt__lane *lane, uint64_t ticket) {
  while (lane->shelf.oldest != NULL && lane->shelf.oldest->since <= ticket) {
    move(&lane->shelf, lane->shelf.oldest, &pool->shared);
  }
}

void vt__pool_to_limbo(vt__pool *pool, vt__pool_block *block) {
  block->since = ++epoch;
  vt__shelf_put(&pool->limbo, block);
}

static void lose(vt__pool *pool, vt__lane *lane) {
  while (lane->shelf.oldest != NULL) {
    vt__pool_block *block = lane->shelf.oldest;
    vt__shelf_remove(&lane->shelf, block);
    vt__pool_to_limbo(pool, block);
  }
}

static void settle_lane(vt__pool *pool, vt__lane *lane) {
  if (lane->shelf.newest != NULL) {
    uint64_t last = lane->shelf.newest->since;
    if (ask(lane->queue, last) == VT_OK) {
      complete(pool, lane, last);
      return;
    }
  }
  while (lane->shelf.oldest != NULL) {
    uint64_t first = lane->shelf.oldest->since;
    vt_status status = ask(lane->queue, first);
    if (status < 0) {
      lose(pool, lane);
    } else if (status == VT_NOT_READY) {
      return;
    }
    complete(pool, lane, first);
  }
}

static vt__lane *next_lane(const vt__pool *pool, const vt__lane *lane) {
  vt__lane *next = lane == NULL ? pool->lanes : lane->next;
  while (next != NULL && (next->shelf.oldest == NULL || !hold(next->queue))) {
    next = next->next;
  }
  return next;
}

static void settle_lanes(vt__pool *pool) {
  vt__lane *lane = next_lane(pool, NULL);
  while (lane != NULL) {
    settle_lane(pool, lane);
    vt_queue *queue = lane->queue;
    lane = next_lane(pool, lane);  // held before the one that leads there is let go
    let_go(queue);
  }
}

// Sees whether the queue has come past the epoch that it was marked with; marks it with the present one if there is need.
static void pass(vt_queue *queue) {
  vt__pool_seat *seat = &queue->pool;
  if (seat->marked == 0 && seat->passed < epoch) {
    uint64_t target = epoch;
    uint64_t ticket = 0;
    const vt_backend *backend = queue->backend;
    vt__blocks_unlock();
    vt_status status = backend->ops.queue_get_ticket(backend->self, queue->native, &ticket);
    vt__blocks_lock();
    if (status != VT_OK || seat->marked != 0) {
      return;  // another thread has marked it
    }
    seat->marked = target;
    seat->ticket = ticket;
  }
  uint64_t marked = seat->marked;
  // A failed queue runs nothing any more.
  if (marked != 0 && ask(queue, seat->ticket) != VT_NOT_READY && seat->marked == marked) {
    seat->passed = marked;
    seat->marked = 0;
  }
}

static vt_queue *next_queue(const vt_queue *queue) {
  vt_queue *next = queue == NULL ? queues : queue->pool.next;
  while (next != NULL && (next->pool.passed == epoch || !hold(next))) {
    next = next->pool.next;
  }
  return next;
}

static void settle_limbo(vt__pool *pool) {
  vt_queue *queue = next_queue(NULL);
  while (queue != NULL) {
    pass(queue);
    vt_queue *done = queue;
    queue = next_queue(queue);
    let_go(done);
  }
  uint64_t passed = UINT64_MAX;
  for (queue = queues; queue != NULL; queue = queue->pool.next) {
    passed = queue->pool.passed < passed ? queue->pool.passed : passed;
  }
  while (pool->limbo.oldest != NULL && pool->limbo.oldest->since <= passed) {
    move(&pool->limbo, pool->limbo.oldest, &pool->shared);
  }
}

void vt__pool_settle(vt__pool *pool) {
  vt__blocks_lock();
  settle_lanes(pool);
  if (pool->limbo.oldest != NULL) {
    settle_limbo(pool);
  }
  vt__blocks_unlock();
}

void vt__pool_queue_begin(vt_queue *queue) {
  vt__blocks_lock();
  queue->pool = (vt__pool_seat){.next = queues, .passed = epoch};
  if (queues != NULL) {
    queues->pool.previous = queue;
  }
  queues = queue;
  vt__blocks_unlock();
}

static void end_lane(vt__lane *lane) {
  vt__pool *pool = vt__pool_find(lane->queue->backend->device);
  lose(pool, lane);
  *(lane->previous == NULL ? &pool->lanes : &lane->previous->next) = lane->next;
  if (lane->next != NULL) {
    lane->next->previous = lane->previous;
  }
  vt__free(lane);
}

void vt__pool_queue_end(vt_queue *queue) {
  vt__pool_seat *seat = &queue->pool;
  vt__blocks_lock();
  *(seat->previous == NULL ? &queues : &seat->previous->pool.next) = seat->next;
  if (seat->next != NULL) {
    seat->next->pool.previous = seat->previous;
  }
  if (seat->lane != NULL) {
    end_lane(seat->lane);
  }
  vt__blocks_unlock();
}
