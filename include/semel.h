/* Semel for C, and for whatever calls C: claims, the patterns on top of them, and the store.
 *
 *   semel_engine* engine;
 *   semel_claims* orders;
 *   semel_policy policy;
 *   SEMEL_INIT(policy);
 *   if (semel_engine_open(NULL, &engine) != SEMEL_OK) ..
 *   if (semel_policy_named("call", &policy) != SEMEL_OK) ..
 *   if (semel_claims_open(engine, "orders", &policy, &orders) != SEMEL_OK) ..
 *   .. semel_once(orders, &request, charge, &order, &outcome) ..
 *   semel_engine_close(engine);
 *
 * The C++ header of the same part (semel/claims.hpp, once.hpp, ..) describes what each call does;
 * the comments here add the rules of C. Source: docs/c-abi.md
 *
 * Errors     A function that returns int returns SEMEL_OK or an error of the list below. Unless it
 *            says otherwise nothing was changed then. semel_error_detail() has more.
 *            No C++ exception leaves a function. SEMEL_OUTCOME_UNKNOWN: it was applied in memory,
 *            but its durability is not confirmed, or there was no memory for the answer.
 * Outcomes   An expected answer is not an error: it is in the outcome's fields. Where a call has
 *            both, the outcome is filled also if an error is returned.
 * Bytes      are a pointer and a length, any content. They are copied before a call returns. NULL
 *            with length 0 is empty. Bytes that are too long are refused before they are read: keys
 *            and values as their errors say, labels over 64 bytes, 65536 fields, anything else
 *            over 256 GiB. A const char* is a text that ends with a zero byte.
 * Answers    Zero is none: an outcome that no call has filled is SEMEL_UNANSWERED.
 * Structs    SEMEL_INIT(s) makes all of it zero but its first member, which is its size. In a
 *            struct that is handed in, zero is the usual value of every field; where zero is a
 *            value as well, a bit of the struct's `given` says that it is meant. Later releases add
 *            fields at the end only; a struct of an earlier release works as before, and one of a
 *            later release as long as its unknown fields are zero (else SEMEL_BAD_OPTION).
 * Buffers    A semel_buffer in an outcome is owned by the caller: semel_buffer_free() each. A call
 *            frees what an earlier one has left in it, so an outcome can be used again.
 * Threads    An engine and its claims may be used by all threads at once, a lock by one at a time.
 *            In a child that fork() made every call with a handle of its parent returns
 *            SEMEL_FORKED, blocks nowhere and changes nothing, also where it ends a handle.
 * Times      in milliseconds; of the engine's clock, which no change of the wall clock moves.
 */
#ifndef SEMEL_H
#define SEMEL_H

#include <limits.h>
#include <stddef.h>
#include <string.h> /* for SEMEL_INIT */

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SEMEL_API __attribute__((visibility("default")))
#else
#define SEMEL_API
#endif

/* C89 has neither <stdint.h> nor long long. Where long has 64 bits it is the standard's own way to
 * say so, and "%ld" prints it; elsewhere the compiler's word for it is taken. */
#if LONG_MAX > 2147483647L
typedef long semel_int64;
typedef unsigned long semel_uint64;
#elif defined(__GNUC__)
__extension__ typedef long long semel_int64;
__extension__ typedef unsigned long long semel_uint64;
#else
typedef long long semel_int64;
typedef unsigned long long semel_uint64;
#endif

#define SEMEL_INIT(s) ((void)memset(&(s), 0, sizeof(s)), (void)((s).size = sizeof(s)))

/* --- errors ---------------------------------------------------------------------------------- */

/* The numbers of semel/error_codes.def; none is ever used for anything else. */
enum {
  SEMEL_OK = 0,
  SEMEL_KEY_EMPTY = 100,
  SEMEL_KEY_TOO_LONG = 101,
  SEMEL_VALUE_TOO_LONG = 102,
  SEMEL_INVALID_EXPIRE = 103,
  SEMEL_DB_OUT_OF_RANGE = 104,
  SEMEL_NOT_AN_INTEGER = 105,
  SEMEL_INCREMENT_OVERFLOW = 106,
  SEMEL_DECREMENT_OVERFLOW = 107,
  SEMEL_NOT_A_FLOAT = 108,
  SEMEL_NAN_OR_INFINITY = 109,
  SEMEL_OFFSET_OUT_OF_RANGE = 110,
  SEMEL_WRONG_TYPE = 111,
  SEMEL_WRONG_KIND = 112,
  SEMEL_NO_SUCH_KEY = 113,
  SEMEL_SAME_KEY = 114,
  SEMEL_BAD_DIGEST = 115,
  SEMEL_SYNTAX = 116,
  SEMEL_BAD_OPTION = 117,
  SEMEL_BAD_NAMESPACE = 118,
  SEMEL_TOO_MANY_KEYS = 119,
  SEMEL_BAD_CURSOR = 120,
  SEMEL_BAD_ENCODING = 121,
  SEMEL_NOT_OWNER = 122,
  SEMEL_RESULT_NOT_KEPT = 123,
  SEMEL_NAMESPACE_DIFFERS = 124,
  SEMEL_NAMESPACE_IN_USE = 125,
  SEMEL_NAMESPACE_DROPPED = 126,
  SEMEL_SESSION_CLOSED = 127,
  SEMEL_OBJECT_IN_USE = 128,
  SEMEL_MEMORY_FULL = 201,
  SEMEL_WAITERS_FULL = 202,
  SEMEL_SNAPSHOT_RUNNING = 203,
  SEMEL_TIMED_OUT = 204,
  SEMEL_CLOSING = 205,
  SEMEL_SECTION_HELD = 206,
  SEMEL_FORKED = 207,
  SEMEL_CALLBACK_THREW = 208,
  SEMEL_NO_THREAD = 209,
  SEMEL_OUT_OF_ADDRESS_SPACE = 301,
  SEMEL_OUTCOME_UNKNOWN = 302,
  SEMEL_REFUSED = 303,
  SEMEL_STORAGE_FAILED = 304,
  SEMEL_STORAGE_DAMAGED = 305,
  SEMEL_STORAGE_IN_USE = 306,
  SEMEL_STORAGE_NEWER = 307,
  SEMEL_NOT_LEADER = 308,
  SEMEL_LOG_BUSY = 309,
  SEMEL_VERSIONS_EXHAUSTED = 310
};

/* The library's version, as "0.1.0". */
SEMEL_API const char* semel_version(void);
/* One sentence for people; of a number that is not an error, "unknown error". Never NULL. */
SEMEL_API const char* semel_error_text(int error);
/* What the last call of this thread that returned an error had to say beyond that: which value,
 * which limit; often "". Valid until this thread's next call. Never NULL. */
SEMEL_API const char* semel_error_detail(void);

/* --- bytes ----------------------------------------------------------------------------------- */

typedef struct semel_bytes {
  const void* data;
  size_t length;
} semel_bytes;

/* Bytes that belong to the caller. A zero byte that `length` does not count stands behind them.
 * data == NULL: there are none, which is not the same as no bytes of length 0. */
typedef struct semel_buffer {
  char* data;
  size_t length;
} semel_buffer;

/* Frees the bytes and makes the buffer empty. NULL, and one that is empty, are fine. */
SEMEL_API void semel_buffer_free(semel_buffer* buffer);

/* --- engine ---------------------------------------------------------------------------------- */

typedef struct semel_engine semel_engine;

/* What an answer rests on (docs/guarantees.md). */
enum {
  SEMEL_DURABILITY_USUAL = 0, /* logged with a storage, memory without */
  SEMEL_DURABILITY_MEMORY = 1,
  SEMEL_DURABILITY_LOGGED = 2, /* survives the end of the process */
  SEMEL_DURABILITY_SYNCED = 3  /* survives a power cut */
};

typedef struct semel_options {
  size_t size;
  size_t memory_bytes;           /* hard limit of everything held; 0: 1 GiB */
  size_t key_bytes_max;          /* 0: 64 KiB */
  size_t value_bytes_max;        /* 0: 1 MiB */
  const char* storage_directory; /* made if it is not there, one engine at a time; NULL: none */
  size_t log_bytes;              /* of the storage, an eighth is taken at once; 0: 256 MiB */
  semel_int64 sync_every_ms;     /* of the storage: a power cut takes so much; 0: 1000 */
  int durability;                /* SEMEL_DURABILITY_.. */
  int background_ms;             /* a thread removes ended records, this often, 1..1000; 0: 100, or
                                    none with a manual clock; -1: none, call semel_engine_advance */
  int manual_clock;              /* for tests: time stands still until semel_engine_advance */
  size_t decision_log_bytes;     /* for semel_explain(), a part of memory_bytes; 0: none is kept */
  semel_int64 work_max_ms;       /* a lease that a thread of the engine keeps (keep_lease, keepers)
                                    is given up after so long; 0: an hour */
} semel_options;

/* Opens an engine, and its storage if there is one: what an earlier engine has left there is back
 * when this returns, in so far as its time is not over. `options` may be NULL. `*engine` is to be
 * closed with semel_engine_close(); it is NULL on an error.
 * Errors: SEMEL_BAD_OPTION, SEMEL_OUT_OF_ADDRESS_SPACE, SEMEL_MEMORY_FULL, SEMEL_STORAGE_FAILED
 * (also: the library was built without a storage), SEMEL_STORAGE_DAMAGED, SEMEL_STORAGE_IN_USE,
 * SEMEL_STORAGE_NEWER. */
SEMEL_API int semel_engine_open(const semel_options* options, semel_engine** engine);
/* Ends the engine and all its claims; its locks, waits and runs must have ended before, and no call
 * may be under way. Waits until everything is on the disk, if there is a storage. NULL is fine. It
 * is closed also after an error, which means that changes may be lost after a power cut:
 * SEMEL_OUTCOME_UNKNOWN, SEMEL_REFUSED. */
SEMEL_API int semel_engine_close(semel_engine* engine);
/* Moves a manual clock by `ms` (0: not), then removes ended records and notifies waiters.
 * Only for tests, and for engines without a background thread.
 * Errors: SEMEL_BAD_OPTION (ms < 0, or the clock is not a manual one). */
SEMEL_API int semel_engine_advance(semel_engine* engine, semel_int64 ms);

typedef struct semel_stats {
  size_t size;
  semel_uint64 records; /* those that have ended but are not removed yet included */
  semel_uint64 operations;
  semel_uint64 hits;
  semel_uint64 misses;
  semel_uint64 expired;
  semel_uint64 refused; /* for memory */
  semel_uint64 claims_granted;
  semel_uint64 claims_duplicate;
  semel_uint64 takeovers;
  semel_uint64 stale_owners;
  semel_uint64 waiters;
  semel_uint64 bytes_used;
  semel_uint64 bytes_limit;
  int accepting; /* 0: the storage takes no writes now */
} semel_stats;

/* Errors: SEMEL_BAD_OPTION. */
SEMEL_API int semel_engine_stats(semel_engine* engine, semel_stats* stats);

/* --- store: values under keys, database 0 ---------------------------------------------------- */
/* Errors of all: SEMEL_KEY_EMPTY, SEMEL_KEY_TOO_LONG, SEMEL_WRONG_TYPE, SEMEL_BAD_OPTION; of those
 * that write also SEMEL_VALUE_TOO_LONG, SEMEL_MEMORY_FULL, SEMEL_REFUSED, SEMEL_OUTCOME_UNKNOWN. An
 * answer's pointer may be NULL if it is not of interest. */

/* Times to live that are none: of functions that take a `ttl_ms`. 1.. is so long from now on. */
enum {
  SEMEL_TTL_NONE = 0,                /* it does not end */
  SEMEL_TTL_KEEP = -1,               /* as it was */
  SEMEL_TTL_POLICY = -2147483647 - 1 /* of claims: as the policy says; 0 is an error there */
};

enum {
  SEMEL_ALWAYS = 0,
  SEMEL_IF_ABSENT = 1,
  SEMEL_IF_PRESENT = 2,
  SEMEL_IF_EQUAL = 3,  /* the value is `expected` */
  SEMEL_IF_VERSION = 4 /* the version is `version`; 0: there is none */
};

typedef struct semel_set_options {
  size_t size;
  int condition;
  int get; /* not 0: the previous value is returned */
  semel_int64 ttl_ms;
  const void* expected;
  size_t expected_length;
  semel_uint64 version;
} semel_set_options;

typedef struct semel_set_result {
  size_t size;
  semel_buffer previous; /* with `get`; none: there was nothing */
  semel_uint64 version;  /* of the value now; 0: nothing */
  int stored;            /* 0: the condition refused it */
} semel_set_result;

/* Sets `key` under a condition. `options` NULL: always, without an end. */
SEMEL_API int semel_set(semel_engine* engine, const void* key, size_t key_length, const void* value,
                        size_t value_length, const semel_set_options* options,
                        semel_set_result* result);

typedef struct semel_value {
  size_t size;
  semel_buffer value;   /* none: there is nothing */
  semel_uint64 version; /* for semel_compare_and_set; 0: there is nothing */
} semel_value;

SEMEL_API int semel_get(semel_engine* engine, const void* key, size_t key_length,
                        semel_value* value);
SEMEL_API int semel_del(semel_engine* engine, const void* key, size_t key_length, int* existed);
/* Adds `by` to the number at `key`; none is 0, the ttl stays. Errors: SEMEL_NOT_AN_INTEGER,
 * SEMEL_INCREMENT_OVERFLOW. */
SEMEL_API int semel_incr_by(semel_engine* engine, const void* key, size_t key_length,
                            semel_int64 by, semel_int64* value);
/* *existed 0: there is no such key. Errors: SEMEL_INVALID_EXPIRE. */
SEMEL_API int semel_expire(semel_engine* engine, const void* key, size_t key_length,
                           semel_int64 ttl_ms, int* existed);
/* *remaining_ms: -1 it does not end, -2 there is no such key. */
SEMEL_API int semel_ttl(semel_engine* engine, const void* key, size_t key_length,
                        semel_int64* remaining_ms);

/* Sets `key` if nothing has changed it since it had `version` (0: there was none). `current` is
 * the value now, whether stored or not. */
SEMEL_API int semel_compare_and_set(semel_engine* engine, const void* key, size_t key_length,
                                    semel_uint64 version, const void* value, size_t value_length,
                                    semel_int64 ttl_ms, int* stored, semel_value* current);
/* Takes `amount` (1..) from the number at `key` if at least that much is left above `floor`.
 * `left`: the number now. Errors: SEMEL_NOT_AN_INTEGER. */
SEMEL_API int semel_decrement_if_at_least(semel_engine* engine, const void* key, size_t key_length,
                                          semel_int64 amount, semel_int64 floor, int* taken,
                                          semel_int64* left);
/* Moves the state at `key` from `from` (empty: there must be none yet) to `to`. `state`: what it is
 * now, no bytes of length 0 if there is none. */
SEMEL_API int semel_transition(semel_engine* engine, const void* key, size_t key_length,
                               const void* from, size_t from_length, const void* to,
                               size_t to_length, semel_int64 ttl_ms, int* moved,
                               semel_buffer* state);
/* *first 1 for the first of any number of callers with these fields within `window_ms` (1..). */
SEMEL_API int semel_first_seen(semel_engine* engine, const char* name, const semel_bytes* fields,
                               size_t count, semel_int64 window_ms, int* first);

/* --- rate limits: so many per period ---------------------------------------------------------- */
enum {
  SEMEL_RATE_FIXED = 0,   /* a window that begins with its first call */
  SEMEL_RATE_SLIDING = 1, /* in any span of a period */
  SEMEL_RATE_BUCKET = 2   /* `limit` tokens, of which `refill` come back in a period, evenly */
};

typedef struct semel_rate_terms {
  size_t size;
  int kind;
  semel_uint64 limit;    /* 1..100,000,000 */
  semel_int64 period_ms; /* 1 ms..366 days */
  semel_uint64 refill;   /* of a bucket; 0: as many as `limit` */
} semel_rate_terms;

typedef struct semel_rate {
  size_t size;
  int allowed;            /* 0: nothing was taken */
  semel_uint64 remaining; /* available now, after this call */
  semel_int64
      retry_after_ms; /* not allowed: the cost is available then, if no other call takes any */
  semel_int64 reset_after_ms; /* until the whole limit is available, if no other call takes any */
} semel_rate;

/* Takes `cost` of what the terms allow for `key`, in database 0, or nothing. A cost of 0 takes
 * nothing and is always allowed: it looks. Not allowed is no error. Thread-safe; never waits for
 * more to be there. Errors: those of the store; SEMEL_BAD_OPTION (terms, or a cost above the
 * limit), SEMEL_WRONG_TYPE (the key holds something else). */
SEMEL_API int semel_rate_take(semel_engine* engine, const void* key, size_t key_length,
                              const semel_rate_terms* terms, semel_uint64 cost, semel_rate* rate);

/* --- claims ---------------------------------------------------------------------------------- */

/* A namespace. Lives as long as its engine; there is nothing to be freed. */
typedef struct semel_claims semel_claims;

enum { SEMEL_ON_LEASE_END_RETRY = 0, SEMEL_ON_LEASE_END_IN_DOUBT = 1 };
enum { SEMEL_ON_FAILURE_RELEASE = 0, SEMEL_ON_FAILURE_KEEP = 1, SEMEL_ON_FAILURE_IN_DOUBT = 2 };

typedef struct semel_policy {
  size_t size;
  semel_int64 lease_ms;           /* 0: 60000 */
  semel_int64 result_ttl_ms;      /* 0: a day */
  semel_int64 unique_ttl_ms;      /* 0: as result_ttl_ms */
  semel_int64 failure_ttl_ms;     /* 0: a day */
  semel_int64 attempts_ttl_ms;    /* 0: a day */
  semel_int64 window_ms;          /* 0: no check */
  semel_int64 ahead_ms;           /* 0: no check */
  semel_int64 retry_after_max_ms; /* 0: 1000 */
  unsigned attempts_max;          /* 0: no limit */
  int on_lease_end;
  int on_failure;
  int strict;
  int fail_open;
  int issued;
  int fair;
  int db;
  int on_exception; /* the work threw, or does not know: SEMEL_ON_FAILURE_* */
  /* A sliding window: how long after its completion duplicates may keep a record at most. Each
   * replay lets result_ttl_ms and unique_ttl_ms begin again. At least as long as these. 0: they do
   * not, the window is fixed. */
  semel_int64 sliding_max_ms;
} semel_policy;

/* The usual figures for "call", "message", "payment", "token", "lock", "fair-lock", "debounce",
 * "nonce" or "dedup" (semel/policies.hpp). Errors: SEMEL_BAD_OPTION. */
SEMEL_API int semel_policy_named(const char* name, semel_policy* policy);

/* Makes `name` a namespace; with NULL the one that was declared before. One that is there with
 * this policy is fine; with another one it stays as it is. The same name gives the same handle, a
 * new one after it was dropped. Errors: SEMEL_BAD_NAMESPACE, SEMEL_BAD_OPTION,
 * SEMEL_NAMESPACE_DIFFERS (the detail says in which terms), SEMEL_NAMESPACE_DROPPED (it is being
 * dropped), SEMEL_MEMORY_FULL, SEMEL_REFUSED, SEMEL_OUTCOME_UNKNOWN. */
SEMEL_API int semel_claims_open(semel_engine* engine, const char* name, const semel_policy* policy,
                                semel_claims** claims);

/* Gives a namespace another policy, for all its handles. `changed`, if not NULL, gets what that has
 * changed, as "lease 60000 -> 5000"; "" if nothing. What would forget is refused with
 * SEMEL_NAMESPACE_DIFFERS: another database, keys no longer issued, claims in doubt that would be
 * free. Errors besides: those of semel_claims_open(). */
SEMEL_API int semel_claims_change(semel_engine* engine, const char* name,
                                  const semel_policy* policy, semel_buffer* changed);

/* Which claims may go with their namespace. */
enum {
  SEMEL_DROP_UNUSED = 0,   /* none: there must be none */
  SEMEL_DROP_FINISHED = 1, /* done, failed, issued, given back */
  SEMEL_DROP_ALL = 2       /* held and in doubt, too: their work may run once more */
};

/* For operators: ends a namespace. Its handles stay valid, and every call with one returns
 * SEMEL_NAMESPACE_DROPPED from then on, or has it in its outcome. `gone`, if not NULL, gets how
 * many claims went. Errors: SEMEL_BAD_NAMESPACE, SEMEL_BAD_OPTION, SEMEL_NAMESPACE_IN_USE,
 * SEMEL_NAMESPACE_DROPPED (another call drops it), SEMEL_REFUSED, SEMEL_OUTCOME_UNKNOWN. */
SEMEL_API int semel_claims_drop(semel_engine* engine, const char* name, int rule,
                                semel_uint64* gone);

/* The names of `count` namespaces (1..65536) from `*cursor` on, which is 0 at first and 0 again
 * after the last; each name is followed by a newline. Errors: SEMEL_BAD_OPTION. */
SEMEL_API int semel_claims_list(semel_engine* engine, semel_uint64* cursor, size_t count,
                                semel_buffer* names);

/* Digest of a payload. Its layout never changes. Algorithm 0: none. */
typedef struct semel_fingerprint {
  unsigned char algorithm;
  unsigned char digest[16];
} semel_fingerprint;

/* A piece of work that is asked for: of a claim, of a function that runs once, or of a message. */
typedef struct semel_request {
  size_t size;
  const void* key; /* of a message: its id */
  size_t key_length;
  const void* owner; /* a label for people, up to 64 bytes */
  size_t owner_length;
  const unsigned char* claim_id; /* 16 bytes that are chosen once an attempt; NULL: none */
  semel_fingerprint fingerprint;
  semel_int64 lease_ms;           /* 0: the policy's */
  semel_int64 first_sent_unix_ms; /* 0: not said, but with SEMEL_GIVEN_FIRST_SENT */
  semel_int64 wait_ms;            /* for another that has it, up to a hundred years; 0: not */
  int remote_owner;               /* its lease alone says whether the owner is alive, not also the
                                     end of this process */
  int keep_lease;                 /* renewed while the function runs, by a thread of the engine */
  int without_key;                /* an empty key: run unguarded, not refused */
  unsigned given;                 /* SEMEL_GIVEN_..: zero in these fields is meant */
} semel_request;

/* Bits of `given`. A lease of 0 is an error then, and 0 in first_sent_unix_ms is 1970. */
enum { SEMEL_GIVEN_LEASE = 1, SEMEL_GIVEN_FIRST_SENT = 2 };

/* The zero of every answer, verdict and word about work: none was given. */
enum { SEMEL_UNANSWERED = 0 };

/* Answers to a claim. */
enum {
  SEMEL_GRANTED = 1,
  SEMEL_REGRANTED = 2,
  SEMEL_IN_FLIGHT = 3,
  SEMEL_REPLAY = 4,
  SEMEL_KEPT_FAILURE = 5,
  SEMEL_MISMATCH = 6,
  SEMEL_IN_DOUBT = 7,
  SEMEL_TOO_OLD = 8,
  SEMEL_BUSY = 9,
  SEMEL_UNPROTECTED = 10,
  SEMEL_TOO_NEW = 11,
  SEMEL_UNKNOWN = 12
};

typedef struct semel_claim_outcome {
  size_t size;
  semel_buffer result; /* SEMEL_REPLAY (none: expired), SEMEL_KEPT_FAILURE */
  semel_buffer owner;  /* SEMEL_IN_FLIGHT, SEMEL_IN_DOUBT: the label, none if it has none */
  int answer;
  int takeover; /* granted over a lease that ended or an owner that died */
  int result_expired;
  int poison; /* a kept failure by the limit of attempts */
  unsigned attempt;
  semel_uint64 epoch; /* granted: the fencing token */
  semel_int64 remaining_ms;
  semel_int64 retry_after_ms;
  semel_int64 window_start_unix_ms; /* SEMEL_TOO_OLD */
  semel_int64 window_end_unix_ms;   /* SEMEL_TOO_NEW */
  semel_int64 folded_onto;          /* batch: index of the first request of this key, else -1 */
  semel_uint64 version;
  int error; /* what the call returns, or would return alone */
} semel_claim_outcome;

/* Claims the work for the caller; waits for another owner up to request->wait_ms. Progress: blocks
 * then. Errors: those of the key, SEMEL_BAD_OPTION (also: keep_lease or without_key is set),
 * SEMEL_WRONG_KIND; with SEMEL_BUSY SEMEL_MEMORY_FULL, SEMEL_WAITERS_FULL, SEMEL_REFUSED; with
 * SEMEL_IN_FLIGHT SEMEL_TIMED_OUT, SEMEL_CLOSING; SEMEL_OUTCOME_UNKNOWN. */
SEMEL_API int semel_claim(semel_claims* claims, const semel_request* request,
                          semel_claim_outcome* outcome);

/* Claims one of `permits` permits (1..1024) of the semaphore request->key: at most so many hold one
 * at a time. Waits up to request->wait_ms while all are held, in order of arrival. With
 * SEMEL_GRANTED *slot is 0 to permits - 1, and *key (an empty buffer, or one to reuse; the
 * caller's) is the key of its claim, for the owner's calls: semel_renew(), semel_release(),
 * semel_keep_begin(). Otherwise *key has no bytes. Fewer permits than before: none is granted while
 * as many are held. `slot` may be NULL. Progress: blocks up to wait_ms. Errors: those of
 * semel_claim but SEMEL_TIMED_OUT; SEMEL_BAD_OPTION (permits), SEMEL_WRONG_TYPE. */
SEMEL_API int semel_permit(semel_claims* claims, const semel_request* request, unsigned permits,
                           semel_claim_outcome* outcome, unsigned* slot, semel_buffer* key);

/* What a caller wants of a read/write lock. */
enum { SEMEL_READ = 1, SEMEL_WRITE = 2 };

/* Lets the caller in as one of the readers (128 at most) or as the only writer of request->key, and
 * waits up to request->wait_ms, in the order of arrival. With SEMEL_GRANTED *key (an empty buffer,
 * or one to reuse; the caller's) is the key of its claim, for the owner's calls with
 * outcome->epoch: semel_renew(), semel_release(), semel_keep_begin(). *token is for a fence: that
 * of a reader is at least that of every writer before it and smaller than that of every writer
 * after it. Otherwise *key has no bytes and *token is 0; `token` may be NULL. next_ms: 0, or 1 to
 * 60000 for a caller that asks again with the same claim id and does not wait here: if it is
 * blocked and no other waits in front, it is the next to come in for that long, and no other
 * overtakes it. Progress: blocks up to wait_ms. Errors: those of semel_claim but SEMEL_TIMED_OUT;
 * SEMEL_BAD_OPTION (access, next_ms), SEMEL_WRONG_TYPE. */
SEMEL_API int semel_rwlock(semel_claims* claims, const semel_request* request, int access,
                           semel_int64 next_ms, semel_claim_outcome* outcome, semel_uint64* token,
                           semel_buffer* key);

/* Names the work, and the owner's right to it. */
typedef struct semel_owner_call {
  size_t size;
  const void* key;
  size_t key_length;
  semel_uint64 epoch;  /* of the grant */
  const void* payload; /* complete: the result; fail: the failure */
  size_t payload_length;
  semel_int64 lease_ms; /* renew; 0: the policy's */
  int on_failure;       /* fail; 0: the policy's, 1: given back, 2: kept, 3: in doubt */
  unsigned given;       /* SEMEL_GIVEN_LEASE */
} semel_owner_call;

/* Answers to an owner. */
enum {
  SEMEL_OWNER_OK = 1,
  SEMEL_OWNER_STALE = 2,
  SEMEL_OWNER_CONFLICT = 3,
  SEMEL_OWNER_NOT_OWNER = 4,
  SEMEL_OWNER_UNKNOWN = 5,
  SEMEL_OWNER_REFUSED = 6
};

typedef struct semel_owner_outcome {
  size_t size;
  semel_buffer result; /* SEMEL_OWNER_STALE: the newer owner's, if there is one */
  int answer;
  int late; /* ok, but the lease had ended */
  semel_uint64 version;
  int error; /* what the call returns, or would return alone */
} semel_owner_outcome;

/* The owner's calls: each changes something only if the claim is held with this epoch, and may be
 * repeated after a lost answer. Errors: those of the key, SEMEL_BAD_OPTION, SEMEL_VALUE_TOO_LONG,
 * SEMEL_WRONG_KIND, SEMEL_MEMORY_FULL, SEMEL_REFUSED, SEMEL_OUTCOME_UNKNOWN. */
SEMEL_API int semel_complete(semel_claims* claims, const semel_owner_call* call,
                             semel_owner_outcome* outcome);
SEMEL_API int semel_fail(semel_claims* claims, const semel_owner_call* call,
                         semel_owner_outcome* outcome);
SEMEL_API int semel_renew(semel_claims* claims, const semel_owner_call* call,
                          semel_owner_outcome* outcome);
SEMEL_API int semel_release(semel_claims* claims, const semel_owner_call* call,
                            semel_owner_outcome* outcome);

/* Many at once, an outcome each, in order; cheaper than one after another. A request whose key came
 * before in the batch folds onto that one. All requests (calls, outcomes) of an array have one
 * size. Returns an error only if nothing was done: SEMEL_BAD_OPTION (also: wait_ms is set),
 * SEMEL_TOO_MANY_KEYS (65536); the others stand in the outcomes. */
SEMEL_API int semel_claim_batch(semel_claims* claims, const semel_request* requests,
                                semel_claim_outcome* outcomes, size_t count);
/* All or none, in one step. *granted 0: nothing was changed, and the outcomes show the obstacle. A
 * key that could have been granted alone has the answer SEMEL_GRANTED with epoch 0, which owns
 * nothing. Errors as of semel_claim_batch; SEMEL_BAD_OPTION also: granted is NULL. With a count of
 * 0 *granted is 1. */
SEMEL_API int semel_claim_all(semel_claims* claims, const semel_request* requests,
                              semel_claim_outcome* outcomes, size_t count, int* granted);
SEMEL_API int semel_complete_batch(semel_claims* claims, const semel_owner_call* calls,
                                   semel_owner_outcome* outcomes, size_t count);

/* Where keys are issued (semel_policy::issued): makes `key` one that can be claimed, for `ttl_ms`
 * (1.., or SEMEL_TTL_POLICY: the policy's attempts_ttl_ms). *issued 0: it is known already. */
SEMEL_API int semel_issue(semel_claims* claims, const void* key, size_t key_length,
                          semel_int64 ttl_ms, int* issued);

/* States of a claim. */
enum {
  SEMEL_STATE_ABSENT = 0,
  SEMEL_STATE_HELD = 1,
  SEMEL_STATE_DONE = 2,
  SEMEL_STATE_FAILED = 3,
  SEMEL_STATE_IN_DOUBT = 4,
  SEMEL_STATE_VACANT = 5 /* given back; where keys are issued: unclaimed */
};

typedef struct semel_claim_view {
  size_t size;
  semel_buffer result; /* SEMEL_STATE_DONE (none: expired), SEMEL_STATE_FAILED */
  semel_buffer owner;  /* none if it has no label */
  int state;
  int result_expired;
  int poison;
  unsigned attempts;
  semel_uint64 epoch;
  semel_int64 lease_remaining_ms;
  semel_int64 result_remaining_ms;
  semel_int64 unique_remaining_ms;
  semel_fingerprint fingerprint;
} semel_claim_view;

/* The claim as it is. Errors: those of the key, SEMEL_WRONG_KIND. */
SEMEL_API int semel_claim_get(semel_claims* claims, const void* key, size_t key_length,
                              semel_claim_view* view);

/* The calls about which decisions are kept. */
enum {
  SEMEL_DECIDED_CLAIM = 0,
  SEMEL_DECIDED_COMPLETE = 1,
  SEMEL_DECIDED_FAIL = 2,
  SEMEL_DECIDED_RENEW = 3,
  SEMEL_DECIDED_RELEASE = 4,
  SEMEL_DECIDED_ISSUE = 5,
  SEMEL_DECIDED_FORGET = 6,
  SEMEL_DECIDED_RESOLVE = 7,
  SEMEL_DECIDED_ENDED = 8 /* no call: the record's time had ended */
};

/* One decision, or several in a row that differ in nothing but their time. */
typedef struct semel_decision {
  size_t size;
  semel_buffer outcome;    /* one word, as in a reply of the node */
  semel_buffer owner;      /* of a claim: the caller's label */
  semel_buffer seen_owner; /* of the record that the call met */
  semel_buffer why;        /* for people */
  semel_int64 first_unix_ms;
  semel_int64 last_unix_ms;
  semel_uint64 times;
  semel_uint64 epoch; /* of a grant, or the one that an owner named; 0: none */
  semel_uint64 seen_epoch;
  unsigned attempt; /* 0: not known */
  int call;         /* SEMEL_DECIDED_.. */
  int seen;         /* SEMEL_STATE_.. */
} semel_decision;

/* The recent decisions about the key, from old to new, in `decisions`, which has `count` (1..8)
 * items of one size; *found says how many are filled. Errors: those of the key, SEMEL_BAD_OPTION
 * (count; the engine keeps no decisions), SEMEL_MEMORY_FULL, SEMEL_OUTCOME_UNKNOWN (no memory for
 * the answer). */
SEMEL_API int semel_explain(semel_claims* claims, const void* key, size_t key_length,
                            semel_decision* decisions, size_t count, size_t* found);

enum {
  SEMEL_RESOLVE_DONE = 0,     /* with `result` */
  SEMEL_RESOLVE_RELEASED = 1, /* may be claimed again */
  SEMEL_RESOLVE_FORGOTTEN = 2 /* the record is removed, whatever its state */
};

/* For operators, not for owners: ends a doubt, or any held claim; or forgets a claim. *changed 0:
 * there was nothing to be resolved or forgotten. */
SEMEL_API int semel_resolve(semel_claims* claims, const void* key, size_t key_length, int how,
                            const void* result, size_t result_length, int* changed);

/* --- debounce after the last call ------------------------------------------------------------- */
/* A call stores a payload in place of the one before and moves the time of the run: quiet_ms after
 * the last call, at the latest max_wait_ms after the first (semel/patterns/trailing_debounce.hpp).
 * A loop of any process takes the run when it is due:
 *
 *   semel_debounce(edits, key, length, text, text_length, &terms, NULL);
 *   ..
 *   semel_debounce_run(edits, &request, &turn, NULL);
 *   if (turn.epoch != 0) {
 *     .. turn.payload .., then SEMEL_DEBOUNCE_DONE, or SEMEL_DEBOUNCE_AGAIN if it failed
 *     semel_debounce_end(edits, key, length, turn.epoch, SEMEL_DEBOUNCE_DONE, &owned);
 *   }
 */

typedef struct semel_debounce_terms {
  size_t size;
  semel_int64 quiet_ms;    /* 1 ms..366 days */
  semel_int64 max_wait_ms; /* quiet_ms..366 days; 0: a minute, or quiet_ms if longer */
  semel_int64 keep_ms;     /* a payload that is due is kept so long for its run, 1 ms..366 days;
                              0: a day */
} semel_debounce_terms;

typedef struct semel_debounce_call {
  size_t size;
  semel_int64 due_in_ms; /* until the run, if no other call comes */
  int replaced;          /* a payload that no run has taken */
} semel_debounce_call;

/* States of a key. After an error the state is SEMEL_UNANSWERED. */
enum {
  SEMEL_DEBOUNCE_IDLE = 1,   /* no payload is stored */
  SEMEL_DEBOUNCE_QUIET = 2,  /* the time of the run has not come */
  SEMEL_DEBOUNCE_DUE = 3,    /* it has */
  SEMEL_DEBOUNCE_RUNNING = 4 /* a run has taken the payload, or stands in its way */
};

typedef struct semel_debounce_turn {
  size_t size;
  semel_buffer payload;  /* of the caller's run */
  semel_buffer key;      /* of its claim, for semel_renew(), semel_keep_begin() */
  semel_uint64 epoch;    /* the fencing token of the caller's run; 0: there is none */
  semel_int64 due_in_ms; /* SEMEL_DEBOUNCE_QUIET: until the run */
  int state;
} semel_debounce_turn;

/* What becomes of the payload of a run. */
enum {
  SEMEL_DEBOUNCE_DONE = 1, /* it is forgotten */
  SEMEL_DEBOUNCE_AGAIN = 2 /* it comes again after a quiet time, unless a call has replaced it */
};

typedef struct semel_debounce_view {
  size_t size;
  semel_buffer key;
  semel_int64 due_in_ms; /* SEMEL_DEBOUNCE_QUIET */
  int state;
} semel_debounce_view;

/* Stores the payload. The terms of the last call hold. Repeating a call is safe. `call` may be
 * NULL. Errors: those of the key, SEMEL_BAD_OPTION (terms), SEMEL_VALUE_TOO_LONG, SEMEL_WRONG_TYPE,
 * SEMEL_MEMORY_FULL, SEMEL_REFUSED, SEMEL_OUTCOME_UNKNOWN. */
SEMEL_API int semel_debounce(semel_claims* claims, const void* key, size_t key_length,
                             const void* payload, size_t payload_length,
                             const semel_debounce_terms* terms, semel_debounce_call* call);
/* Takes the payload of request->key if it is due and no other run has it; never waits. turn->epoch
 * not 0: the caller runs, until semel_debounce_end() or the end of the lease. A request with the
 * claim id of the run gets it again. `outcome`, which may be NULL, is that of the claim; of a key
 * that is idle or quiet it is SEMEL_UNANSWERED. Errors: those of semel_claim; SEMEL_BAD_OPTION
 * (wait_ms is set), SEMEL_WRONG_TYPE. Nothing is held after an error. */
SEMEL_API int semel_debounce_run(semel_claims* claims, const semel_request* request,
                                 semel_debounce_turn* turn, semel_claim_outcome* outcome);
/* Ends the run of this epoch. The payload of a call during the run stays. `outcome` is that of the
 * release: if it is not SEMEL_OWNER_OK, or is late, another may have run it as well. Errors: those
 * of the owner's calls; SEMEL_BAD_OPTION (how), SEMEL_WRONG_TYPE. */
SEMEL_API int semel_debounce_end(semel_claims* claims, const void* key, size_t key_length,
                                 semel_uint64 epoch, int how, semel_owner_outcome* outcome);
/* The keys of the namespace with a payload, at most `count` (1..10000), those that are due longest
 * first; not at one moment. `views` has `count` items of one size; *found says how many are filled.
 * Looks at all records of the engine. Errors: SEMEL_BAD_OPTION, SEMEL_OUTCOME_UNKNOWN (no memory
 * for the answer). */
SEMEL_API int semel_debounces(semel_claims* claims, semel_debounce_view* views, size_t count,
                              size_t* found);

/* --- patterns -------------------------------------------------------------------------------- */

/* What a function that runs may want to know. Valid while it runs. */
typedef struct semel_work {
  size_t size;
  const void* key;
  size_t key_length;
  semel_uint64 epoch; /* the fencing token; 0: the run is not guarded */
  unsigned attempt;   /* 1 for the first */
  int takeover;       /* an owner before went silent: its effect may be there already */
} semel_work;

/* Where a function writes what it has to say. Valid while it runs. */
typedef struct semel_out semel_out;
/* Appends bytes. Errors: SEMEL_MEMORY_FULL; SEMEL_BAD_OPTION (out is NULL). */
SEMEL_API int semel_out_write(semel_out* out, const void* data, size_t length);

/* What a function returns. */
enum {
  SEMEL_WORK_DONE = 1,        /* semel_once: what it has written is the result */
  SEMEL_WORK_FAILED = 2,      /* given back or kept, as the policy says; it has written why */
  SEMEL_WORK_REJECTED = 3,    /* no other try will help: kept whatever the policy says */
  SEMEL_WORK_ABANDONED = 4,   /* nothing is known, as when a function of C++ throws */
  SEMEL_WORK_UNKNOWN = 5,     /* it does not know its outcome; it has written the known facts */
  SEMEL_WORK_DONE_WITHOUT = 6 /* done, with a result that cannot be kept; it has written why */
};
/* Abandoned and unknown work ends as semel_policy::on_exception says: given back, kept, or in doubt
 * until semel_resolve(). Any other number, 0 among them, is SEMEL_WORK_UNKNOWN: work counts as done
 * only with SEMEL_WORK_DONE or SEMEL_WORK_DONE_WITHOUT. The function runs on the thread of the call
 * and may use the engine. */
typedef int (*semel_function)(void* context, const semel_work* work, semel_out* out);

/* Answers of semel_once, and reasons of semel_consume_once. */
enum {
  SEMEL_ONCE_RAN = 1,
  SEMEL_ONCE_REPLAYED = 2,
  SEMEL_ONCE_EXPIRED = 3,
  SEMEL_ONCE_IN_FLIGHT = 4,
  SEMEL_ONCE_FAILED = 5, /* also: abandoned */
  SEMEL_ONCE_KEPT_FAILURE = 6,
  SEMEL_ONCE_MISMATCH = 7,
  SEMEL_ONCE_IN_DOUBT = 8,
  SEMEL_ONCE_TOO_OLD = 9,
  SEMEL_ONCE_TOO_NEW = 10,
  SEMEL_ONCE_UNKNOWN = 11,
  SEMEL_ONCE_BUSY = 12,
  SEMEL_ONCE_REFUSED = 13,
  SEMEL_ONCE_SUPERSEDED = 14,
  SEMEL_ONCE_UNRECORDED = 15,
  SEMEL_ONCE_UNGUARDED = 16
};

typedef struct semel_once_outcome {
  size_t size;
  semel_buffer value;   /* ran, replayed, unguarded, unrecorded; superseded: the other's, if done */
  semel_buffer failure; /* failed, kept failure */
  int answer;
  int takeover;
  int late;
  unsigned attempt;
  semel_uint64 epoch;
  semel_int64 retry_after_ms;
} semel_once_outcome;

/* Runs `function` unless it has run or is running under request->key (semel/patterns/once.hpp).
 * `context` is handed to it. Errors: with SEMEL_ONCE_BUSY and SEMEL_ONCE_REFUSED, where it did not
 * run, and with SEMEL_ONCE_UNRECORDED, where it did; SEMEL_RESULT_NOT_KEPT with SEMEL_ONCE_RAN: it
 * is done, but its result is too long or there is no memory for it, and repeats are
 * SEMEL_ONCE_EXPIRED; SEMEL_TIMED_OUT with SEMEL_ONCE_IN_FLIGHT. */
SEMEL_API int semel_once(semel_claims* claims, const semel_request* request,
                         semel_function function, void* context, semel_once_outcome* outcome);

/* The verdict for the broker. */
enum { SEMEL_ACK = 1, SEMEL_RETRY_LATER = 2, SEMEL_ACK_DUPLICATE = 3, SEMEL_DEAD_LETTER = 4 };

typedef struct semel_consumed {
  size_t size;
  semel_buffer failure;
  int verdict;
  int answer; /* SEMEL_ONCE_..: why */
  int unguarded;
  unsigned attempts;
  semel_uint64 epoch;
  semel_int64 retry_after_ms; /* SEMEL_RETRY_LATER */
} semel_consumed;

/* Runs `handler` if the message request->key was not handled yet, and says what to answer to
 * the broker (semel/patterns/consume.hpp), also after an error, which says why the answer is
 * SEMEL_ONCE_BUSY, SEMEL_ONCE_REFUSED or SEMEL_ONCE_UNRECORDED. If the call itself is not valid
 * (SEMEL_BAD_OPTION; also: wait_ms or claim_id is set) the outcome is not filled.
 * Without a key it is SEMEL_DEAD_LETTER, or with request->without_key run unguarded. */
SEMEL_API int semel_consume_once(semel_claims* claims, const semel_request* request,
                                 semel_function handler, void* context, semel_consumed* consumed);

/* One owner of a lock with a lease. The hold may move between threads, but a thread that takes what
 * another thread has taken with this owner, or waits for, gets SEMEL_OBJECT_IN_USE. */
typedef struct semel_lock semel_lock;

typedef struct semel_lock_options {
  size_t size;
  const void* owner;
  size_t owner_length;
  semel_int64 lease_ms; /* 0: the policy's */
  int keep_lease;       /* renewed while it is held, by a thread of the engine */
  int remote_owner;     /* as in semel_request */
  unsigned given;       /* SEMEL_GIVEN_LEASE */
} semel_lock_options;

/* An owner that has the lock not yet. `options` may be NULL. To be ended by semel_lock_close(). */
SEMEL_API int semel_lock_open(semel_claims* claims, const void* key, size_t key_length,
                              const semel_lock_options* options, semel_lock** lock);
/* Takes the lock, or takes it once more; waits up to `wait_ms` (0: not). *token: the fencing token;
 * 0: another has it. Between, semel_renew() with the token as epoch renews the lease. Progress:
 * blocks up to wait_ms. Errors: those of semel_claim but SEMEL_TIMED_OUT. */
SEMEL_API int semel_lock_take(semel_lock* lock, semel_int64 wait_ms, semel_uint64* token);
/* Gives it back, after as many calls as it was taken. *held 0: it was lost before. */
SEMEL_API int semel_lock_give(semel_lock* lock, int* held);
/* The fencing token while this owner has the lock and its lease runs, else 0. Asks the engine. */
SEMEL_API semel_uint64 semel_lock_token(const semel_lock* lock);
/* Gives the lock back if it is held, and ends the owner. NULL is fine. */
SEMEL_API void semel_lock_close(semel_lock* lock);

/* --- waits and runs that do not block -------------------------------------------------------- */
/* For event loops, and for languages that look for signals while they wait: what semel_claim,
 * semel_lock_take, semel_once and semel_consume_once do in one call, in several. Of one wait or
 * run a thread at a time, any thread. Both must have ended before their engine, and their lock. */

/* A place in the line for a claim, and in the end an answer. */
typedef struct semel_wait semel_wait;

/* Asks as semel_claim does, and enters the line if another has it and request->wait_ms allows
 * a wait; does not block. `notify_fd`: -1, or where a byte is written once the answer comes later
 * than this call: a pipe or an eventfd that does not block, the caller's, open until the wait
 * has ended. keep_lease and without_key are for semel_once_begin(). `*wait` is to be ended by
 * semel_wait_end() or semel_once_begin(); it is NULL on an error. Errors: SEMEL_BAD_OPTION,
 * SEMEL_MEMORY_FULL, SEMEL_FORKED; all others are those of the answer. */
SEMEL_API int semel_wait_begin(semel_claims* claims, const semel_request* request, int notify_fd,
                               semel_wait** wait);
/* The same for a lock; semel_wait_end() takes it. In its outcome SEMEL_IN_FLIGHT without an error
 * says that another has it, `epoch` is the fencing token. */
SEMEL_API int semel_lock_begin(semel_lock* lock, semel_int64 wait_ms, int notify_fd,
                               semel_wait** wait);
/* Sleeps until there is an answer, at most `longest_ms` of real time; 0: only looks. *answered 0:
 * not yet. The place in the line is kept. Progress: blocks so long. */
SEMEL_API int semel_wait_for(semel_wait* wait, semel_int64 longest_ms, int* answered);
/* Ends the wait. With an answer: that, as of semel_claim. Without one: leaves the line, and returns
 * SEMEL_IN_FLIGHT with SEMEL_TIMED_OUT. `outcome` NULL: the answer is not wanted, and a grant,
 * even one of this moment, is given back. `wait` NULL is fine. Progress: waits for others only
 * where they leave the line. After SEMEL_BAD_OPTION (the outcome cannot be filled) it goes on. */
SEMEL_API int semel_wait_end(semel_wait* wait, semel_claim_outcome* outcome);

/* A function that runs, without the function. */
typedef struct semel_run semel_run;

/* Ends `wait` as what semel_once was answered. *work, valid while the run lasts: the caller is to
 * do the work. *work NULL: there is none to do. In both cases `*run` is to be ended by
 * semel_once_end(). After SEMEL_BAD_OPTION the wait goes on. */
SEMEL_API int semel_once_begin(semel_wait* wait, const semel_work** work, semel_run** run);
/* Says what became of the work (SEMEL_WORK_..), with its result or why it failed, and ends the run;
 * without work both are not looked at. Returns what semel_once would. After SEMEL_BAD_OPTION (also:
 * `how` is none of SEMEL_WORK_..) and SEMEL_FORKED the run goes on. `run` NULL is fine. */
SEMEL_API int semel_once_end(semel_run* run, int how, const void* data, size_t length,
                             semel_once_outcome* outcome);
/* The same for a message, which never waits for its turn. */
SEMEL_API int semel_consume_begin(semel_claims* claims, const semel_request* request,
                                  const semel_work** work, semel_run** run);
SEMEL_API int semel_consume_end(semel_run* run, int how, const void* data, size_t length,
                                semel_consumed* consumed);

/* --- steps of one piece of work, and leases that are kept ------------------------------------- */

/* A step's memo is what it has brought about; it lives with its claim's record until the work is
 * over, so that the next attempt does not repeat the step (semel/patterns/steps.hpp). Memos belong
 * to the payload that made them. `memo`: data NULL if there is none, and the step may run. Errors:
 * those of the key, SEMEL_NOT_OWNER (the claim is not held with this epoch, or its lease is over:
 * do not run the step), SEMEL_BAD_OPTION (the name is empty or longer than 256 bytes),
 * SEMEL_VALUE_TOO_LONG (1024 memos or 1 MiB for a claim; a recall returns it before the step runs),
 * SEMEL_WRONG_KIND, SEMEL_MEMORY_FULL, SEMEL_REFUSED, SEMEL_OUTCOME_UNKNOWN. */
SEMEL_API int semel_step_recall(semel_claims* claims, const void* key, size_t key_length,
                                semel_uint64 epoch, const void* name, size_t name_length,
                                semel_buffer* memo);
SEMEL_API int semel_step_remember(semel_claims* claims, const void* key, size_t key_length,
                                  semel_uint64 epoch, const void* name, size_t name_length,
                                  const void* memo, size_t memo_length);
/* As semel_complete, with which the memos go. */
SEMEL_API int semel_steps_complete(semel_claims* claims, const semel_owner_call* call,
                                   semel_owner_outcome* outcome);
/* The same for the work of a run, which forgets the memos itself when the work is done.
 * A run that is not guarded has its memos for itself. SEMEL_BAD_OPTION as well: the run has no
 * work. */
SEMEL_API int semel_run_recall(semel_run* run, const void* name, size_t name_length,
                               semel_buffer* memo);
SEMEL_API int semel_run_remember(semel_run* run, const void* name, size_t name_length,
                                 const void* memo, size_t memo_length);

/* Keeps a claim's lease: a thread of the engine renews it when a third of it has passed. */
typedef struct semel_keeper semel_keeper;

/* `lease_ms` 1.., or SEMEL_TTL_POLICY. `*keeper` is to be ended before the engine; it is NULL on an
 * error: that of the key, SEMEL_BAD_OPTION (a lease too short to be kept), SEMEL_FORKED. */
SEMEL_API int semel_keep_begin(semel_claims* claims, const void* key, size_t key_length,
                               semel_uint64 epoch, semel_int64 lease_ms, semel_keeper** keeper);
/* *lost 1: another may have the work. Any thread. */
SEMEL_API int semel_keep_lost(const semel_keeper* keeper, int* lost);
/* No renewal comes after it. NULL is fine. */
SEMEL_API void semel_keep_end(semel_keeper* keeper);

/* --- keys ------------------------------------------------------------------------------------ */

/* The fields as one key that no other list of fields gives (semel/patterns/keys.hpp). */
SEMEL_API int semel_composite_key(const semel_bytes* fields, size_t count, semel_buffer* key);
/* `format` with each "{name}" replaced by its value, escaped so that no two lists of values give
 * one key (format_key() of semel/patterns/keys.hpp). Errors: SEMEL_SYNTAX, SEMEL_BAD_OPTION (a name
 * that is not there, or twice), SEMEL_KEY_EMPTY (a value, or the format). */
SEMEL_API int semel_format_key(const void* format, size_t length, const semel_bytes* names,
                               const semel_bytes* values, size_t count, semel_buffer* key);
/* XXH3-128 of the payload: finds mistakes, does not withstand an enemy. */
SEMEL_API int semel_fingerprint_of(const void* payload, size_t length, semel_fingerprint* print);
/* The same of JSON, whatever the order of its members, its blanks and how its numbers are written:
 * of semel_identity_json(). Errors: as there. */
SEMEL_API int semel_fingerprint_json(const void* json, size_t length, semel_fingerprint* print);

/* What a fingerprint's `algorithm` says. Fingerprints of different numbers are never compared. */
enum {
  SEMEL_XXH3_BYTES = 1,
  SEMEL_SHA256_BYTES = 2,
  SEMEL_XXH3_PARAMETERS = 5,
  SEMEL_XXH3_JSON = 6,   /* of semel_identity_json() */
  SEMEL_SHA256_JSON = 7, /* the first 16 bytes of SHA-256 of the same */
  SEMEL_XXH3_IDENTITY = 8,
  SEMEL_SHA256_IDENTITY = 9 /* of semel_identity_text(); its SHA-256 in hexadecimal is a key */
};

/* The canonical form of JSON, in which numbers are exact (semel/patterns/identity.hpp). Errors:
 * SEMEL_SYNTAX (no JSON, a name twice, a number of more than 10000 places), SEMEL_VALUE_TOO_LONG
 * (16 MiB, 128 levels, 1048576 values), SEMEL_REFUSED (this library was built without Boost). */
SEMEL_API int semel_identity_json(const void* json, size_t length, semel_buffer* text);

/* A call: its operation, its tenant and user, and its arguments. */
typedef struct semel_call_identity {
  size_t size;
  const void* operation; /* 1..512 bytes of UTF-8 */
  size_t operation_length;
  const void* tenant; /* empty: none */
  size_t tenant_length;
  const void* user; /* empty: none */
  size_t user_length;
  const void* arguments; /* JSON */
  size_t arguments_length;
} semel_call_identity;

/* The canonical text of [operation, scope, arguments], equal in every language. Errors: as above;
 * SEMEL_KEY_EMPTY and SEMEL_KEY_TOO_LONG (the operation). */
SEMEL_API int semel_identity_text(const semel_call_identity* call, semel_buffer* text);
/* Its fingerprint, SEMEL_XXH3_IDENTITY. */
SEMEL_API int semel_fingerprint_identity(const semel_call_identity* call, semel_fingerprint* print);

#ifdef __cplusplus
}
#endif

#endif
