/* Liveness: owners that keep trying. Each asks until it is granted or the work is done, runs, and
   completes until it is answered. At most CRASHES of them die (or the engine does, with all that
   live in it), LOST replies are lost, FAILURES runs fail, and LAPSES leases end while their owners
   live; a lease of somebody who is gone ends in time. Then the work becomes done, and all hear it. */

#include "claim_record.pml"

byte crashes;
byte lost;
byte failures;
byte lapses;
bit gone;        /* the holder of the claim on record will not call again */
byte at_end;     /* owners who know that the work is done */
byte state[N];
#define asking 0
#define running 1
#define completing 2
#define at_rest 3

inline drops(i) {
  if
  :: is_open && rec_home == i + 1 -> gone = 1
  :: else -> skip
  fi;
  new_id(i);
  my_epoch[i] = 0;
  state[i] = asking
}

inline asks(i, heard) {
  ask(i, i + 1, 1, sent_none);
  gone = (answer == answer_granted -> 0 : gone);
  if
  :: !heard -> lost = lost + 1
  :: heard && (answer == answer_granted || answer == answer_regranted) ->
     my_epoch[i] = rec_epoch;
     state[i] = running
  :: heard && answer == answer_replay -> at_end = at_end + 1; state[i] = at_rest
  :: else -> skip
  fi
}

inline completes(i, heard) {
  own_call(i, 1);
  rows_complete();
  become(1);
  if
  :: !heard -> lost = lost + 1
  :: heard && answer == answer_ok ->
     assert(record == record_done);
     at_end = at_end + 1;
     state[i] = at_rest
  :: heard && answer != answer_ok -> drops(i)
  fi
}

proctype owner(byte me) {
  do
  :: d_step { state[me] == asking -> asks(me, 1) }
  :: d_step { state[me] == asking && lost < LOST -> asks(me, 0) }
  :: d_step { state[me] == running -> state[me] = completing }
  :: d_step { state[me] == running && failures < FAILURES ->
       failures = failures + 1;
       own_call(me, 1);
       rows_fail_release();
       become(0);
       drops(me) }
  :: d_step { state[me] == completing -> completes(me, 1) }
  :: d_step { state[me] == completing && lost < LOST -> completes(me, 0) }
  :: d_step { state[me] != at_rest && crashes < CRASHES ->
       crashes = crashes + 1;
       drops(me);
       session_ends(me) }
  :: state[me] == at_rest -> break
  od
}

/* It can always be the turn of this process while the lease of an owner that is gone runs. */
proctype lease_of_the_gone() {
end:
  do
  :: d_step { record == record_held && gone -> record = record_over }
  od
}

proctype misfortune() {
end:
  do
  :: d_step { record == record_held && lapses < LAPSES -> lapses = lapses + 1; record = record_over }
  :: d_step { crashes < CRASHES ->
       crashes = crashes + 1;
       if
       :: is_own(0) && state[0] != at_rest -> drops(0)
       :: else -> skip
       fi;
       if
       :: is_own(1) && state[1] != at_rest -> drops(1)
       :: else -> skip
       fi;
#if N > 2
       if
       :: is_own(2) && state[2] != at_rest -> drops(2)
       :: else -> skip
       fi;
#endif
       engine_restarts() }
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
    run lease_of_the_gone();
    run misfortune()
  }
}

ltl all_hear { <> (at_end == N) }
