/* Exactly once, as a Promela model: what workers, closers, retries and compactors do to one store.

Each action is one transaction or one reading of the code. A comment before it names its functions,
which test_functions.py looks up. Three equal actors act on two partitions of RECORDS events, given
by TIMES and KINDS, a digit of base 16 an event, the first one last. An actor has one partition,
closing, retry or merge in hand: a worker that has more is more than one, and a killed one is idle.
They are kept in order: states that differ by who is who are one. Settings: events are PENDING until
a closing, or counted at once; WINDOW of labels, or 0 where events are attributed to arms as of their
time; whether something is added while others count (DEPLOYS), refused events are tried again
(RETRIES), the store is restored once, from a copy of any earlier moment (GOES_BACK), compactors run
(MERGES), and silent partitions are passed over (IDLES).
-DWITHOUT=NAME leaves out one condition of the code: each leads to a failed assertion. */
#define EVENTS (2 * RECORDS)
#define LATENESS 1
#define EVERYTHING 9 /* the time to which Closer.close(everything=True) closes */

#define HEAD_AT_START 1      /* `same_head_at`: the head stands where a commit starts */
#define HEAD_OF_LOG 2        /* `is_same`: the number of a row is no identity */
#define REVISION_EQUAL 3     /* `check_generation`: a commit has the metrics of now */
#define TOKEN_EQUAL 4        /* `check_generation`: equal revisions may be of other changes */
#define ONE_COMMIT 5         /* `Ledger.commit`: head and delta in one transaction */
#define SEEK_TO_HEAD 6       /* `Worker._resume`: after Fenced, reading goes on at the head */
#define HEADS_COMPARED 7     /* `KnownHeads.lost`: a store that went back is noticed */
#define RETRY_OPEN 8         /* `write_retry`: only open entries are marked */
#define ONE_RETRY 9          /* `write_retry`: marked and counted in one transaction */
#define RETRY_REVISION 10    /* `write_retry`: with the metrics of now */
#define RETRY_ERA 11         /* `DryRun.era_of`: a metric counts from its start */
#define RETRY_NOT_CLOSED 12  /* `write_retry`: closed_at_most of a retry */
#define CLOSED_AT_MOST 13    /* `refuse_closed`: no event is added to what is closed */
#define CLOSED_AT_LEAST 14   /* `refuse_closed`: no event is refused that is open */
#define ALL_PARTITIONS 15    /* `closable_ms`: the slowest partition decides */
#define WINDOW_IS_OVER 16    /* `closable_ms`: no click of a closed impression comes later */
#define LATE_REFUSED 17      /* `Delta.add`: late events do not become pending */
#define JOIN_STANDS 18       /* `write_closing`: a closing begins where the last one ended */
#define ONE_CLOSING 19       /* `write_closing`: head and results in one transaction */
#define ROWS_AS_READ 20      /* `write_closing`: all rows that were read, and no others */
#define KNOWN_AT_ONCE 21     /* `known_states`: closed exposures are read at one moment */
#define CLOSING_REVISION 22  /* `write_closing`: with the experiments of now */
#define ROWS_COUNTED 23      /* `_exchange`: exactly the merged rows are deleted */
#define EXPOSED_BEFORE 24    /* `attributed`: an exposure is from before the event */
#define EXPOSED_FIRST 25     /* `first_exposures`: the least exposure of a unit decides */
#define EXPOSURES_ENTER 26   /* `ExposedRows.close`: its exposures are known to its events */
#define EXPOSURES_KEPT 27    /* `ExposedStates.accumulate`: they are pending, even if none counts */
#define REACHED_END 28       /* leaves out nothing, and shows that results are compared */
#define IF(name, condition) (WITHOUT == name || (condition))

#define PLACE(p, i) ((p) * RECORDS + (i))
#define BIT(e) (1 << (e))
#define HAS(set, e) (((set) >> (e)) & 1)
#define TIME(e) ((TIMES >> (4 * (e))) & 15)
#define KIND(e) ((KINDS >> (4 * (e))) & 7)
#define IS_BAD(e) ((KINDS >> (4 * (e) + 3)) & 1) /* refused at first, and good for a retry */
#define OTHER 0 /* or an impression */
#define ARM_A 1 /* or a click */
#define ARM_B 2
#define ADDED 3 /* an exposure to the experiment that a deployment adds */

typedef Store {
  byte number[2];           /* of the row of a partition's head, 0 where there is none */
  byte next[2];             /* next_offset */
  byte digest[2];           /* whether the last commit is from after the store went back */
  byte greatest[2];         /* greatest_event_ms; 0: none */
  byte generation;          /* 0 before the deployment, then 1, or 2 after the store went back */
  byte began[2];            /* start_offsets of what was added, by log */
  byte began_closed;        /* and of JOIN */
  byte closed;              /* next_offset of JOIN; 0: nothing is closed */
  byte closed_digest;
  byte counted;             /* events, by the metric that was always there */
  byte counted_added;       /* and by the added one */
  byte refused;             /* open entries of the quarantine */
  byte rows, merged;        /* pending events in rows as written, and in rows as merged */
  byte exposures, exposures_merged; /* the same of closed exposures */
  byte arm_a, arm_b, added  /* closed events by attribution; arm_a: with a click */
}
Store now, saved;
hidden Store nothing;
bit went_back;

/* The actors, packed. A worker and a closer go from start to end, as a commit does. */
#define IDLE 0
#define COUNTS 1
#define LISTED 2 /* a closer that knows which rows there are */
#define READ 3   /* and one that has read them */
#define RETRIED 4
#define MERGES_PENDING 5
#define MERGES_EXPOSURES 6
#define HALF 7   /* between two transactions that should be one */
int actor[3], lists[3];
#define ROLE(w) (actor[w] & 15)
#define PARTITION(w) ((actor[w] >> 4) & 1)
#define START(w) ((actor[w] >> 7) & 15)
#define END(w) ((actor[w] >> 11) & 15)
#define DIGEST(w) ((actor[w] >> 15) & 1)
hidden byte role, p, number, start, end, digest, generation, closed;
hidden byte rows, merged, known, known_merged; /* of its lists: sets of events in rows */
hidden byte e, i, x, q, good, bad, shut, oldest, newest, set, best, arm, is_added, limit;

inline load(w) {
  role = ROLE(w); p = PARTITION(w); number = (actor[w] >> 5) & 3; start = START(w); end = END(w);
  digest = DIGEST(w); generation = (actor[w] >> 16) & 3; closed = (actor[w] >> 18) & 15;
  rows = lists[w] & 63; merged = (lists[w] >> 6) & 63; known = (lists[w] >> 12) & 63;
  known_merged = (lists[w] >> 18) & 63
}
inline order(a, b) {
  if
  :: actor[a] > actor[b] || (actor[a] == actor[b] && lists[a] > lists[b]) ->
    actor[a] = actor[a] ^ actor[b]; actor[b] = actor[a] ^ actor[b]; actor[a] = actor[a] ^ actor[b];
    lists[a] = lists[a] ^ lists[b]; lists[b] = lists[a] ^ lists[b]; lists[a] = lists[a] ^ lists[b]
  :: else fi
}
inline keep(w) {
  actor[w] = role | (p << 4) | (number << 5) | (start << 7) | (end << 11) | (digest << 15) |
    (generation << 16) | (closed << 18);
  lists[w] = rows | (merged << 6) | (known << 12) | (known_merged << 18);
  order(0, 1); order(1, 2); order(0, 1)
}
inline stop() {
  role = IDLE; p = 0; number = 0; start = 0; end = 0; digest = 0; generation = 0; closed = 0;
  rows = 0; merged = 0; known = 0; known_merged = 0
}
inline copy(to, from) {
  for (i : 0 .. 1) {
    to.number[i] = from.number[i]; to.next[i] = from.next[i]; to.digest[i] = from.digest[i];
    to.greatest[i] = from.greatest[i]; to.began[i] = from.began[i]
  }
  to.generation = from.generation; to.began_closed = from.began_closed; to.closed = from.closed;
  to.closed_digest = from.closed_digest; to.counted = from.counted; to.refused = from.refused;
  to.counted_added = from.counted_added; to.rows = from.rows; to.merged = from.merged;
  to.exposures = from.exposures; to.exposures_merged = from.exposures_merged;
  to.arm_a = from.arm_a; to.arm_b = from.arm_b; to.added = from.added
}
/* The events of a set that are before a time. */
inline before(events, to) {
  set = 0;
  for (e : 0 .. EVENTS - 1) { set = set | (HAS(events, e) && TIME(e) < to -> BIT(e) : 0) }
}
#define IS_READ (now.next[0] == RECORDS && now.next[1] == RECORDS)
#define SHUT_BEFORE(time) (time == 0 -> 0 : time + WINDOW) /* events before it are refused */

/* `check_generation`: the revision and the token, unless it is left out by name */
#define SAME_GENERATION(name) \
  (generation == now.generation || WITHOUT == name || \
   (WITHOUT == TOKEN_EQUAL && generation != 0 && now.generation != 0))

/* `Ledger.resolve`, `insert_head`, `Worker._begin` */
inline begin_at_head() {
  now.digest[p] = (now.number[p] == 0 -> went_back : now.digest[p]);
  now.number[p] = (now.number[p] == 0 -> 1 + (now.number[1 - p] == 1) : now.number[p]);
  role = COUNTS; number = now.number[p]; start = now.next[p]; end = start; digest = now.digest[p];
  closed = now.closed
}
inline assign(to) { p = to; generation = now.generation; begin_at_head() }
inline follow() { role = COUNTS; start = end; digest = went_back; rows = 0 }
/* `Worker._resume`: drop the delta, and read on from the head. (rows: how many are passed over.) */
inline resume() {
  if
  :: !SAME_GENERATION(REVISION_EQUAL) -> stop()
  :: else ->
    i = end; begin_at_head();
    end = (WITHOUT == SEEK_TO_HEAD && i > start -> i : start); rows = end - start
  fi
}
/* `Delta.add`, `PendingEvents.unfit`, `PendingEvents.too_late`: a delta's events */
inline read_delta() {
  good = 0; bad = 0; shut = 0; oldest = 15; newest = now.greatest[p];
  limit = (PENDING && newest < SHUT_BEFORE(closed) + LATENESS -> SHUT_BEFORE(closed) : 0);
  for (i : start + rows .. end - 1) {
    e = PLACE(p, i);
    if
    :: IS_BAD(e) -> bad = bad | BIT(e)
    :: !IS_BAD(e) && TIME(e) < limit -> shut = shut | BIT(e)
    :: !IS_BAD(e) && TIME(e) >= limit && PENDING && WITHOUT != LATE_REFUSED &&
       TIME(e) + LATENESS < newest -> bad = bad | BIT(e)
    :: else ->
      good = good | BIT(e);
      oldest = (TIME(e) < oldest -> TIME(e) : oldest);
      newest = (TIME(e) > newest -> TIME(e) : newest)
    fi
  }
}
/* `CountedStates.checked`, `PendingEvents.accumulate`: events are counted, or pending */
inline count(events) {
  assert(!(events & (now.counted | now.refused | now.rows | now.merged))); /* nothing twice */
  now.rows = now.rows | (PENDING -> events : 0);
  now.counted = now.counted | (PENDING -> 0 : events);
  now.counted_added = now.counted_added |
    (!PENDING && generation != 0 && generation == now.generation -> events : 0)
}
/* `write_delta`, with what it refuses */
inline write_events() {
  assert(!((bad | shut) & (now.counted | now.refused | now.rows | now.merged)));
  best = SHUT_BEFORE(now.closed); before(shut, best);
  assert(set == shut); /* nothing is refused as closed that is open */
  now.refused = now.refused | bad | shut; x = 0;
  for (e : 0 .. EVENTS - 1) { x = x | (KIND(e) == ADDED && generation == 0 -> BIT(e) : 0) }
  x = (WITHOUT == EXPOSURES_KEPT -> x : 0);
  now.counted = now.counted | (good & x); good = good & ~x;
  count(good)
}
/* `Ledger.commit`: `check_generation`, `refuse_closed`, `move_head` and `write_delta`, or Fenced */
inline commit() {
  if
  :: !SAME_GENERATION(REVISION_EQUAL) -> stop()
  :: else ->
    read_delta();
    q = (now.number[0] == number -> 0 : (now.number[1] == number -> 1 : 2));
    if
    :: q == 2 || !IF(HEAD_OF_LOG, q == p && now.digest[q % 2] == digest) ||
       !IF(HEAD_AT_START, now.next[q % 2] == start) ||
       !IF(CLOSED_AT_MOST, good == 0 || SHUT_BEFORE(now.closed) <= oldest) ||
       !IF(CLOSED_AT_LEAST, shut == 0 || now.closed >= closed) -> resume()
    :: else ->
      now.next[q] = end; now.digest[q] = went_back; now.greatest[q] = (PENDING -> newest : 0);
      if :: WITHOUT == ONE_COMMIT -> role = HALF :: else -> write_events(); follow() fi
    fi
  fi
}
/* `retry`, `DryRun.add`: the open entries are read again; those of closed times stay open */
inline read_entries() {
  best = SHUT_BEFORE(now.closed); before(now.refused, best); rows = now.refused & ~set;
  role = (rows != 0 -> RETRIED : IDLE); number = (rows != 0 -> now.number[0] : 0);
  generation = (rows != 0 -> now.generation : 0)
}
/* `DryRun.commits`, `write_shards`: what a retry counts of a log, where its metrics began before */
inline count_entries() {
  x = now.counted_added;
  count(rows);
  good = (BIT(RECORDS) - BIT(now.began[0])) | ((BIT(RECORDS) - BIT(now.began[1])) << RECORDS);
  now.counted_added = x | (now.counted_added & (WITHOUT == RETRY_ERA -> 63 : good));
  stop()
}
/* `write_retry`: the entries are marked, and their events written */
inline write_entries() {
  best = SHUT_BEFORE(now.closed); before(rows, best);
  if
  :: !SAME_GENERATION(RETRY_REVISION) || !IF(RETRY_OPEN, (now.refused & rows) == rows) ||
     now.number[0] != number || !IF(RETRY_NOT_CLOSED, set == 0) -> stop()
  :: else ->
    now.refused = now.refused & ~rows;
    if :: WITHOUT == ONE_RETRY -> role = HALF :: else -> count_entries() fi
  fi
}
/* `Closer.close`, `closing_heads`, `closable_ms`, `Closer._step`, `pending`: rows to read */
inline list_rows(passes) {
  x = now.greatest[0]; q = now.greatest[1];
  limit = ((x < q) != (passes || WITHOUT == ALL_PARTITIONS) -> x : q);
  i = LATENESS + (WITHOUT == WINDOW_IS_OVER -> 0 : WINDOW);
  limit = (limit > i -> limit - i : 0);
  limit = (IS_READ -> EVERYTHING : limit);
  if
  :: limit > now.closed ->
    role = LISTED; start = now.closed; end = limit; digest = now.closed_digest;
    generation = now.generation; known = (WITHOUT == KNOWN_AT_ONCE -> now.exposures : 0);
    known_merged = (WITHOUT == KNOWN_AT_ONCE -> now.exposures_merged : 0);
    before(now.rows, end + WINDOW); rows = set;
    before(now.merged, end + WINDOW); merged = set
  :: else fi
}
/* `ExposureClosing.close`, `states`, `known_states`: the rows are read, or one was merged: Fenced */
inline read_rows() {
  if
  :: (rows & ~now.rows) || (merged & ~now.merged) -> stop()
  :: else -> role = READ; known = (WITHOUT == KNOWN_AT_ONCE -> (known & now.exposures) | known_merged :
      now.exposures | now.exposures_merged); known_merged = 0
  fi
}
/* The arm of event e by the least exposure before it; of an impression: whether it has a click */
inline attribute(events, without) {
  best = 15; arm = 0; is_added = 0;
  for (x : 0 .. EVENTS - 1) {
    if
    :: HAS(events, x) && WINDOW > 0 ->
      arm = arm | (KIND(x) == ARM_A && TIME(x) >= TIME(e) && TIME(x) < TIME(e) + WINDOW)
    :: HAS(events, x) && WINDOW == 0 && (without == EXPOSED_BEFORE || TIME(x) <= TIME(e)) ->
      is_added = is_added | (KIND(x) == ADDED);
      if
      :: (KIND(x) == ARM_A || KIND(x) == ARM_B) && (arm == 0 ||
          (without == EXPOSED_FIRST -> TIME(x) > best :
           TIME(x) < best || (TIME(x) == best && KIND(x) < arm))) -> best = TIME(x); arm = KIND(x)
      :: else fi
    :: else fi
  }
}
/* `Closer._closed_part`, `ExposureClosing.close`, `JoinClosing.close`, `Entering.experiments` */
inline count_closed() {
  before(rows | merged, end); good = set; bad = 0;
  assert(!(good & now.counted));
  for (e : 0 .. EVENTS - 1) {
    x = (KIND(e) == ADDED -> generation != 0 : KIND(e) != OTHER && WINDOW == 0);
    bad = bad | (HAS(good, e) && x -> BIT(e) : 0)
  }
  shut = (WINDOW > 0 -> rows | merged : known | (WITHOUT == EXPOSURES_ENTER -> 0 : bad));
  for (e : 0 .. EVENTS - 1) {
    if
    :: HAS(good, e) && KIND(e) == OTHER ->
      attribute(shut, WITHOUT);
      now.arm_a = now.arm_a | (arm == ARM_A -> BIT(e) : 0);
      now.arm_b = now.arm_b | (arm == ARM_B -> BIT(e) : 0);
      now.added = now.added | (is_added -> BIT(e) : 0)
    :: else fi
  }
  now.counted = now.counted | good; now.exposures = now.exposures | bad;
  before(good, start); good = good & ~set;
  now.rows = now.rows & ~(good & rows); now.merged = now.merged & ~(good & merged);
  stop()
}
/* `write_closing`: `check_generation`, `move_head`, the rows as read, the results; or Fenced */
inline write_results() {
  before(now.rows, end + WINDOW); good = set; before(now.merged, end + WINDOW);
  if
  :: !SAME_GENERATION(CLOSING_REVISION) ||
     !IF(JOIN_STANDS, now.closed == start && now.closed_digest == digest) ||
     !IF(ROWS_AS_READ, good == rows && set == merged) -> stop() /* `Closer.look` */
  :: else ->
    assert(end > now.closed);
    now.closed = end; now.closed_digest = went_back;
    if :: WITHOUT == ONE_CLOSING -> role = HALF :: else -> count_closed() fi
  fi
}
/* `Compactor.plan`, `Compactor.merge`, `_exchange` */
inline exchange(from, into) {
  rows = (IF(ROWS_COUNTED, (from & rows) == rows) -> rows : 0);
  assert(!(into & rows));
  from = from & ~rows; into = into | rows;
  stop()
}
/* `Witness.compare`, `went_back`: the head is gone, before the known one, or of another history */
#define NEXT(w) now.next[PARTITION(w)]
#define IS_LOST(w) (WITHOUT != HEADS_COMPARED && (now.number[PARTITION(w)] == 0 || \
  NEXT(w) < START(w) || (NEXT(w) == START(w) && now.digest[PARTITION(w)] != DIGEST(w))))
#define HAS_READ_ALL(w) (ROLE(w) == COUNTS && START(w) == RECORDS && !IS_LOST(w))

/* What a sequential fold over the counted events gives, once all are read and all times closed. */
inline compare_results() {
  assert(WITHOUT != REACHED_END);
  assert((now.counted | now.refused) == BIT(EVENTS) - 1 && !(now.counted & now.refused));
  assert(!(now.rows | now.merged));
  good = 0;
  for (e : 0 .. EVENTS - 1) {
    newest = (e % RECORDS == 0 -> 0 : newest);
    if
    :: !IS_BAD(e) && (!PENDING || TIME(e) + LATENESS >= newest) ->
      assert(HAS(now.counted, e) || IDLES); newest = (TIME(e) > newest -> TIME(e) : newest)
    :: else -> assert(RETRIES || !HAS(now.counted, e)) /* bad, or late */
    fi;
    good = good | (HAS(now.counted, e) && (KIND(e) != ADDED ||
      (now.generation != 0 && TIME(e) >= now.began_closed)) -> BIT(e) : 0);
    assert(PENDING || HAS(now.counted_added, e) == (HAS(now.counted, e) && now.generation != 0 &&
      e % RECORDS >= now.began[e / RECORDS]))
  }
  for (e : 0 .. EVENTS - 1) {
    attribute(good, 0);
    assert(!PENDING || KIND(e) != OTHER || !HAS(now.counted, e) || (HAS(now.added, e) == is_added &&
      HAS(now.arm_a, e) == (arm == ARM_A) && HAS(now.arm_b, e) == (arm == ARM_B)))
  }
}

/* The actions of actor w; of equal actors, the last one acts for all. */
#define IS(w, what) (ROLE(w) == what && \
  (w == 2 || actor[w] != actor[(w + 1) % 3] || lists[w] != lists[(w + 1) % 3]))
#define DO(w, what, condition, action) \
  :: d_step { IS(w, what) && (condition) -> load(w); action; keep(w) }
#define ACTIONS(w) \
  DO(w, IDLE, true, assign(0))                              /* `Worker.on_assigned` */ \
  DO(w, IDLE, true, assign(1)) \
  DO(w, ROLE(w), ROLE(w) != IDLE, stop())                   /* `Worker.on_lost` */ \
  DO(w, COUNTS, END(w) < RECORDS, end++)                    /* `Worker.take` */ \
  DO(w, COUNTS, END(w) > START(w), commit())                /* `Worker._commit` */ \
  DO(w, COUNTS, IS_LOST(w), resume())                       /* `Worker._resume_at` */ \
  DO(w, IDLE, RETRIES && now.refused, read_entries()) \
  DO(w, RETRIED, true, write_entries()) \
  DO(w, IDLE, PENDING, list_rows(false)) \
  DO(w, IDLE, PENDING && IDLES, list_rows(true)) \
  DO(w, LISTED, true, read_rows()) \
  DO(w, READ, true, write_results()) \
  DO(w, IDLE, MERGES && now.rows, role = MERGES_PENDING; rows = now.rows) \
  DO(w, IDLE, MERGES && now.exposures, role = MERGES_EXPOSURES; rows = now.exposures) \
  DO(w, MERGES_PENDING, true, exchange(now.rows, now.merged)) \
  DO(w, MERGES_EXPOSURES, true, exchange(now.exposures, now.exposures_merged)) \
  DO(w, HALF, WITHOUT == ONE_COMMIT, read_delta(); write_events(); follow()) \
  DO(w, HALF, WITHOUT == ONE_RETRY, count_entries()) \
  DO(w, HALF, WITHOUT == ONE_CLOSING, count_closed())

active proctype protocol() {
  do
  ACTIONS(0)
  ACTIONS(1)
  ACTIONS(2)
  /* `Ledger.begin`: what is added counts from where the heads stand now */
  :: d_step { DEPLOYS && now.generation == 0 -> now.generation = 1 + went_back;
      now.began[0] = now.next[0]; now.began[1] = now.next[1]; now.began_closed = now.closed }
  :: d_step { GOES_BACK && !went_back -> copy(saved, now) }
  :: d_step { GOES_BACK && !went_back -> copy(now, saved); copy(saved, nothing); went_back = 1 }
  /* Nobody will read any more: nothing may be left. */
  :: d_step { HAS_READ_ALL(0) && HAS_READ_ALL(1) && HAS_READ_ALL(2) ->
      assert(NEXT(0) == RECORDS && NEXT(1) == RECORDS && NEXT(2) == RECORDS) }
  :: d_step { IS_READ && (!PENDING || now.closed == EVERYTHING) -> compare_results(); skip }
  od
}
