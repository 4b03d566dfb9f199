/* semel_once, semel_consume_once, locks, and what a restart brings back. C89. */
#include "check.h"

/* A function that counts its runs, and does in each what the test wants. */
typedef struct job {
  int runs;
  int returns;
  const char* says;
  semel_engine* engine;
  semel_int64 takes_ms;
  semel_claims* claims; /* not NULL: another asks meanwhile */
  int inner_answer;
  semel_work seen;
} job;

static int run_job(void* context, const semel_work* work, semel_out* out) {
  job* mine = (job*)context;
  ++mine->runs;
  mine->seen = *work;
  if (mine->takes_ms > 0) CHECK_OK(semel_engine_advance(mine->engine, mine->takes_ms));
  if (mine->claims != NULL) {
    semel_request request = request_for("k");
    semel_once_outcome inner;
    job other;
    SEMEL_INIT(inner);
    memset(&other, 0, sizeof other);
    other.says = "newer";
    other.returns = SEMEL_WORK_DONE;
    CHECK_OK(semel_once(mine->claims, &request, run_job, &other, &inner));
    mine->inner_answer = inner.answer;
    semel_buffer_free(&inner.value);
  }
  CHECK_OK(semel_out_write(out, mine->says, strlen(mine->says)));
  CHECK_OK(semel_out_write(out, NULL, 0));
  CHECK(semel_out_write(out, NULL, 1) == SEMEL_BAD_OPTION);
  return mine->returns;
}

static job new_job(int returns, const char* says) {
  job made;
  memset(&made, 0, sizeof made);
  made.returns = returns;
  made.says = says;
  return made;
}

static void test_once(semel_engine* engine) {
  semel_claims* calls = open_claims(engine, "calls", "call");
  semel_request request = request_for("k");
  semel_once_outcome outcome;
  job pays = new_job(SEMEL_WORK_DONE, "paid");
  SEMEL_INIT(outcome);
  CHECK_OK(semel_once(calls, &request, run_job, &pays, &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_RAN && HOLDS(outcome.value, "paid"));
  CHECK(pays.seen.epoch == outcome.epoch && pays.seen.attempt == 1);
  CHECK(pays.seen.key_length == 1 && pays.seen.size == sizeof(semel_work));
  CHECK_OK(semel_engine_advance(engine, 3599999));
  CHECK_OK(semel_once(calls, &request, run_job, &pays, &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_REPLAYED && HOLDS(outcome.value, "paid"));
  CHECK(pays.runs == 1);
  CHECK_OK(semel_fingerprint_of(TEXT("p"), &request.fingerprint));
  CHECK_OK(semel_engine_advance(engine, 1));
  CHECK_OK(semel_once(calls, &request, run_job, &pays, &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_RAN && pays.runs == 2);
  CHECK_OK(semel_fingerprint_of(TEXT("q"), &request.fingerprint));
  CHECK_OK(semel_once(calls, &request, run_job, &pays, &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_MISMATCH && outcome.value.data == NULL);

  request = request_for("");
  CHECK(semel_once(calls, &request, run_job, &pays, &outcome) == SEMEL_KEY_EMPTY);
  CHECK(outcome.answer == SEMEL_ONCE_REFUSED && pays.runs == 2);
  request.without_key = 1;
  CHECK_OK(semel_once(calls, &request, run_job, &pays, &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_UNGUARDED && HOLDS(outcome.value, "paid"));
  CHECK(pays.seen.epoch == 0 && pays.runs == 3);
  CHECK(semel_once(calls, &request, NULL, &pays, &outcome) == SEMEL_BAD_OPTION);
  semel_buffer_free(&outcome.value);
  semel_buffer_free(&outcome.failure);
}

static void test_once_fails(semel_engine* engine) {
  semel_claims* calls = open_claims(engine, "failing", "call");
  semel_request request = request_for("k");
  semel_once_outcome outcome;
  semel_policy policy;
  job fails = new_job(SEMEL_WORK_FAILED, "the bank is slow");
  int returns;
  SEMEL_INIT(outcome);
  SEMEL_INIT(policy);
  for (returns = SEMEL_WORK_FAILED; returns != 0;
       returns = returns == SEMEL_WORK_FAILED ? SEMEL_WORK_ABANDONED : 0) {
    fails.returns = returns; /* given back each time */
    CHECK_OK(semel_once(calls, &request, run_job, &fails, &outcome));
    CHECK(outcome.answer == SEMEL_ONCE_FAILED && HOLDS(outcome.failure, "the bank is slow"));
  }
  CHECK(fails.runs == 2);
  fails.returns = SEMEL_WORK_REJECTED;
  CHECK_OK(semel_once(calls, &request, run_job, &fails, &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_FAILED);
  CHECK_OK(semel_once(calls, &request, run_job, &fails, &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_KEPT_FAILURE && HOLDS(outcome.failure, "the bank is slow"));
  CHECK(fails.runs == 3);

  CHECK_OK(semel_policy_named("call", &policy));
  policy.on_failure = SEMEL_ON_FAILURE_KEEP;
  CHECK_OK(semel_claims_open(engine, "keeping", &policy, &calls));
  fails.returns = SEMEL_WORK_ABANDONED; /* given back all the same */
  CHECK_OK(semel_once(calls, &request, run_job, &fails, &outcome));
  fails.returns = SEMEL_WORK_FAILED;
  CHECK_OK(semel_once(calls, &request, run_job, &fails, &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_FAILED && fails.runs == 5);
  CHECK_OK(semel_once(calls, &request, run_job, &fails, &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_KEPT_FAILURE && HOLDS(outcome.failure, "the bank is slow"));
  CHECK(fails.runs == 5);
  semel_buffer_free(&outcome.value);
  semel_buffer_free(&outcome.failure);
}

/* once-again-9: what a function has not said is not done, and zero is no answer. */
static void test_numbers_without_a_meaning(semel_engine* engine) {
  static const int odd[] = {SEMEL_UNANSWERED, -1, 7, 77, SEMEL_STORAGE_FAILED};
  static const char* const keys[] = {"0", "-1", "7", "77", "304"};
  semel_claims* payments = open_claims(engine, "odd", "payment");
  semel_once_outcome outcome;
  semel_consumed consumed;
  size_t i;
  SEMEL_INIT(outcome);
  SEMEL_INIT(consumed);
  CHECK(outcome.answer == SEMEL_UNANSWERED && outcome.answer != SEMEL_ONCE_RAN);
  CHECK(consumed.verdict == SEMEL_UNANSWERED && consumed.verdict != SEMEL_ACK);
  for (i = 0; i < sizeof odd / sizeof *odd; ++i) {
    semel_request request = request_for(keys[i]);
    job says = new_job(odd[i], "a word");
    CHECK_OK(semel_once(payments, &request, run_job, &says, &outcome));
    CHECK(outcome.answer == SEMEL_ONCE_IN_DOUBT && says.runs == 1);
    CHECK(strstr(outcome.failure.data, "no SEMEL_WORK_..: a word") != NULL);
    request = request_for("message");
    request.key_length = i + 1;
    CHECK_OK(semel_consume_once(payments, &request, run_job, &says, &consumed));
    CHECK(consumed.verdict == SEMEL_RETRY_LATER && consumed.answer == SEMEL_ONCE_IN_DOUBT);
  }
  semel_buffer_free(&outcome.value);
  semel_buffer_free(&outcome.failure);
  semel_buffer_free(&consumed.failure);
}

/* A reason that no value can hold: the work stays rejected, without its reason. */
static void test_once_rejects_at_length(semel_engine* engine) {
  static char reason[(1 << 20) + 2]; /* value_bytes_max is 1 MiB */
  semel_claims* calls = open_claims(engine, "lengthy", "call");
  semel_request request = request_for("k");
  semel_once_outcome outcome;
  job rejects = new_job(SEMEL_WORK_REJECTED, reason);
  SEMEL_INIT(outcome);
  memset(reason, 'x', sizeof reason - 1);
  CHECK_OK(semel_once(calls, &request, run_job, &rejects, &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_FAILED);
  CHECK(outcome.failure.length == sizeof reason - 1);
  CHECK_OK(semel_once(calls, &request, run_job, &rejects, &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_KEPT_FAILURE && outcome.failure.length == 0);
  CHECK(rejects.runs == 1);
  semel_buffer_free(&outcome.value);
  semel_buffer_free(&outcome.failure);
}

static void test_once_is_slow(semel_engine* engine) {
  semel_claims* calls = open_claims(engine, "slow", "call");
  semel_request request = request_for("k");
  semel_once_outcome outcome;
  job slow = new_job(SEMEL_WORK_DONE, "slow");
  SEMEL_INIT(outcome);
  slow.engine = engine;
  slow.claims = calls;
  slow.takes_ms = 59999;
  CHECK_OK(semel_once(calls, &request, run_job, &slow, &outcome));
  CHECK(slow.inner_answer == SEMEL_ONCE_IN_FLIGHT);
  CHECK(outcome.answer == SEMEL_ONCE_RAN && outcome.late == 0);
  CHECK_OK(semel_resolve(calls, TEXT("k"), SEMEL_RESOLVE_FORGOTTEN, NULL, 0, NULL));
  slow.takes_ms = 60000;
  CHECK_OK(semel_once(calls, &request, run_job, &slow, &outcome));
  CHECK(slow.inner_answer == SEMEL_ONCE_RAN);
  CHECK(outcome.answer == SEMEL_ONCE_SUPERSEDED && HOLDS(outcome.value, "newer"));
  CHECK_OK(semel_resolve(calls, TEXT("k"), SEMEL_RESOLVE_FORGOTTEN, NULL, 0, NULL));
  slow.claims = NULL;
  CHECK_OK(semel_once(calls, &request, run_job, &slow, &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_RAN && outcome.late == 1);
  semel_buffer_free(&outcome.value);
}

static void test_consume(semel_engine* engine) {
  semel_policy policy;
  semel_claims* queue = NULL;
  semel_request message = request_for("m");
  semel_consumed consumed;
  job handler = new_job(SEMEL_WORK_DONE, "");
  unsigned attempt;
  SEMEL_INIT(consumed);
  SEMEL_INIT(policy);
  CHECK_OK(semel_policy_named("message", &policy));
  policy.attempts_max = 3;
  CHECK_OK(semel_claims_open(engine, "mq", &policy, &queue));
  CHECK_OK(semel_consume_once(queue, &message, run_job, &handler, &consumed));
  CHECK(consumed.verdict == SEMEL_ACK && consumed.answer == SEMEL_ONCE_RAN);
  CHECK_OK(semel_consume_once(queue, &message, run_job, &handler, &consumed));
  CHECK(consumed.verdict == SEMEL_ACK_DUPLICATE && handler.runs == 1);

  message = request_for("poison");
  handler.says = "no";
  for (attempt = 1; attempt <= 3; ++attempt) {
    handler.returns = attempt == 2 ? SEMEL_WORK_ABANDONED : SEMEL_WORK_FAILED;
    CHECK_OK(semel_consume_once(queue, &message, run_job, &handler, &consumed));
    CHECK(consumed.attempts == attempt && HOLDS(consumed.failure, "no"));
    CHECK(consumed.verdict == (attempt < 3 ? SEMEL_RETRY_LATER : SEMEL_DEAD_LETTER));
    CHECK((consumed.retry_after_ms > 0) == (attempt < 3));
  }
  CHECK_OK(semel_consume_once(queue, &message, run_job, &handler, &consumed));
  CHECK(consumed.verdict == SEMEL_DEAD_LETTER && handler.runs == 4);

  message = request_for("rejected");
  handler.returns = SEMEL_WORK_REJECTED;
  CHECK_OK(semel_consume_once(queue, &message, run_job, &handler, &consumed));
  CHECK(consumed.verdict == SEMEL_DEAD_LETTER && HOLDS(consumed.failure, "no"));
  message = request_for("");
  CHECK(semel_consume_once(queue, &message, run_job, &handler, &consumed) == SEMEL_KEY_EMPTY);
  CHECK(consumed.verdict == SEMEL_DEAD_LETTER && handler.runs == 5);
  message.without_key = 1;
  handler.returns = SEMEL_WORK_DONE;
  CHECK_OK(semel_consume_once(queue, &message, run_job, &handler, &consumed));
  CHECK(consumed.verdict == SEMEL_ACK && consumed.unguarded == 1);
  message.wait_ms = 1;
  CHECK(semel_consume_once(queue, &message, run_job, &handler, &consumed) == SEMEL_BAD_OPTION);
  semel_buffer_free(&consumed.failure);
}

void test_patterns(void) {
  semel_engine* engine = open_engine(NULL);
  test_once(engine);
  test_once_fails(engine);
  test_numbers_without_a_meaning(engine);
  test_once_rejects_at_length(engine);
  test_once_is_slow(engine);
  test_consume(engine);
  CHECK_OK(semel_engine_close(engine));
}

void test_locks(void) {
  semel_engine* engine = open_engine(NULL);
  semel_claims* locks = open_claims(engine, "locks", "lock");
  semel_lock_options options;
  semel_lock* first = NULL;
  semel_lock* second = NULL;
  semel_uint64 token = 0;
  semel_uint64 next = 0;
  semel_owner_call call;
  semel_owner_outcome owned;
  int held = 7;
  SEMEL_INIT(options);
  SEMEL_INIT(owned);
  options.owner = "first";
  options.owner_length = 5;
  options.keep_lease = 1;
  CHECK_OK(semel_lock_open(locks, TEXT("l"), NULL, &first));
  CHECK_OK(semel_lock_open(locks, TEXT("l"), NULL, &second));
  CHECK(semel_lock_token(first) == 0);
  CHECK_OK(semel_lock_take(first, 0, &token));
  CHECK(token != 0 && semel_lock_token(first) == token);
  CHECK_OK(semel_lock_take(first, 10, &next)); /* once more */
  CHECK(next == token);
  CHECK_OK(semel_lock_take(second, 0, &next));
  CHECK(next == 0);
  CHECK(semel_lock_take(second, -1, &next) == SEMEL_BAD_OPTION);
  CHECK_OK(semel_lock_give(first, &held));
  CHECK(held == 1 && semel_lock_token(first) == token);
  CHECK_OK(semel_engine_advance(engine, 29999));
  CHECK(semel_lock_token(first) == token);
  call = owner_call_for("l", token, NULL);
  CHECK_OK(semel_renew(locks, &call, &owned));
  CHECK(owned.answer == SEMEL_OWNER_OK);
  CHECK_OK(semel_engine_advance(engine, 29999));
  CHECK_OK(semel_lock_take(second, 0, &next));
  CHECK(next == 0);
  CHECK_OK(semel_engine_advance(engine, 1)); /* its lease is over */
  CHECK(semel_lock_token(first) == 0);
  CHECK_OK(semel_lock_take(second, 0, &next));
  CHECK(next > token);
  CHECK_OK(semel_lock_give(first, &held));
  CHECK(held == 0 && semel_lock_token(second) == next);
  semel_lock_close(second); /* gives it back */
  CHECK_OK(semel_lock_take(first, 0, &token));
  CHECK(token > next);
  semel_lock_close(first);
  CHECK_OK(semel_lock_open(locks, TEXT("l"), &options, &first));
  CHECK_OK(semel_lock_take(first, 0, &token));
  CHECK(token != 0);
  semel_lock_close(first);
  CHECK_OK(semel_engine_close(engine));
}

static int ask_permit(semel_claims* pools, unsigned permits, semel_claim_outcome* outcome,
                      unsigned* slot, semel_buffer* key) {
  semel_request request = request_for("k");
  return semel_permit(pools, &request, permits, outcome, slot, key);
}

void test_permits(void) {
  semel_engine* engine = open_engine(NULL);
  semel_claims* pools = open_claims(engine, "pools", "lock");
  semel_claim_outcome outcome;
  semel_owner_outcome owned;
  semel_owner_call call;
  semel_buffer first = {NULL, 0};
  semel_buffer key = {NULL, 0};
  semel_uint64 token;
  unsigned slot = 7;
  SEMEL_INIT(outcome);
  SEMEL_INIT(owned);
  CHECK_OK(ask_permit(pools, 2, &outcome, &slot, &first));
  CHECK(outcome.answer == SEMEL_GRANTED && slot == 0);
  CHECK(first.length == 5 && memcmp(first.data, "{k}#0", 5) == 0);
  token = outcome.epoch;
  CHECK_OK(ask_permit(pools, 2, &outcome, &slot, &key));
  CHECK(outcome.answer == SEMEL_GRANTED && slot == 1 && key.length == 5);
  CHECK_OK(ask_permit(pools, 2, &outcome, &slot, &key));
  CHECK(outcome.answer == SEMEL_IN_FLIGHT && slot == 0 && key.length == 0);
  call = owner_call_for("{k}#0", token, NULL);
  CHECK_OK(semel_release(pools, &call, &owned));
  CHECK(owned.answer == SEMEL_OWNER_OK);
  CHECK_OK(ask_permit(pools, 1, &outcome, NULL, &key)); /* one is held: no other of one */
  CHECK(outcome.answer == SEMEL_IN_FLIGHT);
  CHECK_OK(ask_permit(pools, 3, NULL, NULL, &key));
  CHECK(key.length == 5);
  CHECK(ask_permit(pools, 0, &outcome, &slot, &key) == SEMEL_BAD_OPTION);
  CHECK(ask_permit(pools, 1025, &outcome, &slot, &key) == SEMEL_BAD_OPTION);
  CHECK(semel_permit(pools, NULL, 1, &outcome, &slot, &key) != SEMEL_OK);
  CHECK(ask_permit(NULL, 1, &outcome, &slot, &key) == SEMEL_BAD_OPTION);
  CHECK(ask_permit(pools, 1, &outcome, &slot, NULL) == SEMEL_BAD_OPTION);
  semel_buffer_free(&first);
  semel_buffer_free(&key);
  semel_buffer_free(&outcome.owner);
  semel_buffer_free(&outcome.result);
  semel_buffer_free(&owned.result);
  CHECK_OK(semel_engine_close(engine));
}

static int ask_access(semel_claims* space, int access, const char* id, semel_int64 next_ms,
                      semel_claim_outcome* outcome, semel_uint64* token, semel_buffer* key) {
  semel_request request = request_for("k");
  request.claim_id = (const unsigned char*)id;
  return semel_rwlock(space, &request, access, next_ms, outcome, token, key);
}

void test_rwlock(void) {
  static const char one[] = "0123456789abcdef", two[] = "fedcba9876543210";
  semel_engine* engine = open_engine(NULL);
  semel_claims* space = open_claims(engine, "rw", "lock");
  semel_claim_outcome outcome;
  semel_owner_outcome owned;
  semel_owner_call call;
  semel_request request;
  semel_buffer key = {NULL, 0};
  semel_uint64 reader = 0, writer = 0, epoch;
  SEMEL_INIT(outcome);
  SEMEL_INIT(owned);
  CHECK_OK(ask_access(space, SEMEL_READ, NULL, 0, &outcome, &reader, &key));
  CHECK(outcome.answer == SEMEL_GRANTED && reader != 0);
  CHECK(key.length == 9 && memcmp(key.data, "{k}#read0", 9) == 0);
  epoch = outcome.epoch;
  CHECK_OK(ask_access(space, SEMEL_WRITE, one, 60000, &outcome, &writer, &key));
  CHECK(outcome.answer == SEMEL_IN_FLIGHT && writer == 0 && key.length == 0);
  CHECK_OK(ask_access(space, SEMEL_READ, two, 0, &outcome, NULL, &key)); /* the writer is next */
  CHECK(outcome.answer == SEMEL_IN_FLIGHT);
  call = owner_call_for("{k}#read0", epoch, NULL);
  CHECK_OK(semel_release(space, &call, &owned));
  CHECK(owned.answer == SEMEL_OWNER_OK);
  CHECK_OK(ask_access(space, SEMEL_READ, two, 0, &outcome, NULL, &key));
  CHECK(outcome.answer == SEMEL_IN_FLIGHT);
  CHECK_OK(ask_access(space, SEMEL_WRITE, one, 0, &outcome, &writer, &key));
  CHECK(outcome.answer == SEMEL_GRANTED && writer > reader);
  CHECK(key.length == 9 && memcmp(key.data, "{k}#write", 9) == 0);
  request = request_for("k");
  CHECK_OK(semel_rwlock(space, &request, SEMEL_READ, 0, &outcome, NULL, &key));
  CHECK(outcome.answer == SEMEL_IN_FLIGHT);
  request.wait_ms = 1;
  CHECK(semel_rwlock(space, &request, SEMEL_READ, 5, &outcome, NULL, &key) == SEMEL_BAD_OPTION);
  CHECK(ask_access(space, 0, NULL, 0, &outcome, NULL, &key) == SEMEL_BAD_OPTION);
  CHECK(ask_access(space, 3, NULL, 0, &outcome, NULL, &key) == SEMEL_BAD_OPTION);
  CHECK(ask_access(space, SEMEL_READ, NULL, 5, &outcome, NULL, &key) == SEMEL_BAD_OPTION);
  CHECK(ask_access(space, SEMEL_READ, one, -1, &outcome, NULL, &key) == SEMEL_BAD_OPTION);
  CHECK(ask_access(space, SEMEL_READ, one, 60001, &outcome, NULL, &key) == SEMEL_BAD_OPTION);
  CHECK(ask_access(NULL, SEMEL_READ, NULL, 0, &outcome, NULL, &key) == SEMEL_BAD_OPTION);
  CHECK(ask_access(space, SEMEL_READ, NULL, 0, &outcome, NULL, NULL) == SEMEL_BAD_OPTION);
  CHECK(semel_rwlock(space, NULL, SEMEL_READ, 0, &outcome, NULL, &key) != SEMEL_OK);
  semel_buffer_free(&key);
  semel_buffer_free(&outcome.owner);
  semel_buffer_free(&outcome.result);
  semel_buffer_free(&owned.result);
  CHECK_OK(semel_engine_close(engine));
}

static int take_rate(semel_engine* engine, int kind, semel_uint64 cost, semel_rate* rate) {
  semel_rate_terms terms;
  SEMEL_INIT(terms);
  terms.kind = kind;
  terms.limit = 3;
  terms.period_ms = 3000;
  return semel_rate_take(engine, "k", 1, &terms, cost, rate);
}

void test_rates(void) {
  int kind;
  for (kind = SEMEL_RATE_FIXED; kind <= SEMEL_RATE_BUCKET; ++kind) {
    semel_engine* engine = open_engine(NULL);
    semel_rate_terms terms;
    semel_rate rate;
    SEMEL_INIT(terms);
    SEMEL_INIT(rate);
    CHECK_OK(take_rate(engine, kind, 0, &rate));
    CHECK(rate.allowed == 1 && rate.remaining == 3 && rate.reset_after_ms == 0);
    CHECK_OK(take_rate(engine, kind, 2, &rate));
    CHECK(rate.allowed == 1 && rate.remaining == 1 && rate.retry_after_ms == 0);
    CHECK_OK(take_rate(engine, kind, 2, &rate));
    CHECK(rate.allowed == 0 && rate.remaining >= 1 && rate.retry_after_ms > 0);
    CHECK(rate.size == sizeof rate && rate.reset_after_ms >= rate.retry_after_ms);
    CHECK_OK(take_rate(engine, kind, 1, NULL));
    CHECK(take_rate(engine, kind, 4, &rate) == SEMEL_BAD_OPTION);
    CHECK(take_rate(engine, 3, 1, &rate) == SEMEL_BAD_OPTION);
    CHECK(take_rate(engine, -1, 1, &rate) == SEMEL_BAD_OPTION);
    CHECK(take_rate(NULL, kind, 1, &rate) == SEMEL_BAD_OPTION);
    CHECK(semel_rate_take(engine, "k", 1, NULL, 1, &rate) == SEMEL_BAD_OPTION);
    CHECK(semel_rate_take(engine, "k", 1, &terms, 1, &rate) == SEMEL_BAD_OPTION);
    terms.limit = 1;
    terms.period_ms = 1;
    CHECK(semel_rate_take(engine, "", 0, &terms, 1, &rate) == SEMEL_KEY_EMPTY);
    CHECK(semel_rate_take(engine, NULL, 1, &terms, 1, &rate) == SEMEL_BAD_OPTION);
    terms.period_ms = -1;
    CHECK(semel_rate_take(engine, "k", 1, &terms, 1, &rate) == SEMEL_BAD_OPTION);
    CHECK_OK(semel_set(engine, "text", 4, "v", 1, NULL, NULL));
    terms.period_ms = 1;
    CHECK(semel_rate_take(engine, "text", 4, &terms, 1, &rate) == SEMEL_WRONG_TYPE);
    rate.size = 3;
    CHECK(take_rate(engine, kind, 1, &rate) == SEMEL_BAD_OPTION);
    CHECK_OK(semel_engine_close(engine));
  }
}

void test_restart(const char* directory) {
  semel_engine* engine = open_engine(directory);
  semel_engine* other = NULL;
  semel_request request = request_for("k");
  semel_once_outcome outcome;
  semel_options options;
  job pays = new_job(SEMEL_WORK_DONE, "paid");
  SEMEL_INIT(outcome);
  SEMEL_INIT(options);
  options.storage_directory = directory;
  CHECK(semel_engine_open(&options, &other) == SEMEL_STORAGE_IN_USE);
  CHECK_OK(semel_once(open_claims(engine, "calls", "call"), &request, run_job, &pays, &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_RAN);
  CHECK_OK(semel_engine_close(engine));
  engine = open_engine(directory);
  CHECK_OK(semel_once(open_claims(engine, "calls", "call"), &request, run_job, &pays, &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_REPLAYED && HOLDS(outcome.value, "paid") && pays.runs == 1);
  CHECK_OK(semel_engine_close(engine));
  semel_buffer_free(&outcome.value);
}
