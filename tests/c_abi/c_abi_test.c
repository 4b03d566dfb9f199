/* Every function of semel.h, and each time on both sides of its end. C89. */
#include <stddef.h>
#include <stdlib.h>

#include "check.h"

int checks = 0;
int failures = 0;

semel_engine* open_engine(const char* directory) {
  semel_options options;
  semel_engine* engine = NULL;
  SEMEL_INIT(options);
  options.memory_bytes = (size_t)16 << 20;
  options.manual_clock = 1;
  options.storage_directory = directory;
  options.log_bytes = (size_t)8 << 20;
  CHECK_OK(semel_engine_open(&options, &engine));
  if (engine == NULL) exit(1);
  return engine;
}

semel_claims* open_claims(semel_engine* engine, const char* name, const char* policy) {
  semel_policy figures;
  semel_claims* claims = NULL;
  SEMEL_INIT(figures);
  CHECK_OK(semel_policy_named(policy, &figures));
  CHECK_OK(semel_claims_open(engine, name, &figures, &claims));
  if (claims == NULL) exit(1);
  return claims;
}

semel_request request_for(const char* key) {
  semel_request request;
  SEMEL_INIT(request);
  request.key = key;
  request.key_length = strlen(key);
  return request;
}

semel_owner_call owner_call_for(const char* key, semel_uint64 epoch, const char* payload) {
  semel_owner_call call;
  SEMEL_INIT(call);
  call.key = key;
  call.key_length = strlen(key);
  call.epoch = epoch;
  call.payload = payload;
  call.payload_length = payload == NULL ? 0 : strlen(payload);
  return call;
}

static void test_errors(void) {
  semel_buffer empty = {NULL, 0};
  CHECK(strlen(semel_version()) >= 5);
  CHECK(strcmp(semel_error_text(SEMEL_KEY_EMPTY), "key is empty") == 0);
  CHECK(strcmp(semel_error_text(-7), "unknown error") == 0);
  CHECK(strcmp(semel_error_text(99), "unknown error") == 0);
  CHECK(semel_get(NULL, TEXT("k"), NULL) == SEMEL_BAD_OPTION);
  CHECK(strcmp(semel_error_detail(), "engine is NULL") == 0);
  semel_buffer_free(NULL);
  semel_buffer_free(&empty);
  CHECK(semel_out_write(NULL, TEXT("x")) == SEMEL_BAD_OPTION);
  CHECK_OK(semel_engine_close(NULL));
  semel_lock_close(NULL);
  CHECK(semel_lock_token(NULL) == 0);
}

static void test_open(void) {
  semel_options options;
  semel_engine* engine = NULL;
  semel_stats stats;
  struct {
    semel_options known;
    int later;
  } newer;
  CHECK_OK(semel_engine_open(NULL, &engine)); /* the system's clock, a background thread */
  CHECK(semel_engine_advance(engine, 1) == SEMEL_BAD_OPTION);
  CHECK_OK(semel_engine_advance(engine, 0));
  CHECK_OK(semel_engine_close(engine));

  SEMEL_INIT(options);
  options.memory_bytes = 1;
  CHECK(semel_engine_open(&options, &engine) == SEMEL_BAD_OPTION);
  CHECK(engine == NULL && semel_error_detail()[0] != '\0');
  CHECK(semel_engine_open(&options, NULL) == SEMEL_BAD_OPTION);
  options.memory_bytes = 0;
  options.durability = 4;
  CHECK(semel_engine_open(&options, &engine) == SEMEL_BAD_OPTION);
  options.durability = SEMEL_DURABILITY_SYNCED; /* there is no storage */
  CHECK(semel_engine_open(&options, &engine) != SEMEL_OK);
  options.durability = 0;
  options.background_ms = 1001;
  CHECK(semel_engine_open(&options, &engine) == SEMEL_BAD_OPTION);

  memset(&newer, 0, sizeof newer);
  newer.known.size = sizeof newer;
  newer.known.manual_clock = 1;
  CHECK_OK(semel_engine_open(&newer.known, &engine));
  CHECK_OK(semel_engine_advance(engine, 5));
  CHECK(semel_engine_advance(engine, -1) == SEMEL_BAD_OPTION);
  SEMEL_INIT(stats);
  CHECK_OK(semel_engine_stats(engine, &stats));
  CHECK(stats.bytes_limit == (semel_uint64)1 << 30);
  CHECK(stats.accepting == 1);
  stats.size = sizeof stats.size + sizeof stats.records; /* of an earlier release */
  stats.operations = 77;
  CHECK_OK(semel_engine_stats(engine, &stats));
  CHECK(stats.operations == 77);
  stats.size = 4;
  CHECK(semel_engine_stats(engine, &stats) == SEMEL_BAD_OPTION);
  CHECK_OK(semel_engine_close(engine));
  newer.later = 1;
  CHECK(semel_engine_open(&newer.known, &engine) == SEMEL_BAD_OPTION);
  options.size = sizeof options.size; /* of an earlier release: the rest is not read */
  CHECK_OK(semel_engine_open(&options, &engine));
  CHECK_OK(semel_engine_close(engine));
}

static void test_set(semel_engine* engine) {
  semel_set_options options;
  semel_set_result result;
  semel_value value;
  int existed = 7;
  semel_int64 remaining = 0;
  SEMEL_INIT(options);
  SEMEL_INIT(result);
  SEMEL_INIT(value);
  CHECK_OK(semel_set(engine, TEXT("k"), TEXT("a\0b"), NULL, &result));
  CHECK(result.stored == 1 && result.version != 0 && result.previous.data == NULL);
  CHECK_OK(semel_get(engine, TEXT("k"), &value));
  CHECK(HOLDS(value.value, "a\0b") && value.version == result.version);
  options.condition = SEMEL_IF_ABSENT;
  CHECK_OK(semel_set(engine, TEXT("k"), TEXT("b"), &options, &result));
  CHECK(result.stored == 0);
  options.condition = SEMEL_IF_PRESENT;
  options.get = 1;
  options.ttl_ms = 100;
  CHECK_OK(semel_set(engine, TEXT("k"), TEXT("b"), &options, &result));
  CHECK(result.stored == 1 && HOLDS(result.previous, "a\0b"));
  options.condition = SEMEL_IF_EQUAL;
  options.expected = "x";
  options.expected_length = 1;
  options.ttl_ms = SEMEL_TTL_KEEP;
  CHECK_OK(semel_set(engine, TEXT("k"), TEXT("c"), &options, &result));
  CHECK(result.stored == 0 && HOLDS(result.previous, "b"));
  options.expected = "b";
  CHECK_OK(semel_set(engine, TEXT("k"), TEXT(""), &options, &result));
  CHECK(result.stored == 1);
  options.condition = SEMEL_IF_VERSION;
  options.version = result.version + 1;
  CHECK_OK(semel_set(engine, TEXT("k"), TEXT("d"), &options, &result));
  CHECK(result.stored == 0 && HOLDS(result.previous, ""));
  options.version = result.version;
  CHECK_OK(semel_set(engine, TEXT("k"), TEXT("d"), &options, &result));
  CHECK(result.stored == 1);
  CHECK_OK(semel_engine_advance(engine, 99));
  CHECK_OK(semel_ttl(engine, TEXT("k"), &remaining));
  CHECK(remaining == 1);
  CHECK_OK(semel_get(engine, TEXT("k"), &value));
  CHECK(HOLDS(value.value, "d"));
  CHECK_OK(semel_engine_advance(engine, 1));
  CHECK_OK(semel_get(engine, TEXT("k"), &value));
  CHECK(value.value.data == NULL && value.version == 0);
  CHECK_OK(semel_ttl(engine, TEXT("k"), &remaining));
  CHECK(remaining == -2);
  options.condition = 5;
  CHECK(semel_set(engine, TEXT("k"), TEXT("d"), &options, NULL) == SEMEL_BAD_OPTION);
  CHECK(semel_set(engine, TEXT(""), TEXT("d"), NULL, NULL) == SEMEL_KEY_EMPTY);
  CHECK(semel_set(engine, NULL, 3, TEXT("d"), NULL, NULL) == SEMEL_BAD_OPTION);
  CHECK(semel_set(engine, TEXT("k"), NULL, 3, NULL, NULL) == SEMEL_BAD_OPTION);
  CHECK_OK(semel_set(engine, TEXT("k"), NULL, 0, NULL, NULL));
  CHECK_OK(semel_del(engine, TEXT("k"), &existed));
  CHECK(existed == 1);
  CHECK_OK(semel_del(engine, TEXT("k"), &existed));
  CHECK(existed == 0);
  semel_buffer_free(&result.previous);
  semel_buffer_free(&value.value);
}

static void test_numbers_and_ttls(semel_engine* engine) {
  semel_int64 number = 0;
  int flag = 7;
  CHECK_OK(semel_incr_by(engine, TEXT("n"), 41, &number));
  CHECK(number == 41);
  CHECK_OK(semel_incr_by(engine, TEXT("n"), -43, &number));
  CHECK(number == -2);
  CHECK_OK(semel_expire(engine, TEXT("n"), 50, &flag));
  CHECK(flag == 1);
  CHECK_OK(semel_expire(engine, TEXT("n"), SEMEL_TTL_KEEP, &flag));
  CHECK_OK(semel_ttl(engine, TEXT("n"), &number));
  CHECK(number == 50);
  CHECK_OK(semel_expire(engine, TEXT("n"), SEMEL_TTL_NONE, &flag));
  CHECK(flag == 1);
  CHECK_OK(semel_ttl(engine, TEXT("n"), &number));
  CHECK(number == -1);
  CHECK_OK(semel_expire(engine, TEXT("none"), 50, &flag));
  CHECK(flag == 0);
  CHECK_OK(semel_expire(engine, TEXT("none"), SEMEL_TTL_NONE, &flag));
  CHECK(flag == 0);
  CHECK(semel_expire(engine, TEXT("n"), -2, &flag) == SEMEL_INVALID_EXPIRE);
  CHECK_OK(semel_set(engine, TEXT("n"), TEXT("many"), NULL, NULL));
  CHECK(semel_incr_by(engine, TEXT("n"), 1, NULL) == SEMEL_NOT_AN_INTEGER);
}

static void test_guards(semel_engine* engine) {
  semel_value current;
  semel_buffer state = {NULL, 0};
  semel_bytes fields[2];
  semel_uint64 version;
  semel_int64 left = 0;
  int flag = 7;
  SEMEL_INIT(current);
  CHECK_OK(semel_compare_and_set(engine, TEXT("c"), 0, TEXT("one"), 0, &flag, &current));
  CHECK(flag == 1 && HOLDS(current.value, "one"));
  version = current.version;
  CHECK_OK(semel_compare_and_set(engine, TEXT("c"), 0, TEXT("two"), 0, &flag, &current));
  CHECK(flag == 0 && HOLDS(current.value, "one") && current.version == version);
  CHECK_OK(semel_compare_and_set(engine, TEXT("c"), version, TEXT("two"), 0, &flag, NULL));
  CHECK(flag == 1);

  CHECK_OK(semel_set(engine, TEXT("b"), TEXT("500"), NULL, NULL));
  CHECK_OK(semel_decrement_if_at_least(engine, TEXT("b"), 300, 0, &flag, &left));
  CHECK(flag == 1 && left == 200);
  CHECK_OK(semel_decrement_if_at_least(engine, TEXT("b"), 101, 100, &flag, &left));
  CHECK(flag == 0 && left == 200);
  CHECK_OK(semel_decrement_if_at_least(engine, TEXT("b"), 100, 100, &flag, &left));
  CHECK(flag == 1 && left == 100);
  CHECK(semel_decrement_if_at_least(engine, TEXT("b"), 0, 0, NULL, NULL) == SEMEL_BAD_OPTION);

  CHECK_OK(semel_transition(engine, TEXT("s"), NULL, 0, TEXT("new"), -1, &flag, &state));
  CHECK(flag == 1 && HOLDS(state, "new"));
  CHECK_OK(semel_transition(engine, TEXT("s"), TEXT("paid"), TEXT("sent"), -1, &flag, &state));
  CHECK(flag == 0 && HOLDS(state, "new"));
  CHECK_OK(semel_transition(engine, TEXT("t"), TEXT("a"), TEXT("b"), -1, &flag, &state));
  CHECK(flag == 0 && HOLDS(state, ""));
  semel_buffer_free(&state);

  fields[0].data = "invoice";
  fields[0].length = 7;
  fields[1].data = "17";
  fields[1].length = 2;
  CHECK_OK(semel_first_seen(engine, "rows", fields, 2, 1000, &flag));
  CHECK(flag == 1);
  CHECK_OK(semel_engine_advance(engine, 999));
  CHECK_OK(semel_first_seen(engine, "rows", fields, 2, 1000, &flag));
  CHECK(flag == 0);
  CHECK_OK(semel_engine_advance(engine, 1));
  CHECK_OK(semel_first_seen(engine, "rows", fields, 2, 1000, &flag));
  CHECK(flag == 1);
  CHECK(semel_first_seen(engine, "rows", NULL, 0, 1000, &flag) == SEMEL_KEY_EMPTY);

  CHECK_OK(semel_composite_key(fields, 2, &state));
  CHECK(HOLDS(state, "invoice|17"));
  semel_buffer_free(&state);
  semel_buffer_free(&current.value);
}

static void test_namespaces(semel_engine* engine) {
  semel_policy policy;
  semel_claims* jobs = NULL;
  semel_claims* anew = NULL;
  semel_request request = request_for("k");
  semel_claim_outcome outcome;
  semel_buffer text = {NULL, 0};
  semel_uint64 gone = 7;
  semel_uint64 cursor = 0;
  SEMEL_INIT(policy);
  SEMEL_INIT(outcome);
  CHECK_OK(semel_claims_open(engine, "jobs", &policy, &jobs));
  policy.lease_ms = 5000;
  CHECK(semel_claims_open(engine, "jobs", &policy, &anew) == SEMEL_NAMESPACE_DIFFERS);
  CHECK(anew == NULL && strstr(semel_error_detail(), "lease 60000 -> 5000") != NULL);
  CHECK_OK(semel_claims_change(engine, "jobs", &policy, &text));
  CHECK(HOLDS(text, "lease 60000 -> 5000"));
  semel_buffer_free(&text);
  CHECK_OK(semel_claims_change(engine, "jobs", &policy, NULL));
  policy.sliding_max_ms = 86399999; /* shorter than the window */
  CHECK(semel_claims_change(engine, "jobs", &policy, NULL) == SEMEL_BAD_OPTION);
  policy.sliding_max_ms = 86400000;
  CHECK_OK(semel_claims_change(engine, "jobs", &policy, &text));
  CHECK(HOLDS(text, "sliding_max 0 -> 86400000"));
  semel_buffer_free(&text);
  policy.size = offsetof(semel_policy, sliding_max_ms); /* of a program before it */
  CHECK_OK(semel_claims_change(engine, "jobs", &policy, &text));
  CHECK(HOLDS(text, "sliding_max 86400000 -> 0"));
  semel_buffer_free(&text);
  SEMEL_INIT(policy);
  policy.lease_ms = 5000;
  policy.db = 1;
  CHECK(semel_claims_change(engine, "jobs", &policy, NULL) == SEMEL_NAMESPACE_DIFFERS);
  CHECK(semel_claims_change(engine, "never", &policy, NULL) == SEMEL_BAD_NAMESPACE);
  CHECK_OK(semel_claim(jobs, &request, &outcome));
  CHECK(semel_claims_drop(engine, "jobs", SEMEL_DROP_FINISHED, &gone) == SEMEL_NAMESPACE_IN_USE);
  CHECK(gone == 7);
  CHECK(semel_claims_drop(engine, "jobs", 3, NULL) == SEMEL_BAD_OPTION);
  CHECK_OK(semel_claims_drop(engine, "jobs", SEMEL_DROP_ALL, &gone));
  CHECK(gone == 1);
  CHECK(semel_claims_drop(engine, "jobs", SEMEL_DROP_ALL, NULL) == SEMEL_BAD_NAMESPACE);
  CHECK_OK(semel_claims_open(engine, "jobs", &policy, &anew));
  CHECK(anew != jobs);
  (void)semel_claim(jobs, &request, &outcome);
  CHECK(outcome.error == SEMEL_NAMESPACE_DROPPED);
  CHECK_OK(semel_claims_list(engine, &cursor, 1, &text));
  CHECK(HOLDS(text, "orders\n") && cursor != 0);
  semel_buffer_free(&text);
  CHECK_OK(semel_claims_list(engine, &cursor, 1000, &text));
  CHECK(HOLDS(text, "jobs\n") && cursor == 0);
  semel_buffer_free(&text);
  CHECK(semel_claims_list(engine, &cursor, 0, &text) == SEMEL_BAD_OPTION);
  CHECK(semel_claims_list(engine, NULL, 1, &text) == SEMEL_BAD_OPTION);
  CHECK_OK(semel_claims_drop(engine, "jobs", SEMEL_DROP_UNUSED, NULL));
}

static void test_claims(semel_engine* engine) {
  semel_claims* claims = open_claims(engine, "orders", "call");
  semel_claims* again = NULL;
  semel_request request = request_for("k");
  semel_claim_outcome outcome;
  semel_owner_outcome owned;
  semel_owner_call call;
  semel_claim_view view;
  semel_uint64 epoch;
  int changed = 7;
  SEMEL_INIT(outcome);
  SEMEL_INIT(owned);
  SEMEL_INIT(view);
  CHECK_OK(semel_claims_open(engine, "orders", NULL, &again));
  CHECK(again == claims);
  CHECK(semel_claims_open(engine, "never", NULL, &again) == SEMEL_BAD_NAMESPACE);
  CHECK(again == NULL);
  test_namespaces(engine);

  request.owner = "me";
  request.owner_length = 2;
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_GRANTED && outcome.attempt == 1 && outcome.folded_onto == -1);
  epoch = outcome.epoch;
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_IN_FLIGHT && HOLDS(outcome.owner, "me"));
  CHECK(outcome.remaining_ms == 60000);
  CHECK_OK(semel_engine_advance(engine, 30000));
  call = owner_call_for("k", epoch, NULL);
  CHECK_OK(semel_renew(claims, &call, &owned));
  CHECK(owned.answer == SEMEL_OWNER_OK);
  CHECK_OK(semel_engine_advance(engine, 59999));
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_IN_FLIGHT && outcome.remaining_ms == 1);
  CHECK_OK(semel_engine_advance(engine, 1));
  CHECK_OK(semel_claim(claims, &request, &outcome)); /* takes over */
  CHECK(outcome.answer == SEMEL_GRANTED && outcome.takeover == 1 && outcome.epoch > epoch);
  call = owner_call_for("k", epoch, "slow");
  CHECK_OK(semel_complete(claims, &call, &owned));
  CHECK(owned.answer == SEMEL_OWNER_STALE && owned.result.data == NULL);
  call = owner_call_for("k", outcome.epoch, "quick");
  CHECK_OK(semel_complete(claims, &call, &owned));
  CHECK(owned.answer == SEMEL_OWNER_OK && owned.late == 0);
  call = owner_call_for("k", epoch, "slow");
  CHECK_OK(semel_complete(claims, &call, &owned));
  CHECK(owned.answer == SEMEL_OWNER_STALE && HOLDS(owned.result, "quick"));
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_REPLAY && HOLDS(outcome.result, "quick"));
  CHECK_OK(semel_claim_get(claims, TEXT("k"), &view));
  CHECK(view.state == SEMEL_STATE_DONE && HOLDS(view.result, "quick") && view.attempts == 2);
  CHECK_OK(semel_engine_advance(engine, 3599999));
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_REPLAY);
  CHECK_OK(semel_engine_advance(engine, 1));
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_GRANTED && outcome.takeover == 0);

  call = owner_call_for("k", outcome.epoch, NULL);
  CHECK_OK(semel_release(claims, &call, &owned));
  CHECK(owned.answer == SEMEL_OWNER_OK);
  CHECK_OK(semel_release(claims, &call, NULL));
  CHECK_OK(semel_claim(claims, &request, &outcome));
  call = owner_call_for("k", outcome.epoch, "no such card");
  call.on_failure = 2;
  CHECK_OK(semel_fail(claims, &call, &owned));
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_KEPT_FAILURE && HOLDS(outcome.result, "no such card"));
  CHECK_OK(semel_resolve(claims, TEXT("k"), SEMEL_RESOLVE_FORGOTTEN, NULL, 0, &changed));
  CHECK(changed == 1);
  CHECK_OK(semel_claim_get(claims, TEXT("k"), &view));
  CHECK(view.state == SEMEL_STATE_ABSENT && view.result.data == NULL);
  CHECK_OK(semel_resolve(claims, TEXT("k"), SEMEL_RESOLVE_FORGOTTEN, NULL, 0, &changed));
  CHECK(changed == 0);
  CHECK(semel_resolve(claims, TEXT("k"), 3, NULL, 0, &changed) == SEMEL_BAD_OPTION);
  call.on_failure = 4;
  CHECK(semel_fail(claims, &call, &owned) == SEMEL_BAD_OPTION);
  semel_buffer_free(&outcome.result);
  semel_buffer_free(&outcome.owner);
  semel_buffer_free(&owned.result);
  semel_buffer_free(&view.result);
  semel_buffer_free(&view.owner);
}

static void test_requests(semel_engine* engine) {
  static const unsigned char id[16] = {1, 2, 3};
  semel_claims* claims = open_claims(engine, "requests", "call");
  semel_request request = request_for("k");
  semel_claim_outcome outcome;
  semel_owner_call call;
  semel_policy policy;
  SEMEL_INIT(outcome);
  SEMEL_INIT(policy);
  CHECK(semel_policy_named("no such", &policy) == SEMEL_BAD_OPTION);
  request.claim_id = id;
  CHECK_OK(semel_fingerprint_of(TEXT("payload"), &request.fingerprint));
  CHECK(request.fingerprint.algorithm == 1);
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_REGRANTED);
  call = owner_call_for("k", outcome.epoch, "");
  CHECK_OK(semel_complete(claims, &call, NULL));
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_REPLAY && HOLDS(outcome.result, ""));
  CHECK_OK(semel_fingerprint_of(TEXT("another"), &request.fingerprint));
  request.claim_id = NULL;
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_MISMATCH && outcome.result.data == NULL);
  request.key_length = 0;
  CHECK(semel_claim(claims, &request, &outcome) == SEMEL_KEY_EMPTY);
  CHECK(outcome.error == SEMEL_KEY_EMPTY);
  request = request_for("k");
  request.keep_lease = 1;
  CHECK(semel_claim(claims, &request, &outcome) == SEMEL_BAD_OPTION);
  request = request_for("k");
  request.wait_ms = -1;
  CHECK(semel_claim(claims, &request, &outcome) == SEMEL_BAD_OPTION);
  outcome.size = sizeof(size_t);
  CHECK(semel_claim(claims, NULL, &outcome) == SEMEL_BAD_OPTION);

  CHECK_OK(semel_policy_named("payment", &policy)); /* in doubt, not taken over */
  CHECK(policy.on_lease_end == SEMEL_ON_LEASE_END_IN_DOUBT && policy.window_ms > 0);
  policy.db = 16;
  CHECK(semel_claims_open(engine, "payments", &policy, &claims) == SEMEL_BAD_OPTION);
  policy.db = 3;
  CHECK_OK(semel_claims_open(engine, "payments", &policy, &claims));
  request = request_for("p");
  SEMEL_INIT(outcome);
  CHECK_OK(semel_claim(claims, &request, NULL));
  CHECK_OK(semel_engine_advance(engine, 60000));
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_IN_DOUBT);
  CHECK_OK(semel_resolve(claims, TEXT("p"), SEMEL_RESOLVE_DONE, TEXT("7"), NULL));
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_REPLAY && HOLDS(outcome.result, "7"));
  request = request_for("old");
  request.first_sent_unix_ms = 1;
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_TOO_OLD && outcome.window_start_unix_ms > 1);
  semel_buffer_free(&outcome.result);
}

/* once-again-11: zero is "not said" only where it is no value, or nothing says that it is meant. */
static void test_given(semel_engine* engine) {
  semel_claims* claims = open_claims(engine, "given", "payment");
  semel_request request = request_for("k");
  semel_claim_outcome outcome;
  semel_owner_call call;
  semel_lock_options options;
  semel_lock* lock = NULL;
  semel_uint64 token;
  SEMEL_INIT(outcome);
  SEMEL_INIT(call);
  SEMEL_INIT(options);
  request.given = SEMEL_GIVEN_FIRST_SENT;
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_TOO_OLD); /* sent in 1970 */
  request.given = SEMEL_GIVEN_LEASE;
  CHECK(semel_claim(claims, &request, &outcome) == SEMEL_BAD_OPTION);
  request.given = 4;
  CHECK(semel_claim(claims, &request, &outcome) == SEMEL_BAD_OPTION);
  request.given = 0;
  CHECK_OK(semel_claim(claims, &request, &outcome));
  CHECK(outcome.answer == SEMEL_GRANTED);
  call.key = "k";
  call.key_length = 1;
  call.epoch = outcome.epoch;
  CHECK_OK(semel_renew(claims, &call, NULL));
  call.given = SEMEL_GIVEN_LEASE;
  CHECK(semel_renew(claims, &call, NULL) == SEMEL_BAD_OPTION);
  options.given = SEMEL_GIVEN_LEASE;
  CHECK_OK(semel_lock_open(claims, TEXT("l"), &options, &lock));
  CHECK(semel_lock_take(lock, 0, &token) == SEMEL_BAD_OPTION && token == 0);
  semel_lock_close(lock);
  options.given = SEMEL_GIVEN_FIRST_SENT;
  CHECK(semel_lock_open(claims, TEXT("l"), &options, &lock) == SEMEL_BAD_OPTION);
  CHECK(semel_issue(open_claims(engine, "given-tokens", "token"), TEXT("t"), 0, NULL) ==
        SEMEL_BAD_OPTION);
}

static void test_issued(semel_engine* engine) {
  semel_claims* tokens = open_claims(engine, "tokens", "token");
  semel_request request = request_for("t");
  semel_claim_outcome outcome;
  semel_owner_call call;
  int issued = 7;
  SEMEL_INIT(outcome);
  CHECK_OK(semel_claim(tokens, &request, &outcome));
  CHECK(outcome.answer == SEMEL_UNKNOWN);
  CHECK_OK(semel_issue(tokens, TEXT("t"), SEMEL_TTL_POLICY, &issued));
  CHECK(issued == 1);
  CHECK_OK(semel_issue(tokens, TEXT("t"), SEMEL_TTL_POLICY, &issued));
  CHECK(issued == 0);
  CHECK_OK(semel_engine_advance(engine, 5999));
  CHECK_OK(semel_claim(tokens, &request, &outcome));
  CHECK(outcome.answer == SEMEL_GRANTED);
  call = owner_call_for("t", outcome.epoch, "spent");
  CHECK_OK(semel_complete(tokens, &call, NULL));
  CHECK_OK(semel_claim(tokens, &request, &outcome));
  CHECK(outcome.answer == SEMEL_REPLAY);
  CHECK_OK(semel_issue(tokens, TEXT("u"), SEMEL_TTL_POLICY, NULL));
  CHECK_OK(semel_engine_advance(engine, 6000));
  request = request_for("u");
  CHECK_OK(semel_claim(tokens, &request, &outcome));
  CHECK(outcome.answer == SEMEL_UNKNOWN);
  CHECK(semel_issue(open_claims(engine, "plain", "call"), TEXT("u"), SEMEL_TTL_POLICY, NULL) ==
        SEMEL_BAD_OPTION);
  semel_buffer_free(&outcome.result);
}

static void test_all_or_none(semel_engine* engine) {
  semel_claims* claims = open_claims(engine, "all", "lock");
  const char* keys[3] = {"a", "b", "a"};
  semel_request requests[3];
  semel_claim_outcome outcomes[3];
  semel_claim_outcome held;
  semel_owner_call call;
  semel_owner_outcome owned;
  int all = 7;
  int i;
  for (i = 0; i < 3; ++i) {
    requests[i] = request_for(keys[i]);
    SEMEL_INIT(outcomes[i]);
  }
  SEMEL_INIT(held);
  SEMEL_INIT(owned);
  CHECK_OK(semel_claim(claims, &requests[1], &held));
  CHECK_OK(semel_claim_all(claims, requests, outcomes, 3, &all));
  CHECK(all == 0 && outcomes[0].answer == SEMEL_GRANTED && outcomes[0].epoch == 0);
  CHECK(outcomes[1].answer == SEMEL_IN_FLIGHT);
  call = owner_call_for("b", held.epoch, "");
  CHECK_OK(semel_release(claims, &call, &owned));
  CHECK_OK(semel_claim_all(claims, requests, outcomes, 3, &all));
  CHECK(all == 1 && outcomes[0].epoch != 0 && outcomes[1].epoch != 0);
  CHECK(outcomes[2].epoch == outcomes[0].epoch && outcomes[2].folded_onto == 0);
  CHECK_OK(semel_claim_all(claims, NULL, NULL, 0, &all));
  CHECK(all == 1);
  CHECK(semel_claim_all(claims, requests, outcomes, 3, NULL) == SEMEL_BAD_OPTION);
  CHECK(semel_claim_all(NULL, requests, outcomes, 3, &all) == SEMEL_BAD_OPTION);
  CHECK(semel_claim_all(claims, NULL, outcomes, 3, &all) == SEMEL_BAD_OPTION && all == 0);
  all = 1;
  CHECK(semel_claim_all(claims, requests, outcomes, 65537, &all) == SEMEL_TOO_MANY_KEYS &&
        all == 0);
  for (i = 0; i < 3; ++i) semel_buffer_free(&outcomes[i].owner);
}

static void test_batches(semel_engine* engine) {
  semel_claims* claims = open_claims(engine, "batch", "call");
  const char* keys[3] = {"a", "b", "a"};
  semel_request requests[3];
  semel_claim_outcome outcomes[3];
  semel_owner_call calls[3];
  semel_owner_outcome owned[3];
  int all = 1;
  int i;
  for (i = 0; i < 3; ++i) {
    requests[i] = request_for(keys[i]);
    SEMEL_INIT(outcomes[i]);
    SEMEL_INIT(owned[i]);
  }
  CHECK_OK(semel_claim_batch(claims, requests, outcomes, 3));
  CHECK(outcomes[0].answer == SEMEL_GRANTED && outcomes[1].answer == SEMEL_GRANTED);
  CHECK(outcomes[2].answer == SEMEL_IN_FLIGHT && outcomes[2].folded_onto == 0);
  for (i = 0; i < 3; ++i) calls[i] = owner_call_for(keys[i], outcomes[i].epoch, keys[i]);
  calls[2].epoch = 1;
  CHECK_OK(semel_complete_batch(claims, calls, owned, 3));
  CHECK(owned[0].answer == SEMEL_OWNER_OK && owned[1].answer == SEMEL_OWNER_OK);
  CHECK(owned[2].answer == SEMEL_OWNER_STALE);
  CHECK_OK(semel_claim_batch(claims, requests, outcomes, 3));
  CHECK(outcomes[1].answer == SEMEL_REPLAY && HOLDS(outcomes[1].result, "b"));
  CHECK_OK(semel_claim_batch(claims, NULL, NULL, 0));
  CHECK_OK(semel_complete_batch(claims, NULL, NULL, 0));
  CHECK(semel_claim_batch(claims, requests, outcomes, 65537) == SEMEL_TOO_MANY_KEYS);
  CHECK(semel_complete_batch(claims, calls, owned, 65537) == SEMEL_TOO_MANY_KEYS);
  requests[1].wait_ms = 5;
  CHECK(semel_claim_batch(claims, requests, outcomes, 3) == SEMEL_BAD_OPTION);
  CHECK(semel_claim_all(claims, requests, outcomes, 3, &all) == SEMEL_BAD_OPTION && all == 0);
  requests[1].wait_ms = 0;
  outcomes[2].size = 24;
  CHECK(semel_claim_batch(claims, requests, outcomes, 3) == SEMEL_BAD_OPTION);
  for (i = 0; i < 3; ++i) {
    semel_buffer_free(&outcomes[i].result);
    semel_buffer_free(&outcomes[i].owner);
    semel_buffer_free(&owned[i].result);
  }
}

int main(int count, char** arguments) {
  semel_engine* engine;
  if (count != 2) {
    fprintf(stderr, "c_abi_test DIRECTORY | -   (of a storage that is not there yet; -: none)\n");
    return 2;
  }
  test_errors();
  test_open();
  engine = open_engine(NULL);
  test_set(engine);
  test_numbers_and_ttls(engine);
  test_guards(engine);
  test_claims(engine);
  test_requests(engine);
  test_given(engine);
  test_issued(engine);
  test_all_or_none(engine);
  test_batches(engine);
  CHECK_OK(semel_engine_close(engine));
  test_lengths();
  test_patterns();
  test_locks();
  test_permits();
  test_rwlock();
  test_debounces();
  test_rates();
  test_waits(arguments[1]);
  test_steps();
  if (strcmp(arguments[1], "-") != 0) test_restart(arguments[1]);
  printf("c_abi: %d checks, %d failures\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
