/* Every length and every count that semel.h takes, where there is nothing to be read: far beyond
 * the end of memory, one beyond its limit, and NULL. C89. */
#include "check.h"

static semel_engine* engine;
static semel_claims* claims;
static semel_claims* issued;
static semel_lock* lock;
static const char little[16] = "little";

enum { KEY_MOST = 65536, VALUE_MOST = 1048576, OWNER_MOST = 64, BATCH_MOST = 65536 };

static semel_request request_of(const void* key, size_t key_length, const void* owner,
                                size_t owner_length) {
  semel_request request;
  SEMEL_INIT(request);
  request.key = key;
  request.key_length = key_length;
  request.owner = owner;
  request.owner_length = owner_length;
  return request;
}

static semel_owner_call owner_call_of(const void* key, size_t key_length, const void* payload,
                                      size_t payload_length) {
  semel_owner_call call;
  SEMEL_INIT(call);
  call.key = key;
  call.key_length = key_length;
  call.epoch = 1;
  call.payload = payload;
  call.payload_length = payload_length;
  call.on_failure = 2;
  return call;
}

static int never(void* context, const semel_work* work, semel_out* out) {
  (void)work;
  (void)out;
  ++*(int*)context;
  return SEMEL_WORK_DONE;
}

/* --- one function a place for bytes ------------------------------------------------------------
 */

typedef int (*with_bytes)(const void* data, size_t length);

static int set_key(const void* d, size_t n) {
  return semel_set(engine, d, n, "v", 1, NULL, NULL);
}
static int set_value(const void* d, size_t n) {
  return semel_set(engine, "k", 1, d, n, NULL, NULL);
}
static int set_expected(const void* d, size_t n) {
  semel_set_options options;
  SEMEL_INIT(options);
  options.condition = SEMEL_IF_EQUAL;
  options.expected = d;
  options.expected_length = n;
  return semel_set(engine, "k", 1, "v", 1, &options, NULL);
}
static int get_key(const void* d, size_t n) {
  return semel_get(engine, d, n, NULL);
}
static int del_key(const void* d, size_t n) {
  return semel_del(engine, d, n, NULL);
}
static int incr_key(const void* d, size_t n) {
  return semel_incr_by(engine, d, n, 1, NULL);
}
static int expire_key(const void* d, size_t n) {
  return semel_expire(engine, d, n, 1, NULL);
}
static int keep_key(const void* d, size_t n) {
  return semel_expire(engine, d, n, SEMEL_TTL_KEEP, NULL);
}
static int ttl_key(const void* d, size_t n) {
  return semel_ttl(engine, d, n, NULL);
}
static int compare_key(const void* d, size_t n) {
  return semel_compare_and_set(engine, d, n, 0, "v", 1, 0, NULL, NULL);
}
static int compare_value(const void* d, size_t n) {
  return semel_compare_and_set(engine, "c", 1, 77, d, n, 0, NULL, NULL);
}
static int decrement_key(const void* d, size_t n) {
  return semel_decrement_if_at_least(engine, d, n, 1, 0, NULL, NULL);
}
static int transition_key(const void* d, size_t n) {
  return semel_transition(engine, d, n, "a", 1, "b", 1, 0, NULL, NULL);
}
static int transition_from(const void* d, size_t n) {
  return semel_transition(engine, "t", 1, d, n, "b", 1, 0, NULL, NULL);
}
static int transition_to(const void* d, size_t n) {
  return semel_transition(engine, "t", 1, "a", 1, d, n, 0, NULL, NULL);
}
static int seen_field(const void* d, size_t n) {
  semel_bytes field;
  field.data = d;
  field.length = n;
  return semel_first_seen(engine, "rows", &field, 1, 1000, NULL);
}
static int composite_field(const void* d, size_t n) {
  semel_bytes fields[2];
  semel_buffer key = {NULL, 0};
  int error;
  fields[0].data = "a";
  fields[0].length = 1;
  fields[1].data = d;
  fields[1].length = n;
  error = semel_composite_key(fields, 2, &key);
  semel_buffer_free(&key);
  return error;
}
static int fingerprint_payload(const void* d, size_t n) {
  semel_fingerprint print;
  return semel_fingerprint_of(d, n, &print);
}
static int claim_key(const void* d, size_t n) {
  const semel_request request = request_of(d, n, NULL, 0);
  semel_claim_outcome outcome;
  int error;
  SEMEL_INIT(outcome);
  error = semel_claim(claims, &request, &outcome);
  CHECK(outcome.answer != SEMEL_GRANTED || error == SEMEL_BAD_OPTION || error == SEMEL_OK);
  return error;
}
static int claim_owner(const void* d, size_t n) {
  const semel_request request = request_of("o", 1, d, n);
  return semel_claim(claims, &request, NULL);
}
static int wait_key(const void* d, size_t n) {
  semel_request request = request_of(d, n, NULL, 0);
  request.wait_ms = n > KEY_MOST ? 1 : 0; /* the clock stands still */
  return semel_claim(claims, &request, NULL);
}
static int batch_key(const void* d, size_t n) {
  semel_request requests[2];
  semel_claim_outcome outcomes[2];
  int error;
  SEMEL_INIT(outcomes[0]);
  SEMEL_INIT(outcomes[1]);
  requests[0] = request_of("first", 5, NULL, 0);
  requests[1] = request_of(d, n, NULL, 0);
  error = semel_claim_batch(claims, requests, outcomes, 2);
  semel_buffer_free(&outcomes[0].owner);
  return error != SEMEL_OK ? error : outcomes[1].error;
}
static int once_key(const void* d, size_t n) {
  const semel_request request = request_of(d, n, NULL, 0);
  int runs = 0;
  const int error = semel_once(claims, &request, never, &runs, NULL);
  CHECK(runs == 0 || error == SEMEL_OK);
  return error;
}
static int once_owner(const void* d, size_t n) {
  const semel_request request = request_of("oo", 2, d, n);
  int runs = 0;
  return semel_once(claims, &request, never, &runs, NULL);
}
static int consume_key(const void* d, size_t n) {
  const semel_request request = request_of(d, n, NULL, 0);
  semel_consumed consumed;
  int runs = 0;
  int error;
  SEMEL_INIT(consumed);
  error = semel_consume_once(claims, &request, never, &runs, &consumed);
  CHECK(error != SEMEL_KEY_TOO_LONG || (runs == 0 && consumed.verdict == SEMEL_DEAD_LETTER));
  return error;
}
static int issue_key(const void* d, size_t n) {
  return semel_issue(issued, d, n, SEMEL_TTL_POLICY, NULL);
}
static int view_key(const void* d, size_t n) {
  semel_claim_view view;
  SEMEL_INIT(view);
  return semel_claim_get(claims, d, n, &view);
}
static int resolve_key(const void* d, size_t n) {
  return semel_resolve(claims, d, n, SEMEL_RESOLVE_FORGOTTEN, NULL, 0, NULL);
}
static int resolve_result(const void* d, size_t n) {
  return semel_resolve(claims, "r", 1, SEMEL_RESOLVE_DONE, d, n, NULL);
}
static int lock_key(const void* d, size_t n) {
  semel_lock* made = NULL;
  const int error = semel_lock_open(claims, d, n, NULL, &made);
  semel_lock_close(made);
  return error;
}
static int lock_owner(const void* d, size_t n) {
  semel_lock_options options;
  semel_lock* made = NULL;
  int error;
  SEMEL_INIT(options);
  options.owner = d;
  options.owner_length = n;
  error = semel_lock_open(claims, "lo", 2, &options, &made);
  semel_lock_close(made);
  return error;
}
#define OWNER_CALLS(verb)                                       \
  static int verb##_key(const void* d, size_t n) {              \
    const semel_owner_call call = owner_call_of(d, n, NULL, 0); \
    return semel_##verb(claims, &call, NULL);                   \
  }                                                             \
  static int verb##_payload(const void* d, size_t n) {          \
    const semel_owner_call call = owner_call_of("op", 2, d, n); \
    return semel_##verb(claims, &call, NULL);                   \
  }
OWNER_CALLS(complete)
OWNER_CALLS(fail)
OWNER_CALLS(renew)
OWNER_CALLS(release)
static int complete_batch_key(const void* d, size_t n) {
  semel_owner_call call = owner_call_of(d, n, NULL, 0);
  semel_owner_outcome owned;
  int error;
  SEMEL_INIT(owned);
  error = semel_complete_batch(claims, &call, &owned, 1);
  return error != SEMEL_OK ? error : owned.error;
}
static int complete_batch_payload(const void* d, size_t n) {
  semel_owner_call call = owner_call_of("bp", 2, d, n);
  semel_owner_outcome owned;
  int error;
  SEMEL_INIT(owned);
  error = semel_complete_batch(claims, &call, &owned, 1);
  return error != SEMEL_OK ? error : owned.error;
}

typedef struct place {
  const char* name;
  with_bytes call;
  size_t most;
  int error;
  int says_length; /* the detail names it; in a batch there is none */
} place;

#define KEY(name) \
  { #name, name, KEY_MOST, SEMEL_KEY_TOO_LONG, 1 }
#define VALUE(name) \
  { #name, name, VALUE_MOST, SEMEL_VALUE_TOO_LONG, 1 }

static const place places[] = {
    KEY(set_key),
    KEY(get_key),
    KEY(del_key),
    KEY(incr_key),
    KEY(expire_key),
    KEY(keep_key),
    KEY(ttl_key),
    KEY(compare_key),
    KEY(decrement_key),
    KEY(transition_key),
    KEY(seen_field),
    KEY(composite_field),
    KEY(claim_key),
    KEY(wait_key),
    KEY(once_key),
    KEY(consume_key),
    KEY(issue_key),
    KEY(view_key),
    KEY(resolve_key),
    KEY(lock_key),
    KEY(complete_key),
    KEY(fail_key),
    KEY(renew_key),
    KEY(release_key),
    VALUE(set_value),
    VALUE(set_expected),
    VALUE(compare_value),
    VALUE(transition_from),
    VALUE(transition_to),
    VALUE(resolve_result),
    VALUE(complete_payload),
    VALUE(fail_payload),
    VALUE(renew_payload),
    VALUE(release_payload),
    {"batch_key", batch_key, KEY_MOST, SEMEL_KEY_TOO_LONG, 0},
    {"complete_batch_key", complete_batch_key, KEY_MOST, SEMEL_KEY_TOO_LONG, 0},
    {"complete_batch_payload", complete_batch_payload, VALUE_MOST, SEMEL_VALUE_TOO_LONG, 0},
    {"claim_owner", claim_owner, OWNER_MOST, SEMEL_BAD_OPTION, 0},
    {"once_owner", once_owner, OWNER_MOST, SEMEL_BAD_OPTION, 0},
    {"lock_owner", lock_owner, OWNER_MOST, SEMEL_BAD_OPTION, 1},
    {"fingerprint_payload", fingerprint_payload, (size_t)256 << 30, SEMEL_BAD_OPTION, 1}};

static void check_place(const place* at, size_t length) {
  char number[32];
  const int error = at->call(little, length);
  sprintf(number, "%lu", (unsigned long)length);
  ++checks;
  if (error == at->error && (!at->says_length || strstr(semel_error_detail(), number) != NULL)) {
    return;
  }
  ++failures;
  fprintf(stderr, "lengths: %s of %s bytes: %d, not %d (%s)\n", at->name, number, error, at->error,
          semel_error_detail());
}

static void test_bytes(void) {
  const size_t far[] = {(size_t)-1, (size_t)-1 - 1, (size_t)-1 / 2, (size_t)1 << 63};
  size_t i;
  size_t j;
  for (i = 0; i < sizeof places / sizeof places[0]; ++i) {
    for (j = 0; j < sizeof far / sizeof far[0]; ++j) check_place(&places[i], far[j]);
    check_place(&places[i], places[i].most + 1);
    CHECK(places[i].call(NULL, 1) == SEMEL_BAD_OPTION);
    CHECK(strstr(semel_error_detail(), "NULL") != NULL);
    CHECK(places[i].call(NULL, (size_t)-1) == SEMEL_BAD_OPTION);
    CHECK(places[i].call(NULL, 0) != SEMEL_OUTCOME_UNKNOWN);
    CHECK(places[i].call(little, 1) != places[i].error);
  }
}

/* --- counts, and sizes of structs --------------------------------------------------------------
 */

static int writes_far(void* context, const semel_work* work, semel_out* out) {
  const size_t length = *(const size_t*)context;
  (void)work;
  CHECK(semel_out_write(out, little, length) == SEMEL_BAD_OPTION);
  CHECK(semel_out_write(out, NULL, length) == SEMEL_BAD_OPTION);
  return semel_out_write(out, little, 6) == SEMEL_OK ? SEMEL_WORK_DONE : SEMEL_WORK_FAILED;
}

static void test_count(size_t count) {
  semel_bytes field;
  semel_buffer key = {NULL, 0};
  semel_request request = request_for("count");
  semel_claim_outcome outcome;
  semel_owner_call call = owner_call_for("count", 1, NULL);
  semel_owner_outcome owned;
  semel_uint64 cursor = 0;
  semel_once_outcome ran;
  size_t length = count;
  char name[32];
  SEMEL_INIT(outcome);
  SEMEL_INIT(owned);
  SEMEL_INIT(ran);
  field.data = "a";
  field.length = 1;
  CHECK(semel_composite_key(&field, count, &key) == SEMEL_TOO_MANY_KEYS);
  CHECK(semel_composite_key(NULL, count, &key) == SEMEL_BAD_OPTION);
  CHECK(semel_first_seen(engine, "rows", &field, count, 1000, NULL) == SEMEL_TOO_MANY_KEYS);
  sprintf(name, "%lu", (unsigned long)count);
  CHECK(strstr(semel_error_detail(), name) != NULL);
  CHECK(strstr(semel_error_detail(), "65536") != NULL);
  CHECK(semel_claim_batch(claims, &request, &outcome, count) == SEMEL_TOO_MANY_KEYS);
  CHECK(strstr(semel_error_detail(), name) != NULL);
  CHECK(semel_claim_batch(claims, NULL, &outcome, count) == SEMEL_BAD_OPTION);
  CHECK(semel_complete_batch(claims, &call, &owned, count) == SEMEL_TOO_MANY_KEYS);
  CHECK(semel_claims_list(engine, &cursor, count, &key) == SEMEL_BAD_OPTION);
  if (count > (size_t)1 << 40) {
    sprintf(name, "far-%lu", (unsigned long)count);
    request.key = name;
    request.key_length = strlen(name);
    CHECK_OK(semel_once(claims, &request, writes_far, &length, &ran));
    CHECK(HOLDS(ran.value, "little"));
  }
  semel_buffer_free(&ran.value);
}

static void test_size(size_t size) {
  semel_options options;
  semel_engine* other = NULL;
  semel_stats stats;
  semel_policy policy;
  semel_claims* made = NULL;
  semel_request request = request_for("size");
  semel_claim_outcome outcome;
  semel_owner_call call = owner_call_for("size", 1, NULL);
  semel_owner_outcome owned;
  int runs = 0;
  SEMEL_INIT(options);
  SEMEL_INIT(stats);
  SEMEL_INIT(policy);
  SEMEL_INIT(outcome);
  SEMEL_INIT(owned);
  options.size = stats.size = policy.size = outcome.size = owned.size = size;
  CHECK(semel_engine_open(&options, &other) == SEMEL_BAD_OPTION);
  CHECK(strstr(semel_error_detail(), "size = ") != NULL);
  CHECK(semel_engine_stats(engine, &stats) == SEMEL_BAD_OPTION);
  CHECK(semel_policy_named("call", &policy) == SEMEL_BAD_OPTION);
  CHECK(semel_claims_open(engine, "sizes", &policy, &made) == SEMEL_BAD_OPTION);
  CHECK(semel_claim(claims, &request, &outcome) == SEMEL_BAD_OPTION);
  CHECK(semel_claim_batch(claims, &request, &outcome, 1) == SEMEL_BAD_OPTION);
  CHECK(semel_claim_batch(claims, &request, &outcome, 65536) == SEMEL_BAD_OPTION);
  CHECK(semel_complete(claims, &call, &owned) == SEMEL_BAD_OPTION);
  SEMEL_INIT(outcome);
  SEMEL_INIT(owned);
  request.size = call.size = size;
  CHECK(semel_claim(claims, &request, &outcome) == SEMEL_BAD_OPTION);
  CHECK(semel_once(claims, &request, never, &runs, NULL) == SEMEL_BAD_OPTION);
  CHECK(semel_claim_batch(claims, &request, &outcome, 65536) == SEMEL_BAD_OPTION);
  CHECK(semel_complete(claims, &call, &owned) == SEMEL_BAD_OPTION);
  CHECK(semel_complete_batch(claims, &call, &owned, 65536) == SEMEL_BAD_OPTION);
  CHECK(runs == 0);
}

static void test_options(size_t bytes) {
  semel_options options;
  semel_engine* other = NULL;
  int i;
  for (i = 0; i < 3; ++i) {
    SEMEL_INIT(options);
    if (i == 0) options.memory_bytes = bytes;
    if (i == 1) options.key_bytes_max = bytes;
    if (i == 2) options.value_bytes_max = bytes;
    CHECK(semel_engine_open(&options, &other) == SEMEL_BAD_OPTION);
    CHECK(other == NULL && semel_error_detail()[0] != '\0');
  }
}

void test_lengths(void) {
  const size_t far[] = {(size_t)-1, (size_t)-1 - 1, (size_t)-1 / 2, (size_t)1 << 63,
                        BATCH_MOST + 1};
  size_t i;
  engine = open_engine(NULL);
  claims = open_claims(engine, "lengths", "call");
  issued = open_claims(engine, "issued", "token");
  CHECK_OK(semel_lock_open(claims, TEXT("locked"), NULL, &lock));
  test_bytes();
  for (i = 0; i < sizeof far / sizeof far[0]; ++i) {
    test_count(far[i]);
    test_size(far[i]);
    if (i < 4) test_options(far[i]);
  }
  test_size(4097);
  test_size(7);
  semel_lock_close(lock);
  CHECK_OK(semel_engine_close(engine));
}
