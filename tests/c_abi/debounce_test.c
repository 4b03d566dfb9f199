/* Debounce after the last call. */
#include "check.h"

static int debounce(semel_claims* space, const char* payload, semel_int64 quiet_ms,
                    semel_debounce_call* call) {
  semel_debounce_terms terms;
  SEMEL_INIT(terms);
  terms.quiet_ms = quiet_ms;
  terms.max_wait_ms = 5000;
  return semel_debounce(space, TEXT("k"), payload, strlen(payload), &terms, call);
}

static int run_debounced(semel_claims* space, semel_debounce_turn* turn,
                         semel_claim_outcome* outcome) {
  semel_request request = request_for("k");
  return semel_debounce_run(space, &request, turn, outcome);
}

static int end_debounced(semel_claims* space, semel_uint64 epoch, int how,
                         semel_owner_outcome* owned) {
  return semel_debounce_end(space, TEXT("k"), epoch, how, owned);
}

/* A run when the calls have ended, with the latest payload; one that fails comes again. */
static void test_debounce_runs(semel_engine* engine, semel_claims* space) {
  semel_debounce_call call;
  semel_debounce_turn turn;
  semel_claim_outcome outcome;
  semel_owner_outcome owned;
  semel_uint64 first;
  SEMEL_INIT(call);
  SEMEL_INIT(turn);
  SEMEL_INIT(outcome);
  SEMEL_INIT(owned);
  CHECK_OK(run_debounced(space, &turn, &outcome));
  CHECK(turn.state == SEMEL_DEBOUNCE_IDLE && turn.epoch == 0 && turn.payload.data == NULL);
  CHECK(outcome.answer == SEMEL_UNANSWERED);
  CHECK_OK(debounce(space, "one", 1000, &call));
  CHECK(call.due_in_ms == 1000 && call.replaced == 0);
  CHECK_OK(semel_engine_advance(engine, 999));
  CHECK_OK(run_debounced(space, &turn, &outcome));
  CHECK(turn.state == SEMEL_DEBOUNCE_QUIET && turn.due_in_ms == 1 && turn.epoch == 0);
  CHECK_OK(debounce(space, "two", 1000, &call));
  CHECK(call.due_in_ms == 1000 && call.replaced == 1);
  CHECK_OK(semel_engine_advance(engine, 1000));
  CHECK_OK(run_debounced(space, &turn, &outcome));
  first = turn.epoch;
  CHECK(turn.state == SEMEL_DEBOUNCE_RUNNING && first != 0 && first == outcome.epoch);
  CHECK(HOLDS(turn.payload, "two") && HOLDS(turn.key, "{k}#run"));
  CHECK_OK(run_debounced(space, &turn, &outcome)); /* another runner */
  CHECK(turn.state == SEMEL_DEBOUNCE_RUNNING && turn.epoch == 0 && turn.payload.data == NULL);
  CHECK(outcome.answer == SEMEL_IN_FLIGHT);
  CHECK_OK(debounce(space, "", 1000, &call)); /* a call during the run */
  CHECK(call.replaced == 0);
  CHECK_OK(end_debounced(space, first, SEMEL_DEBOUNCE_AGAIN, &owned));
  CHECK(owned.answer == SEMEL_OWNER_OK && owned.late == 0);
  CHECK_OK(end_debounced(space, first, SEMEL_DEBOUNCE_DONE, &owned)); /* no run is left */
  CHECK(owned.answer != SEMEL_OWNER_OK);
  CHECK_OK(semel_engine_advance(engine, 1000));
  CHECK_OK(run_debounced(space, &turn, NULL));
  CHECK(turn.epoch > first && HOLDS(turn.payload, "")); /* not none */
  CHECK_OK(end_debounced(space, turn.epoch, SEMEL_DEBOUNCE_AGAIN, NULL));
  CHECK_OK(run_debounced(space, &turn, NULL));
  CHECK(turn.state == SEMEL_DEBOUNCE_QUIET && turn.due_in_ms == 1000);
  CHECK_OK(semel_engine_advance(engine, 1000));
  CHECK_OK(run_debounced(space, &turn, NULL));
  first = turn.epoch;
  CHECK_OK(semel_engine_advance(engine, 86400000)); /* its owner is silent */
  CHECK_OK(run_debounced(space, &turn, NULL));
  CHECK(turn.epoch > first && HOLDS(turn.payload, ""));
  CHECK_OK(end_debounced(space, first, SEMEL_DEBOUNCE_DONE, &owned));
  CHECK(owned.answer == SEMEL_OWNER_STALE || owned.answer == SEMEL_OWNER_NOT_OWNER);
  CHECK_OK(end_debounced(space, turn.epoch, SEMEL_DEBOUNCE_DONE, &owned));
  CHECK_OK(run_debounced(space, &turn, NULL));
  CHECK(turn.state == SEMEL_DEBOUNCE_IDLE && turn.epoch == 0);
  semel_buffer_free(&turn.payload);
  semel_buffer_free(&turn.key);
  semel_buffer_free(&outcome.owner);
  semel_buffer_free(&outcome.result);
  semel_buffer_free(&owned.result);
}

/* What is refused changes nothing. */
static void test_debounce_errors(semel_engine* engine, semel_claims* space) {
  static char huge[1048577];
  semel_debounce_terms terms;
  semel_debounce_turn turn;
  semel_claim_outcome outcome;
  semel_request request = request_for("k");
  SEMEL_INIT(terms);
  SEMEL_INIT(turn);
  SEMEL_INIT(outcome);
  CHECK(debounce(space, "x", 0, NULL) == SEMEL_BAD_OPTION);
  CHECK(debounce(space, "x", 5001, NULL) == SEMEL_BAD_OPTION); /* more than max_wait_ms */
  CHECK(debounce(NULL, "x", 1, NULL) == SEMEL_BAD_OPTION);
  CHECK(semel_debounce(space, TEXT("k"), TEXT("x"), NULL, NULL) == SEMEL_BAD_OPTION);
  terms.quiet_ms = 90000; /* more than a minute: so is the longest wait */
  CHECK_OK(semel_debounce(space, TEXT("long"), NULL, 0, &terms, NULL));
  CHECK(semel_debounce(space, NULL, 0, TEXT("x"), &terms, NULL) == SEMEL_KEY_EMPTY);
  CHECK(semel_debounce(space, NULL, 1, TEXT("x"), &terms, NULL) == SEMEL_BAD_OPTION);
  CHECK(semel_debounce(space, huge, 65537, TEXT("x"), &terms, NULL) == SEMEL_KEY_TOO_LONG);
  CHECK(semel_debounce(space, TEXT("k"), huge, 1048577, &terms, NULL) == SEMEL_VALUE_TOO_LONG);
  CHECK(semel_debounce(space, TEXT("k"), huge, 1048576, &terms, NULL) == SEMEL_VALUE_TOO_LONG);
  CHECK(strstr(semel_error_detail(), "1048576") != NULL);
  terms.keep_ms = -1;
  CHECK(semel_debounce(space, TEXT("k"), NULL, 0, &terms, NULL) == SEMEL_BAD_OPTION);
  CHECK(run_debounced(NULL, &turn, NULL) == SEMEL_BAD_OPTION);
  CHECK(run_debounced(space, NULL, NULL) == SEMEL_BAD_OPTION);
  CHECK(semel_debounce_run(space, NULL, &turn, &outcome) == SEMEL_KEY_EMPTY);
  CHECK(outcome.error == SEMEL_KEY_EMPTY && turn.state == SEMEL_UNANSWERED);
  request.wait_ms = 1;
  CHECK(semel_debounce_run(space, &request, &turn, NULL) == SEMEL_BAD_OPTION);
  request.wait_ms = 0;
  request.keep_lease = 1;
  CHECK(semel_debounce_run(space, &request, &turn, NULL) == SEMEL_BAD_OPTION);
  CHECK(end_debounced(space, 1, 0, NULL) == SEMEL_BAD_OPTION);
  CHECK(end_debounced(space, 1, 3, NULL) == SEMEL_BAD_OPTION);
  CHECK(end_debounced(NULL, 1, SEMEL_DEBOUNCE_DONE, NULL) == SEMEL_BAD_OPTION);
  CHECK_OK(semel_set(engine, TEXT("edits:{k}#last"), TEXT("else"), NULL, NULL));
  CHECK(debounce(space, "x", 1, NULL) == SEMEL_WRONG_TYPE);
  CHECK(run_debounced(space, &turn, NULL) == SEMEL_WRONG_TYPE);
  CHECK_OK(semel_del(engine, TEXT("edits:{k}#last"), NULL));
  CHECK_OK(semel_del(engine, TEXT("edits:{long}#last"), NULL));
}

static void test_debounce_list(semel_engine* engine, semel_claims* space) {
  semel_debounce_view views[2];
  semel_debounce_terms terms;
  size_t found = 7;
  SEMEL_INIT(views[0]);
  SEMEL_INIT(views[1]);
  SEMEL_INIT(terms);
  CHECK_OK(semel_debounces(space, views, 2, &found));
  CHECK(found == 0);
  terms.quiet_ms = 2000;
  CHECK_OK(semel_debounce(space, TEXT("later"), NULL, 0, &terms, NULL));
  terms.quiet_ms = 1000;
  CHECK_OK(semel_debounce(space, TEXT("first"), NULL, 0, &terms, NULL));
  CHECK_OK(semel_engine_advance(engine, 1000));
  CHECK_OK(semel_debounces(space, views, 2, &found));
  CHECK(found == 2 && HOLDS(views[0].key, "first") && views[0].state == SEMEL_DEBOUNCE_DUE);
  CHECK(HOLDS(views[1].key, "later") && views[1].due_in_ms == 1000);
  CHECK(views[1].state == SEMEL_DEBOUNCE_QUIET);
  CHECK_OK(semel_debounces(space, views, 1, &found));
  CHECK(found == 1 && HOLDS(views[0].key, "first"));
  CHECK(semel_debounces(space, views, 0, &found) == SEMEL_BAD_OPTION && found == 0);
  CHECK(semel_debounces(space, views, 10001, &found) == SEMEL_BAD_OPTION);
  CHECK(semel_debounces(space, NULL, 1, &found) == SEMEL_BAD_OPTION);
  views[1].size = 16;
  CHECK(semel_debounces(space, views, 2, &found) == SEMEL_BAD_OPTION);
  semel_buffer_free(&views[0].key);
  semel_buffer_free(&views[1].key);
}

void test_debounces(void) {
  semel_engine* engine = open_engine(NULL);
  semel_claims* space = open_claims(engine, "edits", "debounce");
  test_debounce_runs(engine, space);
  test_debounce_errors(engine, space);
  test_debounce_list(engine, space);
  CHECK_OK(semel_engine_close(engine));
}
