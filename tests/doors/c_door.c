/* The stories of tests/doors/stories.json as a C program meets them: a line a story, its name, a
 * tab, its outcome. */
#include <stdio.h>
#include <string.h>

#include "semel.h"

#define HOUR 3600000

static semel_engine* engine;
static semel_claims* calls;
static int runs;

static void tell(const char* story, const char* outcome) {
  printf("%s\t%s; runs %d\n", story, outcome, runs);
  runs = 0;
}

static semel_request request_for(const char* key) {
  semel_request request;
  SEMEL_INIT(request);
  request.key = key;
  request.key_length = strlen(key);
  return request;
}

static semel_owner_call call_for(const char* key, semel_uint64 epoch) {
  semel_owner_call call;
  SEMEL_INIT(call);
  call.key = key;
  call.key_length = strlen(key);
  call.epoch = epoch;
  return call;
}

static int work(void* context, const semel_work* granted, semel_out* out) {
  const char* result = context;
  (void)granted;
  ++runs;
  semel_out_write(out, result, strlen(result));
  return SEMEL_WORK_DONE;
}

/* The answer of semel_once; its error in `error`, its value in `value`. */
static int once(const semel_request* request, semel_function function, const char* result,
                int* error, semel_buffer* value) {
  semel_once_outcome outcome;
  int code;
  SEMEL_INIT(outcome);
  code = semel_once(calls, request, function, (void*)result, &outcome);
  if (error != NULL) *error = code;
  if (value != NULL) {
    *value = outcome.value;
    outcome.value.data = NULL;
    outcome.value.length = 0;
  }
  semel_buffer_free(&outcome.value);
  semel_buffer_free(&outcome.failure);
  return outcome.answer;
}

static void results(void) {
  const semel_request request = request_for("result-equal");
  semel_buffer first, again;
  int equal;
  once(&request, work, "paid", NULL, &first);
  once(&request, work, "paid twice", NULL, &again);
  equal = first.data != NULL && again.data != NULL && first.length == again.length &&
          memcmp(first.data, again.data, first.length) == 0;
  tell("result-equal", equal ? "equal" : "other");
  semel_buffer_free(&first);
  semel_buffer_free(&again);
}

static void keys(void) {
  static char huge[70000];
  semel_request request = request_for("");
  int error;
  once(&request, work, "x", &error, NULL);
  tell("key-empty", error == SEMEL_KEY_EMPTY ? "key error" : "other");
  memset(huge, 'k', sizeof huge);
  request.key = huge;
  request.key_length = sizeof huge;
  once(&request, work, "x", &error, NULL);
  tell("key-huge", error == SEMEL_KEY_TOO_LONG ? "key error" : "other");
}

static semel_fingerprint print_of(const char* operation, const char* arguments) {
  semel_call_identity call;
  semel_fingerprint print;
  SEMEL_INIT(call);
  memset(&print, 0, sizeof print);
  call.operation = operation;
  call.operation_length = strlen(operation);
  call.arguments = arguments;
  call.arguments_length = strlen(arguments);
  if (semel_fingerprint_identity(&call, &print) != SEMEL_OK) puts(semel_error_detail());
  return print;
}

static void others(const char* story, const char* operation, const char* arguments) {
  semel_request request = request_for(story);
  int answer;
  request.fingerprint = print_of("pay", "{\"cents\":1}");
  once(&request, work, "x", NULL, NULL);
  request.fingerprint = print_of(operation, arguments);
  answer = once(&request, work, "x", NULL, NULL);
  tell(story, answer == SEMEL_ONCE_MISMATCH ? "mismatch" : "other");
}

static void times(void) {
  semel_request request = request_for("lease-zero");
  semel_claims* const all = calls;
  semel_policy policy;
  int answer;
  request.given = SEMEL_GIVEN_LEASE;
  answer = once(&request, work, "x", NULL, NULL);
  tell("lease-zero", answer == SEMEL_ONCE_REFUSED ? "refused" : "other");
  SEMEL_INIT(policy);
  semel_policy_named("message", &policy);
  policy.window_ms = 24 * HOUR;
  semel_claims_open(engine, "window", &policy, &calls);
  request = request_for("first-sent-1970");
  request.given = SEMEL_GIVEN_FIRST_SENT;
  answer = once(&request, work, "x", NULL, NULL);
  tell("first-sent-1970", answer == SEMEL_ONCE_TOO_OLD ? "too old" : "other");
  calls = all;
}

static int late_work(void* context, const semel_work* granted, semel_out* out) {
  const semel_request request = request_for("lease-lost");
  (void)context;
  (void)granted;
  semel_engine_advance(engine, HOUR);
  once(&request, work, "other", NULL, NULL);
  semel_out_write(out, "mine", 4);
  return SEMEL_WORK_DONE;
}

static void lease_lost(void) {
  const semel_request request = request_for("lease-lost");
  semel_buffer again;
  const int late = once(&request, late_work, NULL, NULL, NULL);
  once(&request, work, "third", NULL, &again);
  printf("lease-lost\t%s; repeat %s\n", late == SEMEL_ONCE_SUPERSEDED ? "too late" : "not noticed",
         again.data == NULL ? "none" : (const char*)again.data);
  semel_buffer_free(&again);
  runs = 0;
}

static semel_uint64 grant(const char* key) {
  const semel_request request = request_for(key);
  semel_claim_outcome outcome;
  SEMEL_INIT(outcome);
  semel_claim(calls, &request, &outcome);
  semel_buffer_free(&outcome.result);
  semel_buffer_free(&outcome.owner);
  return outcome.epoch;
}

/* One owner's step: asks for the memo, runs the step if there is none, and remembers it. */
static int step(const char* key, semel_uint64 epoch, int* steps) {
  semel_buffer memo = {NULL, 0};
  int error = semel_step_recall(calls, key, strlen(key), epoch, "charge", 6, &memo);
  if (error == SEMEL_OK && memo.data == NULL) {
    ++*steps;
    error = semel_step_remember(calls, key, strlen(key), epoch, "charge", 6, "r", 1);
  }
  semel_buffer_free(&memo);
  return error;
}

static void step_stale(void) {
  int steps = 0;
  int stale;
  semel_owner_call call;
  semel_owner_outcome outcome;
  const semel_uint64 mine = grant("step-stale");
  semel_uint64 other;
  semel_engine_advance(engine, HOUR);
  other = grant("step-stale");
  step("step-stale", other, &steps);
  call = call_for("step-stale", other);
  SEMEL_INIT(outcome);
  semel_complete(calls, &call, &outcome);
  semel_buffer_free(&outcome.result);
  stale = step("step-stale", mine, &steps);
  printf("step-stale\t%s; step runs %d\n", stale == SEMEL_NOT_OWNER ? "not owner" : "other", steps);
}

static void locks(void) {
  semel_policy policy;
  semel_claims* space;
  semel_lock *one, *other;
  semel_uint64 mine, second;
  int held;
  SEMEL_INIT(policy);
  semel_policy_named("lock", &policy);
  semel_claims_open(engine, "locks", &policy, &space);
  semel_lock_open(space, "lock-shared", 11, NULL, &one);
  semel_lock_open(space, "lock-shared", 11, NULL, &other);
  semel_lock_take(one, 0, &mine);
  semel_lock_take(other, 0, &second);
  printf("lock-shared\t%s\n", mine != 0 && second == 0 ? "one holder" : "two holders");
  semel_lock_close(other);
  semel_lock_close(one);
  semel_lock_open(space, "lock-lost", 9, NULL, &one);
  semel_lock_open(space, "lock-lost", 9, NULL, &other);
  semel_lock_take(one, 0, &mine);
  semel_engine_advance(engine, HOUR);
  semel_lock_take(other, 0, &second);
  semel_lock_give(other, &held);
  semel_lock_give(one, &held);
  printf("lock-lost\t%s\n", second != 0 && !held ? "lease lost" : "given back");
  semel_lock_close(other);
  semel_lock_close(one);
}

static semel_uint64 permit(semel_claims* space, unsigned permits, semel_buffer* key) {
  semel_request request;
  semel_claim_outcome outcome;
  SEMEL_INIT(request);
  SEMEL_INIT(outcome);
  request.key = "permits-fewer";
  request.key_length = 13;
  semel_permit(space, &request, permits, &outcome, NULL, key);
  semel_buffer_free(&outcome.owner);
  semel_buffer_free(&outcome.result);
  return outcome.answer == SEMEL_GRANTED ? outcome.epoch : 0;
}

static void give_permit(semel_claims* space, semel_buffer* key, semel_uint64 token) {
  semel_owner_call call;
  semel_owner_outcome outcome;
  SEMEL_INIT(call);
  SEMEL_INIT(outcome);
  call.key = key->data;
  call.key_length = key->length;
  call.epoch = token;
  semel_release(space, &call, &outcome);
  semel_buffer_free(key);
}

static void permits(void) {
  semel_claims* space = NULL;
  semel_buffer keys[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
  semel_uint64 one, other, fewer;
  semel_policy policy;
  SEMEL_INIT(policy);
  semel_policy_named("lock", &policy);
  semel_claims_open(engine, "locks", &policy, &space);
  one = permit(space, 2, &keys[0]);
  other = permit(space, 2, &keys[1]);
  give_permit(space, &keys[0], one);
  fewer = permit(space, 1, &keys[2]);
  printf("permits-fewer\t%s", one != 0 && other != 0 && fewer == 0 ? "held" : "too many");
  give_permit(space, &keys[1], other);
  fewer = permit(space, 1, &keys[2]);
  printf("; then %s\n", fewer != 0 ? "granted" : "none");
  give_permit(space, &keys[2], fewer);
}

static semel_uint64 get_in(semel_claims* space, int access, semel_buffer* key) {
  semel_request request;
  semel_claim_outcome outcome;
  SEMEL_INIT(request);
  SEMEL_INIT(outcome);
  request.key = "readers-writer";
  request.key_length = 14;
  semel_rwlock(space, &request, access, 0, &outcome, NULL, key);
  semel_buffer_free(&outcome.owner);
  semel_buffer_free(&outcome.result);
  return outcome.answer == SEMEL_GRANTED ? outcome.epoch : 0;
}

static void readers(void) {
  semel_claims* space = NULL;
  semel_buffer keys[4] = {{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};
  semel_uint64 one, other, early, writer, late;
  semel_policy policy;
  SEMEL_INIT(policy);
  semel_policy_named("lock", &policy);
  semel_claims_open(engine, "locks", &policy, &space);
  one = get_in(space, SEMEL_READ, &keys[0]);
  other = get_in(space, SEMEL_READ, &keys[1]);
  give_permit(space, &keys[0], one);
  early = get_in(space, SEMEL_WRITE, &keys[2]);
  printf("readers-writer\t%s, %s; ", one != 0 && other != 0 ? "two readers" : "not two",
         early == 0 ? "no writer" : "a writer");
  give_permit(space, &keys[1], other);
  writer = get_in(space, SEMEL_WRITE, &keys[2]);
  late = get_in(space, SEMEL_READ, &keys[3]);
  printf("%s; ", writer != 0 && late == 0 ? "then one writer" : "then not alone");
  give_permit(space, &keys[2], writer);
  late = get_in(space, SEMEL_READ, &keys[3]);
  printf("%s\n", late != 0 ? "then a reader" : "then none");
  give_permit(space, &keys[3], late);
}

static void take_rate(semel_uint64 cost, const char* before) {
  semel_rate_terms terms;
  semel_rate rate;
  SEMEL_INIT(terms);
  SEMEL_INIT(rate);
  terms.kind = SEMEL_RATE_SLIDING;
  terms.limit = 3;
  terms.period_ms = 86400000;
  if (semel_rate_take(engine, "rate-limit", 10, &terms, cost, &rate) != SEMEL_OK) {
    printf("%serror", before);
  } else if (rate.allowed) {
    printf("%sallowed", before);
  } else {
    printf("%slimited, %lu left", before, (unsigned long)rate.remaining);
  }
}

static void rates(void) {
  semel_rate_terms terms;
  SEMEL_INIT(terms);
  terms.kind = SEMEL_RATE_SLIDING;
  terms.limit = 3;
  terms.period_ms = 86400000;
  semel_rate_take(engine, "rate-limit", 10, &terms, 2, NULL);
  take_rate(2, "rate-limit\t");
  take_rate(1, "; then ");
  take_rate(1, "; then ");
  printf("\n");
}

int main(void) {
  semel_options options;
  semel_policy policy;
  SEMEL_INIT(options);
  options.manual_clock = 1;
  SEMEL_INIT(policy);
  if (semel_engine_open(&options, &engine) != SEMEL_OK ||
      semel_policy_named("call", &policy) != SEMEL_OK ||
      semel_claims_open(engine, "doors", &policy, &calls) != SEMEL_OK) {
    puts(semel_error_detail());
    return 1;
  }
  results();
  keys();
  others("payload-other", "pay", "{\"cents\":2}");
  others("operation-other", "refund", "{\"cents\":1}");
  times();
  lease_lost();
  step_stale();
  locks();
  permits();
  readers();
  rates();
  semel_engine_close(engine);
  return 0;
}
