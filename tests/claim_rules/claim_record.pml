/* One key of a namespace, and the calls on it, for claim_world.pml and claim_live.pml. What a call
   does is not written here: claim_rows.pml is generated from claim_table.txt. A call is one step,
   as in the engine, where it is one compare-and-set.

   N owners; OWN: a bit for each that lives in the engine's process, the others are remote.
   LAPSE, STRICT, LIMIT (of attempts, 0: none): the policy. */

byte record;      /* absent at first */
byte rec_epoch;
byte rec_id;      /* claim_id: 0 none, i + 1 the one that owner i uses now, nobodys_id */
byte rec_home;    /* i + 1: owner i was granted it */
byte rec_print;
byte rec_tries;   /* attempts, counted where there is a limit */
byte rec_memo;    /* 1: a step has left a memo */
byte rec_value;   /* 1, 2: a result; 3, 4: a failure; 5: poison */
byte last_epoch;  /* what epochs are drawn from */
byte my_epoch[N]; /* what an owner believes */

#define nobodys_id 99
#define poison_value 5
#define by_hand 1
#define is_own(i) (((OWN) >> (i)) & 1)
#define is_open (record == record_held || record == record_over || record == record_closed || record == record_doubt)
#define is_finished_record (record != record_absent && record != record_vacant && !is_open)

/* What the rows look at. Hidden: set and used within one step, no part of the state. */
hidden byte d_id, d_print, d_sent, d_epoch, d_payload, d_owner;
hidden byte was, was_epoch, was_value; /* the record before the call */
#define d_record record
#define d_lapse LAPSE
#define d_strict STRICT
#define d_slides SLIDES
#define d_attempts (LIMIT == 0 -> attempts_none : (rec_tries >= LIMIT -> attempts_at : attempts_below))

#define d_memos (rec_memo != 0 -> memos_kept : memos_none)

#include "claim_rows.pml"

inline remember() {
  was = record;
  was_epoch = rec_epoch;
  was_value = rec_value
}

inline clear_record() {
  rec_epoch = 0;
  rec_id = 0;
  rec_home = 0;
  rec_print = 0;
  rec_tries = 0;
  rec_memo = 0;
  rec_value = 0
}

/* The record becomes what the row said; `value` is what a completion or a failure leaves. */
inline become(value) {
  if
  :: next == unchanged -> skip
  :: next == record_absent -> record = next; clear_record()
  :: next == record_vacant -> record = next; rec_id = 0; rec_home = 0; rec_print = 0
  :: next == record_poison -> record = next; rec_value = poison_value; rec_id = 0; rec_home = 0; rec_memo = 0
  :: next == record_doubt -> record = next; rec_id = 0
  :: next == record_done || next == record_failed ->
     record = next; rec_value = value; rec_id = 0; rec_home = 0; rec_memo = 0
  :: else -> record = next
  fi
}

/* Owner i takes an id that was never used. */
inline new_id(i) {
  if
  :: rec_id == i + 1 -> rec_id = nobodys_id
  :: else -> skip
  fi
}

inline ask(i, id, its_print, sent) {
  remember();
  d_id = (id == 0 -> id_none : (rec_id == id -> id_same : id_other));
  d_print = (rec_print == 0 -> print_unknown : (rec_print == its_print -> print_same : print_differs));
  d_sent = sent;
  rows_claim();
  become(rec_value); /* of done work it stays */
  if
  :: next == record_held ->
     if
     :: c_new_epoch -> last_epoch = last_epoch + 1; rec_epoch = last_epoch
     :: c_first_epoch -> rec_epoch = 1 /* no row of the table says so */
     :: else -> skip
     fi;
     rec_id = id;
     rec_home = i + 1;
     rec_print = its_print;
     rec_tries = (LIMIT == 0 -> 0 : rec_tries + 1)
  :: else -> skip
  fi
}

/* Before the rows of an owner call with payload p, which is 1 or 2. */
inline own_call(i, p) {
  remember();
  d_epoch = (my_epoch[i] == rec_epoch -> epoch_same :
             (my_epoch[i] < rec_epoch -> epoch_older : epoch_newer));
  d_payload = (rec_value == p || rec_value == p + 2 -> payload_same : payload_other)
}

inline session_ends(i) {
  if
  :: is_own(i) && rec_home == i + 1 && (record == record_held || record == record_over) ->
     record = record_closed
  :: else -> skip
  fi
}

inline engine_restarts() {
  remember();
  d_owner = (rec_home != 0 && is_own(rec_home - 1) -> owner_own : owner_remote);
  rows_restart();
  become(0);
  if
  :: c_above -> skip
  :: else -> last_epoch = rec_epoch /* no row of the table says so */
  fi
}
