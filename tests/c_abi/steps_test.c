/* Steps, leases that are kept, the log of decisions, fingerprints of JSON. C89. */
#include "check.h"

static semel_uint64 grant(semel_claims* claims, const char* key, const char* json) {
  semel_request request = request_for(key);
  semel_claim_outcome outcome;
  SEMEL_INIT(outcome);
  if (json != NULL) CHECK_OK(semel_fingerprint_json(json, strlen(json), &request.fingerprint));
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_GRANTED);
  return outcome.epoch;
}

static void test_steps_of_claims(semel_engine* engine) {
  semel_claims* claims = open_claims(engine, "stepped", "call");
  semel_uint64 first = grant(claims, "k", NULL);
  semel_uint64 second;
  semel_buffer memo = {NULL, 0};
  semel_owner_call call;
  semel_owner_outcome outcome;
  CHECK_OK(semel_step_recall(claims, TEXT("k"), first, TEXT("charge"), &memo));
  CHECK(memo.data == NULL);
  CHECK_OK(semel_step_remember(claims, TEXT("k"), first, TEXT("charge"), TEXT("receipt")));
  CHECK_OK(semel_step_recall(claims, TEXT("k"), first, TEXT("charge"), &memo));
  CHECK(HOLDS(memo, "receipt"));
  CHECK_OK(semel_engine_advance(engine, 60000)); /* the owner has gone silent */
  second = grant(claims, "k", NULL);
  CHECK(second > first);
  /* once-again-1: with a memo and without one, and before another has the claim. */
  CHECK(semel_step_recall(claims, TEXT("k"), first, TEXT("charge"), &memo) == SEMEL_NOT_OWNER);
  CHECK(semel_step_recall(claims, TEXT("k"), first, TEXT("mail"), &memo) == SEMEL_NOT_OWNER);
  CHECK(semel_step_recall(claims, TEXT("k"), 0, TEXT("charge"), &memo) == SEMEL_NOT_OWNER);
  CHECK(semel_step_remember(claims, TEXT("k"), first, TEXT("mail"), TEXT("x")) == SEMEL_NOT_OWNER);
  CHECK_OK(semel_step_recall(claims, TEXT("k"), second, TEXT("charge"), &memo));
  CHECK(HOLDS(memo, "receipt"));
  SEMEL_INIT(outcome);
  call = owner_call_for("k", first, "late");
  CHECK_OK(semel_steps_complete(claims, &call, &outcome));
  CHECK(outcome.answer == SEMEL_OWNER_STALE);
  CHECK_OK(semel_step_recall(claims, TEXT("k"), second, TEXT("charge"), &memo));
  CHECK(HOLDS(memo, "receipt")); /* a stale owner takes no memo away */
  call = owner_call_for("k", second, "done");
  CHECK_OK(semel_steps_complete(claims, &call, &outcome));
  CHECK(outcome.answer == SEMEL_OWNER_OK);
  CHECK(semel_step_recall(claims, TEXT("k"), second, TEXT("charge"), &memo) == SEMEL_NOT_OWNER);
  CHECK(semel_step_remember(claims, TEXT("k"), second, TEXT("mail"), TEXT("x")) == SEMEL_NOT_OWNER);
  semel_buffer_free(&memo);
  semel_buffer_free(&outcome.result);
}

/* once-again-2: a doubt that is released after a day goes on; once-again-3: what is completed or
 * forgotten is not remembered by the next work under its key. */
static void test_life_of_memos(semel_engine* engine) {
  semel_claims* claims = open_claims(engine, "life", "call");
  semel_buffer memo = {NULL, 0};
  semel_owner_call call;
  semel_owner_outcome outcome;
  semel_uint64 epoch = grant(claims, "k", NULL);
  int found = 0;
  int end;
  SEMEL_INIT(outcome);
  CHECK_OK(semel_step_remember(claims, TEXT("k"), epoch, TEXT("s"), TEXT("first")));
  call = owner_call_for("k", epoch, "");
  call.on_failure = 3; /* in doubt */
  CHECK_OK(semel_fail(claims, &call, &outcome));
  CHECK_OK(semel_engine_advance(engine, 25 * 3600 * 1000));
  CHECK_OK(semel_resolve(claims, TEXT("k"), SEMEL_RESOLVE_RELEASED, NULL, 0, &found));
  CHECK(found);
  epoch = grant(claims, "k", NULL);
  CHECK_OK(semel_step_recall(claims, TEXT("k"), epoch, TEXT("s"), &memo));
  CHECK(HOLDS(memo, "first"));
  for (end = 0; end < 2; ++end) {
    if (end == 0) {
      CHECK_OK(semel_resolve(claims, TEXT("k"), SEMEL_RESOLVE_FORGOTTEN, NULL, 0, &found));
    } else {
      CHECK_OK(semel_step_remember(claims, TEXT("k"), epoch, TEXT("s"), TEXT("first")));
      call = owner_call_for("k", epoch, "");
      CHECK_OK(semel_complete(claims, &call, &outcome));
      CHECK_OK(semel_engine_advance(engine, 24 * 3600 * 1000));
    }
    epoch = grant(claims, "k", NULL);
    CHECK_OK(semel_step_recall(claims, TEXT("k"), epoch, TEXT("s"), &memo));
    CHECK(memo.data == NULL);
  }
  semel_buffer_free(&outcome.result);
}

/* Work without a claim: its memos are there for it, and end with it. */
static void test_steps_of_unguarded_runs(semel_engine* engine) {
  semel_claims* claims = open_claims(engine, "bare", "message");
  int attempt;
  for (attempt = 0; attempt < 2; ++attempt) {
    semel_request request = request_for("");
    semel_consumed consumed;
    semel_buffer memo = {NULL, 0};
    const semel_work* work;
    semel_run* run;
    SEMEL_INIT(consumed);
    request.without_key = 1;
    CHECK_OK(semel_consume_begin(claims, &request, &work, &run));
    CHECK(work != NULL && work->epoch == 0);
    CHECK_OK(semel_run_recall(run, TEXT("s"), &memo));
    CHECK(memo.data == NULL);
    CHECK_OK(semel_run_remember(run, TEXT("s"), TEXT("memo")));
    CHECK_OK(semel_run_recall(run, TEXT("s"), &memo));
    CHECK(HOLDS(memo, "memo"));
    CHECK(semel_run_recall(run, TEXT(""), &memo) == SEMEL_BAD_OPTION);
    CHECK_OK(semel_consume_end(run, SEMEL_WORK_DONE, NULL, 0, &consumed));
    CHECK(consumed.unguarded && consumed.verdict == SEMEL_ACK);
    semel_buffer_free(&memo);
    semel_buffer_free(&consumed.failure);
  }
}

static void test_bad_steps(semel_engine* engine) {
  semel_claims* claims = open_claims(engine, "stepped", "call");
  semel_uint64 epoch = grant(claims, "bad", NULL);
  semel_buffer memo = {NULL, 0};
  CHECK(semel_step_recall(NULL, TEXT("bad"), epoch, TEXT("s"), &memo) == SEMEL_BAD_OPTION);
  CHECK(semel_step_recall(claims, TEXT("bad"), epoch, TEXT("s"), NULL) == SEMEL_BAD_OPTION);
  CHECK(semel_step_recall(claims, NULL, 0, epoch, TEXT("s"), &memo) == SEMEL_KEY_EMPTY);
  CHECK(semel_step_recall(claims, NULL, 3, epoch, TEXT("s"), &memo) == SEMEL_BAD_OPTION);
  CHECK(semel_step_recall(claims, TEXT("bad"), epoch, NULL, 1, &memo) == SEMEL_BAD_OPTION);
  CHECK(semel_step_recall(claims, TEXT("bad"), epoch, "s", 65537, &memo) == SEMEL_KEY_TOO_LONG);
  CHECK(semel_step_recall(claims, TEXT("bad"), epoch, NULL, 0, &memo) == SEMEL_BAD_OPTION);
  CHECK(semel_step_remember(claims, TEXT("bad"), epoch, NULL, 0, NULL, 0) == SEMEL_BAD_OPTION);
  CHECK_OK(semel_step_remember(claims, TEXT("bad"), epoch, TEXT("\0s"), NULL, 0));
  CHECK(semel_step_remember(claims, TEXT("bad"), epoch, TEXT("s"), "", 1048577) ==
        SEMEL_VALUE_TOO_LONG);
  CHECK_OK(semel_step_remember(claims, TEXT("bad"), epoch, TEXT("s"), NULL, 0));
  CHECK_OK(semel_step_recall(claims, TEXT("bad"), epoch, TEXT("s"), &memo));
  CHECK(HOLDS(memo, ""));
  semel_buffer_free(&memo);
}

/* A run that fails keeps its memos for the next attempt; one that is done does not. */
static void test_steps_of_runs(semel_engine* engine) {
  semel_claims* claims = open_claims(engine, "stepped", "call");
  semel_buffer memo = {NULL, 0};
  int attempt;
  for (attempt = 1; attempt <= 3; ++attempt) {
    semel_request request = request_for("run");
    semel_once_outcome outcome;
    semel_wait* wait;
    const semel_work* work;
    semel_run* run;
    SEMEL_INIT(outcome);
    CHECK_OK(semel_wait_begin(claims, &request, -1, &wait));
    CHECK_OK(semel_once_begin(wait, &work, &run));
    if (attempt == 3) { /* replayed: there is no work */
      CHECK(semel_run_recall(run, TEXT("s"), &memo) == SEMEL_BAD_OPTION);
      CHECK(semel_run_remember(run, TEXT("s"), TEXT("x")) == SEMEL_BAD_OPTION);
    } else {
      CHECK_OK(semel_run_recall(run, TEXT("s"), &memo));
      CHECK(attempt == 1 ? memo.data == NULL : HOLDS(memo, "memo"));
      CHECK_OK(semel_run_remember(run, TEXT("s"), TEXT("memo")));
    }
    CHECK_OK(semel_once_end(run, attempt == 1 ? SEMEL_WORK_FAILED : SEMEL_WORK_DONE, NULL, 0,
                            &outcome));
    semel_buffer_free(&outcome.value);
    semel_buffer_free(&outcome.failure);
  }
  CHECK(semel_step_recall(claims, TEXT("run"), 0, TEXT("s"), &memo) == SEMEL_NOT_OWNER);
  semel_buffer_free(&memo);
  CHECK(semel_run_recall(NULL, TEXT("s"), &memo) == SEMEL_BAD_OPTION);
}

static void test_keepers(semel_engine* engine) {
  semel_claims* claims = open_claims(engine, "kept", "call");
  semel_uint64 epoch = grant(claims, "k", NULL);
  semel_keeper* keeper;
  semel_owner_call call = owner_call_for("k", epoch, "");
  semel_owner_outcome outcome;
  int lost = 1;
  CHECK(semel_keep_begin(claims, TEXT("k"), epoch, 1, &keeper) == SEMEL_BAD_OPTION);
  CHECK(keeper == NULL);
  CHECK(semel_keep_begin(claims, NULL, 0, epoch, 0, &keeper) == SEMEL_KEY_EMPTY);
  CHECK(semel_keep_begin(NULL, TEXT("k"), epoch, 0, &keeper) == SEMEL_BAD_OPTION);
  CHECK(semel_keep_begin(claims, TEXT("k"), epoch, 0, &keeper) == SEMEL_BAD_OPTION);
  CHECK_OK(semel_keep_begin(claims, TEXT("k"), epoch, SEMEL_TTL_POLICY, &keeper));
  CHECK_OK(semel_keep_lost(keeper, &lost));
  CHECK(lost == 0);
  CHECK(semel_keep_lost(NULL, &lost) == SEMEL_BAD_OPTION);
  SEMEL_INIT(outcome);
  CHECK_OK(semel_complete(claims, &call, &outcome));
  semel_keep_end(keeper);
  semel_keep_end(NULL);
}

static void test_decisions(void) {
  semel_options options;
  semel_engine* engine;
  semel_claims* claims;
  semel_uint64 epoch;
  semel_request request;
  semel_claim_outcome outcome;
  semel_decision decisions[8];
  size_t found = 7;
  size_t i;
  for (i = 0; i < 8; ++i) SEMEL_INIT(decisions[i]);
  engine = open_engine(NULL);
  claims = open_claims(engine, "told", "call");
  CHECK(semel_explain(claims, TEXT("k"), decisions, 8, &found) == SEMEL_BAD_OPTION); /* no log */
  CHECK(found == 0);
  CHECK_OK(semel_engine_close(engine));
  SEMEL_INIT(options);
  options.manual_clock = 1;
  options.decision_log_bytes = 65536;
  CHECK_OK(semel_engine_open(&options, &engine));
  claims = open_claims(engine, "told", "call");
  epoch = grant(claims, "k", NULL);
  request = request_for("k");
  SEMEL_INIT(outcome);
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_IN_FLIGHT);
  CHECK_OK(semel_explain(claims, TEXT("k"), decisions, 8, &found));
  CHECK(found == 2);
  CHECK(HOLDS(decisions[0].outcome, "granted"));
  CHECK(decisions[0].call == SEMEL_DECIDED_CLAIM && decisions[0].epoch == epoch);
  CHECK(HOLDS(decisions[1].outcome, "in_flight"));
  CHECK(decisions[1].seen == SEMEL_STATE_HELD && decisions[1].seen_epoch == epoch);
  CHECK(decisions[1].why.length > 0);
  CHECK_OK(semel_explain(claims, TEXT("k"), decisions, 1, &found)); /* frees and fills again */
  CHECK(found == 1 && HOLDS(decisions[0].outcome, "in_flight"));
  CHECK(semel_explain(claims, TEXT("k"), decisions, 0, &found) == SEMEL_BAD_OPTION);
  CHECK(semel_explain(claims, TEXT("k"), decisions, 9, &found) == SEMEL_BAD_OPTION);
  CHECK(semel_explain(claims, NULL, 0, decisions, 8, &found) == SEMEL_KEY_EMPTY);
  decisions[1].size += 8;
  CHECK(semel_explain(claims, TEXT("k"), decisions, 2, &found) == SEMEL_BAD_OPTION);
  for (i = 0; i < 2; ++i) {
    semel_buffer_free(&decisions[i].outcome);
    semel_buffer_free(&decisions[i].owner);
    semel_buffer_free(&decisions[i].seen_owner);
    semel_buffer_free(&decisions[i].why);
  }
  semel_buffer_free(&outcome.owner);
  CHECK_OK(semel_engine_close(engine));
}

static void test_json(semel_engine* engine) {
  semel_claims* claims = open_claims(engine, "json", "call");
  semel_request request = request_for("k");
  semel_claim_outcome outcome;
  semel_fingerprint print;
  SEMEL_INIT(outcome);
  CHECK(grant(claims, "k", "{\"a\":1,\"b\":[2]}") != 0);
  CHECK_OK(semel_fingerprint_json(TEXT(" {\"b\":[2.0], \"a\":1e0}"), &request.fingerprint));
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_IN_FLIGHT);
  CHECK_OK(semel_fingerprint_json(TEXT("{\"a\":2,\"b\":[2]}"), &request.fingerprint));
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_MISMATCH);
  CHECK(semel_fingerprint_json(TEXT("{\"a\":"), &print) == SEMEL_SYNTAX);
  CHECK(semel_fingerprint_json(TEXT("{\"a\":1,\"a\":1}"), &print) == SEMEL_SYNTAX);
  CHECK(semel_fingerprint_json(NULL, 1, &print) == SEMEL_BAD_OPTION);
  CHECK(semel_fingerprint_json(TEXT("1"), NULL) == SEMEL_BAD_OPTION);
  semel_buffer_free(&outcome.owner);
}

void test_steps(void) {
  semel_engine* engine = open_engine(NULL);
  semel_fingerprint print;
  test_steps_of_claims(engine);
  test_life_of_memos(engine);
  test_steps_of_unguarded_runs(engine);
  test_bad_steps(engine);
  test_keepers(engine);
  if (semel_fingerprint_json(TEXT("1"), &print) == SEMEL_REFUSED) {
    printf("c_abi: skipped: fingerprints of JSON, the library was built without Boost\n");
  } else {
    test_json(engine);
  }
  test_steps_of_runs(engine);
  CHECK_OK(semel_engine_close(engine));
  test_decisions();
}
