/* Waits and runs that do not block, and a child of the engine's process. C89, and POSIX.
 * Words: child = what fork() makes; verdict = the exit code by which it says what it saw. */
#define _POSIX_C_SOURCE 200112L
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

typedef struct line {
  semel_engine* engine;
  semel_claims* claims;
  semel_claim_outcome outcome;
  semel_uint64 held; /* the epoch of whom all wait for */
} line;

static void open_line(line* to, const char* name, const char* policy) {
  semel_request request = request_for("k");
  to->claims = open_claims(to->engine, name, policy);
  SEMEL_INIT(to->outcome);
  CHECK_OK(semel_claim(to->claims, &request, &to->outcome));
  CHECK(to->outcome.answer == SEMEL_GRANTED);
  to->held = to->outcome.epoch;
}

static void close_line(line* to) {
  semel_buffer_free(&to->outcome.result);
  semel_buffer_free(&to->outcome.owner);
}

static semel_wait* begin(line* to, int fd) {
  semel_request request = request_for("k");
  semel_wait* wait = NULL;
  request.wait_ms = 1000;
  CHECK_OK(semel_wait_begin(to->claims, &request, fd, &wait));
  return wait;
}

static int answered(semel_wait* wait) {
  int yes = 7;
  CHECK_OK(semel_wait_for(wait, 0, &yes));
  return yes;
}

static semel_uint64 waiters(semel_engine* engine) {
  semel_stats stats;
  SEMEL_INIT(stats);
  CHECK_OK(semel_engine_stats(engine, &stats));
  return stats.waiters;
}

static void release(line* to, semel_uint64 epoch) {
  const semel_owner_call call = owner_call_for("k", epoch, NULL);
  CHECK_OK(semel_release(to->claims, &call, NULL));
}

static void test_line(semel_engine* engine, const int* ends) {
  line of = {NULL, NULL, {0}, 0};
  semel_wait* first;
  semel_wait* second;
  char byte = 0;
  of.engine = engine;
  open_line(&of, "waits", "call");
  first = begin(&of, ends[1]);
  second = begin(&of, -1);
  CHECK(!answered(first) && !answered(second) && waiters(engine) == 2);
  CHECK(read(ends[0], &byte, 1) == -1);
  release(&of, of.held);
  CHECK(read(ends[0], &byte, 1) == 1);
  CHECK(answered(first) && !answered(second)); /* in the order of arrival */
  CHECK_OK(semel_wait_end(first, &of.outcome));
  CHECK(of.outcome.answer == SEMEL_GRANTED && of.outcome.epoch > of.held);
  release(&of, of.outcome.epoch);
  CHECK(answered(second));
  first = begin(&of, -1);
  CHECK(!answered(first));
  CHECK_OK(semel_wait_end(second, NULL)); /* not taken: the next has it */
  CHECK(answered(first));
  CHECK_OK(semel_wait_end(first, &of.outcome));
  CHECK(of.outcome.answer == SEMEL_GRANTED && of.outcome.attempt == 1);

  first = begin(&of, -1);
  CHECK(semel_wait_end(first, &of.outcome) == SEMEL_TIMED_OUT); /* left */
  CHECK(of.outcome.answer == SEMEL_IN_FLIGHT && waiters(engine) == 0);
  first = begin(&of, -1);
  CHECK_OK(semel_engine_advance(engine, 999));
  CHECK(!answered(first));
  CHECK_OK(semel_engine_advance(engine, 1));
  CHECK(answered(first));
  CHECK(semel_wait_end(first, &of.outcome) == SEMEL_TIMED_OUT);
  CHECK(semel_wait_for(NULL, 0, NULL) == SEMEL_BAD_OPTION);
  CHECK_OK(semel_wait_end(NULL, NULL));
  first = begin(&of, -1);
  CHECK(semel_wait_for(first, -1, (int*)&byte) == SEMEL_BAD_OPTION);
  of.outcome.size = 4;
  CHECK(semel_wait_end(first, &of.outcome) == SEMEL_BAD_OPTION);
  of.outcome.size = sizeof of.outcome;
  CHECK_OK(semel_wait_end(first, NULL));
  CHECK(waiters(engine) == 0);
  close_line(&of);
}

static void test_lock_waits(semel_engine* engine) {
  semel_claims* locks = open_claims(engine, "waited", "fair-lock");
  semel_claim_outcome outcome;
  semel_lock* first = NULL;
  semel_lock* second = NULL;
  semel_wait* wait = NULL;
  semel_uint64 token = 0;
  int held = 7;
  SEMEL_INIT(outcome);
  CHECK_OK(semel_lock_open(locks, TEXT("l"), NULL, &first));
  CHECK_OK(semel_lock_open(locks, TEXT("l"), NULL, &second));
  CHECK_OK(semel_lock_begin(first, 0, -1, &wait));
  CHECK(answered(wait));
  CHECK_OK(semel_wait_end(wait, &outcome));
  CHECK(outcome.answer == SEMEL_GRANTED && outcome.epoch == semel_lock_token(first));
  CHECK_OK(semel_lock_begin(second, 0, -1, &wait));
  CHECK_OK(semel_wait_end(wait, &outcome));
  CHECK(outcome.answer == SEMEL_IN_FLIGHT && outcome.error == SEMEL_OK);
  CHECK_OK(semel_lock_begin(first, 5, -1, &wait)); /* once more, and not taken */
  CHECK_OK(semel_wait_end(wait, NULL));
  CHECK_OK(semel_lock_begin(second, 1000, -1, &wait));
  CHECK(!answered(wait));
  CHECK_OK(semel_lock_give(first, &held));
  CHECK(held == 1 && answered(wait) && semel_lock_token(second) == 0);
  CHECK_OK(semel_wait_end(wait, &outcome));
  CHECK(outcome.answer == SEMEL_GRANTED && outcome.epoch == semel_lock_token(second));
  CHECK_OK(semel_lock_begin(first, 1000, -1, &wait));
  CHECK_OK(semel_lock_give(second, &held));
  CHECK_OK(semel_wait_end(wait, NULL)); /* granted in this moment, and given back */
  CHECK_OK(semel_lock_take(second, 0, &token));
  CHECK(token != 0);
  CHECK(semel_lock_begin(first, -1, -1, &wait) == SEMEL_BAD_OPTION && wait == NULL);
  CHECK_OK(semel_lock_begin(first, 1, -1, &wait));
  CHECK_OK(semel_engine_advance(engine, 1));
  CHECK_OK(semel_wait_end(wait, &outcome));
  CHECK(outcome.answer == SEMEL_IN_FLIGHT && outcome.error == SEMEL_OK);
  semel_lock_close(first);
  semel_lock_close(second);
  semel_buffer_free(&outcome.owner);
}

static semel_run* begin_once(semel_claims* claims, const char* key, const semel_work** work) {
  semel_request request = request_for(key);
  semel_wait* wait = NULL;
  semel_run* run = NULL;
  CHECK_OK(semel_wait_begin(claims, &request, -1, &wait));
  CHECK_OK(semel_once_begin(wait, work, &run));
  return run;
}

static void test_runs(semel_engine* engine) {
  semel_claims* claims = open_claims(engine, "runs", "call");
  semel_claims* payments = open_claims(engine, "paid", "payment");
  const semel_work* work = NULL;
  semel_once_outcome outcome;
  semel_consumed consumed;
  semel_request request = request_for("m");
  semel_run* run = begin_once(claims, "k", &work);
  semel_run* again;
  SEMEL_INIT(outcome);
  SEMEL_INIT(consumed);
  CHECK(work != NULL && work->epoch != 0 && work->attempt == 1 && work->key_length == 1);
  again = begin_once(claims, "k", &work);
  CHECK(work == NULL);
  CHECK_OK(semel_once_end(again, SEMEL_WORK_DONE, TEXT("no"), &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_IN_FLIGHT);
  CHECK(semel_once_end(run, SEMEL_WORK_DONE, NULL, 3, &outcome) == SEMEL_BAD_OPTION);
  CHECK(semel_consume_end(run, SEMEL_WORK_DONE, NULL, 0, &consumed) == SEMEL_BAD_OPTION);
  CHECK(semel_once_end(run, 0, TEXT("paid"), &outcome) == SEMEL_BAD_OPTION);
  CHECK(semel_once_end(run, SEMEL_WORK_DONE_WITHOUT + 1, TEXT("paid"), &outcome) ==
        SEMEL_BAD_OPTION);
  CHECK_OK(semel_once_end(run, SEMEL_WORK_DONE, TEXT("paid"), &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_RAN && HOLDS(outcome.value, "paid"));
  run = begin_once(claims, "k", &work);
  CHECK(work == NULL);
  CHECK_OK(semel_once_end(run, 0, NULL, 0, &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_REPLAYED && HOLDS(outcome.value, "paid"));
  run = begin_once(claims, "f", &work);
  CHECK_OK(semel_once_end(run, SEMEL_WORK_REJECTED, TEXT("no card"), &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_FAILED && HOLDS(outcome.failure, "no card"));
  run = begin_once(payments, "p", &work);
  CHECK_OK(semel_once_end(run, SEMEL_WORK_ABANDONED, NULL, 0, NULL));
  run = begin_once(payments, "p", &work);
  CHECK(work == NULL); /* as the policy says of exceptions */
  CHECK_OK(semel_once_end(run, 0, NULL, 0, &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_IN_DOUBT);

  CHECK_OK(semel_consume_begin(claims, &request, &work, &run));
  CHECK(work != NULL);
  CHECK(semel_once_end(run, SEMEL_WORK_DONE, NULL, 0, &outcome) == SEMEL_BAD_OPTION);
  CHECK_OK(semel_consume_end(run, SEMEL_WORK_DONE, NULL, 0, &consumed));
  CHECK(consumed.verdict == SEMEL_ACK);
  CHECK_OK(semel_consume_begin(claims, &request, &work, &run));
  CHECK(work == NULL);
  CHECK_OK(semel_consume_end(run, SEMEL_WORK_DONE, NULL, 0, &consumed));
  CHECK(consumed.verdict == SEMEL_ACK_DUPLICATE);
  request.wait_ms = 1;
  CHECK(semel_consume_begin(claims, &request, &work, &run) == SEMEL_BAD_OPTION && run == NULL);
  semel_buffer_free(&outcome.value);
  semel_buffer_free(&outcome.failure);
  semel_buffer_free(&consumed.failure);
}

/* --- fork --------------------------------------------------------------------------------------
 */

static int counts(void* context, const semel_work* work, semel_out* out) {
  (void)work;
  (void)out;
  ++*(int*)context;
  return SEMEL_WORK_DONE;
}

typedef struct parents {
  semel_engine* engine;
  semel_claims* claims;
  semel_lock* lock;
  semel_wait* wait;
  semel_run* run;
} parents;

/* 0: every call has said so. */
static int use_store(const parents* of) {
  semel_engine* const e = of->engine;
  semel_stats stats;
  SEMEL_INIT(stats);
  if (semel_set(e, "k", 1, "v", 1, NULL, NULL) != SEMEL_FORKED) return 1;
  if (semel_get(e, "k", 1, NULL) != SEMEL_FORKED) return 2;
  if (semel_del(e, "k", 1, NULL) != SEMEL_FORKED) return 3;
  if (semel_incr_by(e, "k", 1, 1, NULL) != SEMEL_FORKED) return 4;
  if (semel_expire(e, "k", 1, 1, NULL) != SEMEL_FORKED) return 5;
  if (semel_ttl(e, "k", 1, NULL) != SEMEL_FORKED) return 6;
  if (semel_compare_and_set(e, "k", 1, 0, "v", 1, 0, NULL, NULL) != SEMEL_FORKED) return 7;
  if (semel_decrement_if_at_least(e, "k", 1, 1, 0, NULL, NULL) != SEMEL_FORKED) return 8;
  if (semel_transition(e, "k", 1, "a", 1, "b", 1, 0, NULL, NULL) != SEMEL_FORKED) return 9;
  if (semel_engine_stats(e, &stats) != SEMEL_FORKED) return 10;
  return semel_engine_advance(e, 0) == SEMEL_FORKED ? 0 : 11;
}

static int use_claims(const parents* of) {
  semel_request request = request_for("");
  semel_claim_outcome outcome;
  semel_owner_outcome owned;
  semel_owner_call call = owner_call_for("k", 1, NULL);
  semel_claim_view view;
  semel_consumed consumed;
  semel_claims* other = NULL;
  semel_uint64 number = 0;
  semel_buffer text = {NULL, 0};
  int runs = 0;
  SEMEL_INIT(outcome);
  SEMEL_INIT(owned);
  SEMEL_INIT(view);
  SEMEL_INIT(consumed);
  request.without_key = 1;
  if (semel_once(of->claims, &request, counts, &runs, NULL) != SEMEL_FORKED) return 20;
  if (semel_consume_once(of->claims, &request, counts, &runs, &consumed) != SEMEL_FORKED) {
    return 21;
  }
  if (runs != 0 || consumed.verdict != SEMEL_RETRY_LATER) return 22;
  request = request_for("k");
  if (semel_claim(of->claims, &request, &outcome) != SEMEL_FORKED) return 23;
  if (outcome.answer == SEMEL_GRANTED || outcome.error != SEMEL_FORKED) return 24;
  if (semel_claim_batch(of->claims, &request, &outcome, 1) != SEMEL_OK) return 25;
  if (outcome.error != SEMEL_FORKED) return 26;
  if (semel_complete(of->claims, &call, &owned) != SEMEL_FORKED) return 27;
  if (owned.answer != SEMEL_OWNER_REFUSED) return 28;
  if (semel_complete_batch(of->claims, &call, &owned, 1) != SEMEL_OK) return 29;
  if (owned.error != SEMEL_FORKED || semel_release(of->claims, &call, NULL) != SEMEL_FORKED) {
    return 30;
  }
  if (semel_claim_get(of->claims, "k", 1, &view) != SEMEL_FORKED) return 31;
  if (semel_resolve(of->claims, "k", 1, SEMEL_RESOLVE_FORGOTTEN, NULL, 0, NULL) != SEMEL_FORKED) {
    return 32;
  }
  if (semel_issue(of->claims, "k", 1, 0, NULL) != SEMEL_FORKED) return 33;
  if (semel_claims_open(of->engine, "new", NULL, &other) != SEMEL_FORKED) return 34;
  if (semel_claims_drop(of->engine, "forked", SEMEL_DROP_ALL, NULL) != SEMEL_FORKED) return 35;
  return semel_claims_list(of->engine, &number, 1, &text) == SEMEL_FORKED ? 0 : 36;
}

static int use_handles(const parents* of) {
  semel_request request = request_for("k");
  const semel_work* work = NULL;
  semel_lock* lock = NULL;
  semel_wait* wait = NULL;
  semel_run* run = NULL;
  semel_uint64 token = 0;
  semel_engine* mine = NULL;
  int flag = 0;
  if (semel_lock_open(of->claims, "l", 1, NULL, &lock) != SEMEL_FORKED) return 40;
  if (semel_lock_take(of->lock, 1000, &token) != SEMEL_FORKED) return 41;
  if (semel_lock_give(of->lock, &flag) != SEMEL_FORKED) return 42;
  if (semel_lock_token(of->lock) != 0) return 43;
  if (semel_lock_begin(of->lock, 0, -1, &wait) != SEMEL_FORKED) return 44;
  if (semel_wait_begin(of->claims, &request, -1, &wait) != SEMEL_FORKED) return 45;
  if (semel_wait_for(of->wait, 60000, &flag) != SEMEL_FORKED) return 46;
  if (semel_once_begin(of->wait, &work, &run) != SEMEL_FORKED) return 47;
  if (semel_wait_end(of->wait, NULL) != SEMEL_FORKED) return 48;
  if (semel_once_end(of->run, 0, NULL, 0, NULL) != SEMEL_FORKED) return 49;
  if (semel_consume_begin(of->claims, &request, &work, &run) != SEMEL_FORKED) return 50;
  semel_lock_close(of->lock);
  if (semel_engine_close(of->engine) != SEMEL_FORKED) return 51;
  if (semel_engine_open(NULL, &mine) != SEMEL_OK) return 52; /* one of its own */
  return semel_engine_close(mine) == SEMEL_OK ? 0 : 53;
}

static int verdict_of(const parents* of) {
  const pid_t child = fork();
  int status = 0;
  if (child == 0) {
    int seen = 0;
    alarm(10);
    seen = use_store(of);
    if (seen == 0) seen = use_claims(of);
    if (seen == 0) seen = use_handles(of);
    _exit(seen);
  }
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void test_fork(const char* directory) {
  parents of;
  line held = {NULL, NULL, {0}, 0};
  const semel_work* work = NULL;
  semel_once_outcome outcome;
  semel_uint64 token = 0;
  int verdict;
  SEMEL_INIT(outcome);
  of.engine = held.engine = open_engine(directory);
  open_line(&held, "forked", "call");
  of.claims = held.claims;
  of.wait = begin(&held, -1);
  of.run = begin_once(of.claims, "run", &work);
  CHECK_OK(semel_lock_open(of.claims, TEXT("lock"), NULL, &of.lock));
  CHECK_OK(semel_lock_take(of.lock, 0, &token));
  verdict = verdict_of(&of);
  if (verdict != 0) fprintf(stderr, "fork: the child has seen %d\n", verdict);
  CHECK(verdict == 0);
  CHECK(semel_lock_token(of.lock) == token && !answered(of.wait));
  release(&held, held.held);
  CHECK(answered(of.wait));
  CHECK_OK(semel_wait_end(of.wait, NULL));
  CHECK_OK(semel_once_end(of.run, SEMEL_WORK_DONE, TEXT("mine"), &outcome));
  CHECK(outcome.answer == SEMEL_ONCE_RAN);
  semel_lock_close(of.lock);
  CHECK_OK(semel_engine_close(of.engine));
  semel_buffer_free(&outcome.value);
  close_line(&held);
}

void test_waits(const char* directory) {
  semel_engine* engine = open_engine(NULL);
  int ends[2] = {-1, -1};
  CHECK(pipe(ends) == 0);
  CHECK(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
  test_line(engine, ends);
  test_lock_waits(engine);
  test_runs(engine);
  CHECK_OK(semel_engine_close(engine));
  close(ends[0]);
  close(ends[1]);
  test_fork(NULL);
  if (strcmp(directory, "-") != 0) test_fork(directory);
}
