/* Collectives between the ranks of one process: posts, slices, refusals, poison, death and free.
 *
 * Every access of shared memory is a step of its own, and steps of the ranks are interleaved in every order. Memory orders are the
 * business of the loom models. A comment with an at sign names the access in C that a step stands for.
 *
 * WORLD   ranks: 2 or 3
 * OPS     calls of each rank
 * KINDS   what a call may be: a sum of SMALL, LARGE and REFUSE
 * EVENT   what may happen once: NOTHING, ABORT, EXPIRE (a rank that waits is out of time), FORSAKE (a thread ends while it moves
 *         data), or DIE (a rank goes before its last call)
 */

#define SMALL 1
#define LARGE 2
#define REFUSE 4

#define NOTHING 0
#define ABORT 1
#define EXPIRE 2
#define FORSAKE 3
#define DIE 4

#define POISONED 1
#define REFUSED 2
#define GONE 4

#define CLOSED 1
#define ONE 2

#define CHUNKS 2

#ifdef ENTERS_A_CLOSED_GATE
#define NO_POLL_OF_THE_GATE /* else that finds it at once */
#endif

#define POST(r, n) (2 * (r) + (n) % 2)
#define CALL(r, n) ((r) * (OPS + 1) + (n))

/* inproc.h */
byte alarm;
byte number[2 * WORLD];
byte left[WORLD];
byte gate[WORLD];
bool gone[WORLD];
byte last[WORLD];
byte first[WORLD];
byte refs = WORLD + 1;
bool claimed;
byte cause;

/* The plain fields of a post: of which operation they are, and what was called. */
byte told[2 * WORLD];
byte what[2 * WORLD];

/* Not in C: what the assertions ask. */
byte called[WORLD * (OPS + 1)]; /* what each rank called */
byte inside_call[WORLD];        /* the number of the call that a rank's buffers belong to, 0 while they are the caller's */
byte late[WORLD];               /* chunks that were begun after all gates had been closed */
bool poison_done;
bool freed;
bool happened = (EVENT == NOTHING);

inline poison(why) {
  d_step { won = !claimed; claimed = true } /* @gate.vt__inproc_poison claimed compare_exchange_strong */
  if
  :: won ->
    assert(cause == 0 && EVENT != NOTHING);
    cause = why;
    alarm = alarm | POISONED; /* @gate.vt__inproc_poison alarm fetch_or */
    closing = 0;
    do
    :: closing < WORLD ->
#ifndef GATES_STAY_OPEN
      gate[closing] = gate[closing] | CLOSED; /* @gate.close_gates gate fetch_or */
#endif
      closing++
    :: else -> break
    od;
    poison_done = true
  :: else
  fi
}

inline unref() {
  d_step { refs--; was_last = (refs == 0) } /* @group.vt__inproc_unref refs fetch_sub */
  if
  :: was_last -> freed = true
  :: else
  fi
}

/* Whether the run of refusals of a rank holds an operation. */
inline refused_run_holds(r, n, out) {
  if
  :: (alarm & REFUSED) == 0 -> out = false /* @refused.vt__refused_run_holds alarm load */
  :: else ->
    out = (last[r] >= n); /* @refused.vt__refused_run_holds last load */
    if
    :: out -> out = (first[r] <= n)
    :: else
    fi
  fi
}

/* `peer` has not come: whether the operation ends by that. */
inline op_blocked(peer, leaving, n) {
  seen = alarm; /* @turn.vt__op_blocked alarm load */
  if
  :: seen == 0
  :: (seen & POISONED) != 0 -> failed = true
  :: seen != 0 && (seen & POISONED) == 0 ->
    if
    :: gone[peer] -> /* @turn.vt__op_blocked gone load */
#ifndef NO_SECOND_LOOK
      reached = (leaving -> left[peer] : number[POST(peer, n)]) >= n; /* @turn.vt__op_blocked word load */
      if
      :: !reached && !leaving -> refused_run_holds(peer, n, reached)
      :: else
      fi;
#endif
      if
      :: !reached -> poison(DIE)
      :: else
      fi;
      reached = false
    :: else
    fi
  fi
}

/* Whether `peer` has reached an operation. Waits until it has or there is something to look at. */
inline has_reached(peer, leaving, n) {
#ifndef NO_LOOK_AT_THE_ALARM
  (((leaving -> left[peer] : number[POST(peer, n)]) >= n) || alarm != 0 || !happened);
#else
  ((leaving -> left[peer] : number[POST(peer, n)]) >= n);
#endif
  reached = (leaving -> left[peer] : number[POST(peer, n)]) >= n; /* @collective.has_reached word load */
  if
  :: !reached && !leaving -> refused_run_holds(peer, n, reached)
  :: else
  fi;
  if
  :: !reached -> op_blocked(peer, leaving, n)
  :: else
  fi
}

/* Waits for all ranks, or for the end of the operation by poison. */
inline all_reached(leaving, n) {
  cursor = 0;
  do
  :: cursor < WORLD && !failed ->
    has_reached(cursor, leaving, n);
    if
    :: reached -> cursor++
    :: !reached && !failed && EVENT == EXPIRE && !happened -> happened = true; poison(EXPIRE)
    :: !reached
    fi;
    /* A rank behind the one that is awaited may have gone. */
    if
    :: !reached && !failed && (alarm & ~REFUSED) != 0 -> /* @collective.all_reached alarm load */
      behind = cursor + 1;
      do
      :: behind < WORLD && !failed ->
        reached = (leaving -> left[behind] : number[POST(behind, n)]) >= n;
        if
        :: !reached && !leaving -> refused_run_holds(behind, n, reached)
        :: else
        fi;
        if
        :: !reached -> op_blocked(behind, leaving, n)
        :: else
        fi;
        behind++
      :: else -> break
      od
    :: else
    fi
  :: else -> break
  od
}

inline publish(n, kind) {
  /* Nobody may be reading what is about to be written: whoever still compares the operation before last. */
  told[POST(me, n)] = 0;
  what[POST(me, n)] = kind;
  told[POST(me, n)] = n;
  number[POST(me, n)] = n /* @collective.publish number store */
}

/* What a refusal does: it waits for nobody. */
inline refuse(n) {
  if
  :: last[me] != 0 && last[me] + 1 == n -> prepared = false /* @refused.goes_on last load */
  :: else ->
    prepared = met || n == 1;
    if
    :: !prepared ->
      prepared = true;
      cursor = 0;
      do
      :: cursor < WORLD ->
        reached = number[POST(cursor, n - 1)] >= n - 1;
        if
        :: !reached -> refused_run_holds(cursor, n - 1, reached)
        :: else
        fi;
        prepared = prepared && reached;
        cursor++
      :: else -> break
      od
    :: else
    fi
  fi;
#ifdef REFUSES_INTO_THE_POST
  prepared = true;
#endif
  if
  :: prepared -> publish(n, REFUSE)
  :: else ->
    if
    :: last[me] + 1 != n || last[me] == 0 -> first[me] = n
    :: else
    fi;
    last[me] = n; /* @refused.add last store */
#ifndef NO_BIT_OF_REFUSALS
    alarm = alarm | REFUSED /* @refused.add alarm fetch_or */
#endif
  fi;
  met = false
}

/* All ranks come to the same verdict: it follows from what they called. */
inline compare(n) {
  verdict = 0;
  if
  :: (alarm & REFUSED) != 0 -> /* @verdict.vt__collective_verdict alarm load */
    cursor = 0;
    do
    :: cursor < WORLD && verdict == 0 ->
      refused_run_holds(cursor, n, reached);
      if
      :: reached -> verdict = REFUSE
      :: else
      fi;
      cursor++
    :: else -> break
    od
  :: else
  fi;
  cursor = 0;
  seen = 0;
  do
  :: verdict == 0 && cursor < WORLD ->
    assert(told[POST(cursor, n)] == n);
    seen = seen | what[POST(cursor, n)];
    cursor++
  :: else -> break
  od;
  if
  :: verdict == 0 && (seen & REFUSE) != 0 -> verdict = REFUSE
  :: verdict == 0 && (seen & REFUSE) == 0 && seen != SMALL && seen != LARGE -> verdict = SMALL + LARGE
  :: else
  fi;
  d_step {
    seen = 0;
    cursor = 0;
    do
    :: cursor < WORLD -> seen = seen | called[CALL(cursor, n)]; cursor++
    :: else -> break
    od;
    assert((verdict == REFUSE) == ((seen & REFUSE) != 0));
    assert((verdict == 0) == (seen == SMALL || seen == LARGE));
    seen = 0
  }
}

inline take_from_posts(n) {
  cursor = 0;
  do
  :: cursor < WORLD -> assert(told[POST(cursor, n)] == n); cursor++
  :: else -> break
  od
}

/* Writes and reads the buffers of all ranks. */
inline move(n) {
  chunk = 0;
  do
  :: chunk < CHUNKS && !failed ->
    if
#ifndef NO_POLL_OF_THE_GATE
    :: (gate[me] & CLOSED) != 0 -> failed = true /* @gate.vt__gate_is_closed gate load */
#endif
    :: EVENT == FORSAKE && !happened -> happened = true; forsaken = true; failed = true
    :: else ->
      if
      :: poison_done -> late[me]++
      :: else
      fi;
      assert(late[me] <= 1);
      cursor = 0;
      do
      :: cursor < WORLD ->
        assert(told[POST(cursor, n)] == n);
        assert(inside_call[cursor] == n);
        cursor++
      :: else -> break
      od;
      chunk++
    fi
  :: else -> break
  od
}

inline exchange_slices(n) {
  atomic { /* @gate.vt__gate_enter gate load, then @gate.vt__gate_enter gate compare_exchange_weak */
    if
#ifndef ENTERS_A_CLOSED_GATE
    :: (gate[me] & CLOSED) != 0 -> failed = true
    :: (gate[me] & CLOSED) == 0 -> gate[me] = gate[me] + ONE
#else
    :: gate[me] = gate[me] + ONE
#endif
    fi
  }
  if
  :: !failed ->
    move(n);
    gate[me] = gate[me] - ONE; /* @gate.vt__gate_leave gate fetch_sub */
    if
    :: forsaken -> poison(FORSAKE)
    :: !failed ->
      left[me] = n; /* @collective.step_move left store */
#ifndef NO_WAIT_FOR_ALL_TO_LEAVE
      all_reached(true, n)
#endif
    :: else
    fi
  :: else
  fi
}

/* After poison: until no gate counts anybody. */
inline quiesce() {
  (alarm & POISONED) != 0; /* @turn.vt__op_step_failed alarm load */
#ifndef NO_WAIT_FOR_QUIET
  cursor = 0;
  do
  :: cursor < WORLD ->
    seen = gate[cursor]; /* @gate.vt__inproc_is_quiet gate load */
    if
    :: (seen & CLOSED) == 0 ->
#ifndef LEAVES_OPEN_GATES
      d_step { seen = gate[cursor] | CLOSED; gate[cursor] = seen } /* @gate.vt__inproc_is_quiet gate fetch_or */
#else
      seen = CLOSED
#endif
    :: else
    fi;
    if
    :: seen == CLOSED -> cursor++
    :: else -> gate[cursor] == CLOSED; cursor = 0
    fi
  :: else -> break
  od;
#endif
  seen = 0;
  assert(cause != 0 && (alarm & POISONED) != 0) /* @gate.vt__inproc_query alarm load */
}

inline call(n, kind) {
  if
  :: (alarm & POISONED) != 0 -> failed = true /* @collective.step_token alarm load */
  :: else ->
    if
    :: kind == REFUSE -> refuse(n)
    :: else ->
#ifndef NO_WAIT_FOR_THE_POST
      if
      :: !met && n > 1 -> all_reached(false, n - 1)
      :: else
      fi;
#endif
      met = false;
      if
      :: !failed -> publish(n, kind);
#ifndef NO_WAIT_FOR_THE_PEERS
        all_reached(false, n)
#endif
      :: else
      fi;
      if
      :: !failed ->
        met = true;
        compare(n);
        if
        :: verdict == 0 && kind == SMALL -> take_from_posts(n)
        :: verdict == 0 && kind == LARGE -> exchange_slices(n)
        :: else
        fi
      :: else
      fi
    fi
  fi;
  if
  :: failed && kind != REFUSE && !forsaken -> quiesce()
  :: else
  fi
}

proctype rank(byte me) {
  byte n = 1, kind, cursor, behind, seen, verdict, chunk, closing;
  bool met, reached, failed, won, was_last, prepared, forsaken;
  do
  :: n <= OPS && !failed ->
    if
    :: (KINDS) & SMALL -> kind = SMALL
    :: (KINDS) & LARGE -> kind = LARGE
    :: (KINDS) & REFUSE -> kind = REFUSE
    :: EVENT == DIE && !happened -> happened = true; break
    fi;
    d_step { called[CALL(me, n)] = kind; inside_call[me] = n }
    assert(!freed);
    call(n, kind);
    assert(!freed);
    /* A thread that ended has no caller. */
    if
    :: !forsaken -> inside_call[me] = 0
    :: else
    fi;
    n++
  :: else -> break
  od;
  gone[me] = true; /* @group.rank_gone gone store */
#ifndef NO_BIT_OF_THE_GONE
  alarm = alarm + GONE; /* @group.rank_gone alarm fetch_add */
#endif
  assert(!freed);
  unref()
}

/* The owner of the group, who may abort it. */
proctype owner() {
  byte closing;
  bool won, was_last;
  if
  :: EVENT == ABORT -> poison(ABORT)
  :: true
  fi;
  happened = true;
  assert(!freed);
  unref()
}

init {
  byte r;
  atomic {
    do
    :: r < WORLD -> run rank(r); r++
    :: else -> break
    od;
    run owner()
  }
  /* Everybody returns, and the memory is freed. */
  freed
}
