/* Safety: owners that may do anything at any time, with any epoch that they once got, and
   assertions on what they are answered. They ask with an old, a new or no claim_id, lose replies,
   complete early, late, twice and with another result, die and come back without memory. The clock
   ends leases, results and records at any moment; an operator resolves and forgets; the engine ends
   and begins again. GRANTS bounds how often the key is granted, and with it all there is.

   MIX: the last owner's payload differs. WINDOW: what is asked after the record's end was first
   sent before the window (and no operator forgets the record). ONLY_SINK: only the
   guarded resource asserts anything. MEMOS: owners run a step, whose effect must not be there twice
   while the work is not over. */

#include "claim_record.pml"

/* Ghosts: what an omniscient observer has noted. They change no behaviour. */
byte grants;            /* so far: the true order of owners */
byte rec_grant;         /* which of them is on record */
byte my_grant[N];
byte top_epoch;
byte lease_owner;       /* i + 1: whose lease runs */
byte lease_epoch;
byte end_epoch;         /* the work is finished: by whom, and how (a value of rec_value) */
byte end_value;
bit in_doubt_run;       /* granted, and neither finished, given back nor resolved */
bit said_doubt;         /* its owner does not know, and no operator has resolved that */
bit charged;            /* the step's effect is there */
hidden byte runs_before;
byte runs;              /* grants since the work was begun anew, where there is a limit */
bit was_done;
byte sink_epoch;        /* what the guarded thing has accepted */
byte sink_grant;

#ifdef ONLY_SINK
#define must(x) skip
#else
#define must(x) assert(x)
#endif
#ifdef MIX
#define print_of(i) (i == N - 1 -> 2 : 1)
#else
#define print_of(i) 1
#endif
#ifdef WINDOW
#define sent_of (was_done -> sent_old : sent_inside)
#else
#define sent_of sent_none
#endif

inline lease_ends() {
  lease_owner = 0;
  lease_epoch = 0
}

inline work_begins_anew() {
  lease_ends();
  end_epoch = 0;
  end_value = 0;
  in_doubt_run = 0;
  said_doubt = 0;
  runs = 0;
  rec_grant = 0
}

inline finished(epoch, value) {
  lease_ends();
  charged = 0;
  end_epoch = epoch;
  end_value = value;
  in_doubt_run = 0;
  said_doubt = 0;
  runs = 0;
  was_done = (value <= 2 -> 1 : was_done)
}

/* Holds after every step. */
inline check() {
  /* What is finished stays as it is, until its end or an operator's forget. */
  must(end_epoch == 0 || (is_finished_record && rec_epoch == end_epoch && rec_value == end_value));
  must(end_epoch == 0 || end_value > 2 ||
         record == record_done || record == record_spent || record == record_digest);
  must(end_epoch != 0 || !is_finished_record);
  /* A running lease has no other holder. */
  must(lease_owner == 0 || (record == record_held && rec_epoch == lease_epoch))
}

inline claim(i, id, heard) {
  ask(i, id, print_of(i), sent_of);
  if
  :: answer == answer_granted ->
     must(rec_epoch > top_epoch); /* so no two grants have one epoch, ever */
     must(lease_owner == 0);      /* at most one owner's lease runs */
     must(!end_epoch);            /* what is finished is not begun again */
     must(LAPSE != lapse_in_doubt || !in_doubt_run);
     must(!said_doubt);           /* nor what its owner is in doubt about */
#ifdef WINDOW
     must(!was_done); /* a duplicate after the end of the record is not a second run */
#endif
     top_epoch = rec_epoch;
     lease_owner = i + 1;
     lease_epoch = rec_epoch;
     grants = grants + 1;
     rec_grant = grants;
     in_doubt_run = (LAPSE == lapse_in_doubt -> 1 : 0);
     runs = (LIMIT == 0 -> 0 : runs + 1);
     must(LIMIT == 0 || runs <= LIMIT)
  :: answer == answer_regranted ->
     must(lease_owner == i + 1 && lease_epoch == rec_epoch)
  :: answer == answer_replay ->
     must(end_value == 1 || end_value == 2);
     must(rec_print == print_of(i)) /* another payload is never answered with this result */
  :: answer == answer_kept_failure && next == record_poison ->
     must(lease_owner == 0 && runs == LIMIT);
     finished(rec_epoch, poison_value)
  :: else -> must(answer == answer_kept_failure || next == unchanged)
  fi;
  if
  :: heard && (answer == answer_granted || answer == answer_regranted) ->
     my_epoch[i] = rec_epoch;
     my_grant[i] = rec_grant
  :: else -> skip
  fi;
  check()
}

/* A caller that is not the owner on record changes nothing. */
inline nothing_of_others(i) {
  must(my_grant[i] == rec_grant && my_epoch[i] == was_epoch && was != record_absent ||
         record == was && rec_epoch == was_epoch && rec_value == was_value)
}

inline complete(i, p) {
  own_call(i, p);
  rows_complete();
  become(p);
  nothing_of_others(i);
  /* Asked again with the same result it is ok, and for no other caller. */
  must(!(end_epoch == my_epoch[i] && end_value == p) || answer == answer_ok);
  if
  :: answer == answer_ok && end_epoch != 0 ->
     must(end_epoch == my_epoch[i] && end_value == p)
  :: answer == answer_ok && end_epoch == 0 ->
     must(next == record_done);
     must(STRICT == strict_no || lease_owner == i + 1 && lease_epoch == my_epoch[i]);
     must(f_late == (lease_owner == 0));
     finished(my_epoch[i], p)
  :: else -> skip
  fi;
  check()
}

inline fail_answered(i, p) {
  nothing_of_others(i);
  if
  :: answer == answer_ok && end_epoch != 0 ->
     must(end_epoch == my_epoch[i] && end_value == p + 2)
  :: answer == answer_ok && next == record_failed -> finished(my_epoch[i], p + 2)
  :: answer == answer_ok && next != record_failed ->
     lease_ends();
     in_doubt_run = 0;
     said_doubt = 0;
     rec_grant = 0 /* but runs are counted on: a failure is no new beginning */
  :: else -> skip
  fi;
  check()
}

inline doubt_answered(i) {
  nothing_of_others(i);
  if
  :: answer == answer_ok && next == record_doubt -> lease_ends(); said_doubt = 1
  :: else -> skip
  fi;
  check()
}

inline release(i) {
  own_call(i, 1);
  rows_release();
  if
  :: next == record_vacant -> rec_tries-- /* it was not tried */
  :: else -> skip
  fi;
  become(0);
  nothing_of_others(i);
  if
  :: answer == answer_ok ->
     must(end_epoch == 0);
     runs_before = (next == record_vacant -> runs - 1 : 0); /* those before it are counted on */
     work_begins_anew();
     runs = runs_before
  :: else -> skip
  fi;
  check()
}

inline renew(i) {
  own_call(i, 1);
  rows_renew();
  become(0);
  nothing_of_others(i);
  /* Ok means that the lease still ran. */
  must(answer != answer_ok || lease_owner == i + 1 && lease_epoch == my_epoch[i]);
  check()
}

/* A step of owner i: its effect and its memo, as no crash comes between them here. */
inline run_step(i) {
  own_call(i, 1);
  rows_recall();
  must((answer == answer_ok) == (lease_owner == i + 1 && lease_epoch == my_epoch[i]));
  if
  :: answer == answer_ok && !c_memo ->
     must(!charged);
     charged = 1;
     rows_remember();
     must(answer == answer_ok && next == record_held);
     become(0);
     rec_memo = 1
  :: answer == answer_ok && c_memo -> must(charged)
  :: else -> rows_remember(); must(answer == answer_not_owner && next == unchanged)
  fi;
  check()
}

/* The guarded thing refuses epochs below the greatest it has seen. */
inline effect(i) {
  if
  :: my_epoch[i] >= sink_epoch ->
     assert(my_grant[i] >= sink_grant); /* nothing of an owner lands behind its successor's */
     sink_epoch = my_epoch[i];
     sink_grant = my_grant[i]
  :: else -> assert(my_grant[i] < sink_grant) /* and the newest owner is never refused */
  fi
}

inline dies(i) {
  my_epoch[i] = 0;
  my_grant[i] = 0;
  new_id(i)
}

proctype owner(byte me) {
  do
  :: d_step { grants < GRANTS -> claim(me, 0, 1) }
  :: d_step { grants < GRANTS -> claim(me, 0, 0) }
  :: d_step { grants < GRANTS -> claim(me, me + 1, 1) }
  :: d_step { grants < GRANTS -> claim(me, me + 1, 0) }
  :: d_step { rec_id == me + 1 -> new_id(me) }
  :: d_step { my_epoch[me] != 0 -> complete(me, 1) }
  :: d_step { my_epoch[me] != 0 -> complete(me, 2) }
  :: d_step { my_epoch[me] != 0 -> own_call(me, 1); rows_fail_keep(); become(3); fail_answered(me, 1) }
  :: d_step { my_epoch[me] != 0 -> own_call(me, 2); rows_fail_keep(); become(4); fail_answered(me, 2) }
  :: d_step { my_epoch[me] != 0 -> own_call(me, 1); rows_fail_release(); become(0); fail_answered(me, 1) }
  :: d_step { my_epoch[me] != 0 -> own_call(me, 1); rows_fail_doubt(); become(0); doubt_answered(me) }
  :: d_step { my_epoch[me] != 0 -> renew(me) }
  :: d_step { my_epoch[me] != 0 -> release(me) }
  :: d_step { my_epoch[me] != 0 -> effect(me) }
#ifdef MEMOS
  :: d_step { my_epoch[me] != 0 -> run_step(me) }
#endif
  :: d_step { my_epoch[me] != 0 || rec_home == me + 1 ->
       dies(me);
       if
       :: is_own(me) && lease_owner == me + 1 -> lease_ends()
       :: else -> skip
       fi;
       session_ends(me);
       check() }
  od
}

proctype clock() {
  do
  :: d_step { record == record_held -> record = record_over; lease_ends(); check() }
  :: d_step { record == record_done -> record = record_spent; check() }
  :: d_step { true -> rows_wheel(); become(rec_value); check() }
  :: d_step { record != record_held ->
       remember();
       rows_end();
       become(0);
       if
       :: next == record_absent -> rec_grant = 0; end_epoch = 0; end_value = 0; runs = 0; charged = 0
       :: else -> skip
       fi;
       check() }
  od
}

proctype operator() {
  do
#ifndef WINDOW
  :: d_step { true -> rows_forget(); become(0); work_begins_anew(); charged = 0; check() }
#endif
  :: d_step { true ->
       rows_resolve_done();
       become(by_hand);
       if
       :: answer == answer_found -> finished(rec_epoch, by_hand)
       :: else -> skip
       fi;
       check() }
  :: d_step { true ->
       rows_resolve_released();
       become(0);
       if
       :: answer == answer_found -> work_begins_anew()
       :: else -> skip
       fi;
       check() }
  od
}

hidden byte k;
proctype engine() {
  do
  :: d_step { true ->
       k = 0;
       do
       :: k < N ->
          if
          :: is_own(k) -> dies(k)
          :: else -> skip
          fi;
          k = k + 1
       :: else -> break
       od;
       engine_restarts();
       if
       :: record == record_held -> lease_owner = rec_home; lease_epoch = rec_epoch
       :: else -> lease_ends()
       fi;
       check() }
  od
}

init {
  atomic {
#ifdef COUNT
    c_code { atexit(tell_used); };
#endif
    run owner(0);
    run owner(1);
#if N > 2
    run owner(2);
#endif
    run clock();
    run operator();
    run engine()
  }
}
