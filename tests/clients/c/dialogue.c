// hiredis, blocking; RESP2 alone before version 1.0.
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static redisContext* connect_to_server(void) {
  redisContext* context =
      redisConnect(getenv("SEMEL_TEST_HOST"), atoi(getenv("SEMEL_TEST_PORT")));
  const struct timeval timeout = {.tv_sec = 10};
  if (context != NULL && context->err == 0 && redisSetTimeout(context, timeout) == REDIS_OK) {
    return context;
  }
  printf("failed connect: %s\n", context != NULL ? context->errstr : "no memory");
  exit(1);
}

// A reply as one word, in a buffer of the caller's; arrays as [a b].
static size_t show(const redisReply* reply, char* out, size_t room) {
  if (reply == NULL) return (size_t)snprintf(out, room, "broken");
  switch (reply->type) {
    case REDIS_REPLY_INTEGER:
      return (size_t)snprintf(out, room, "%lld", reply->integer);
    case REDIS_REPLY_NIL:
      return (size_t)snprintf(out, room, "nil");
    case REDIS_REPLY_ARRAY: {
      size_t used = (size_t)snprintf(out, room, "[");
      for (size_t i = 0; i < reply->elements && used + 64 < room; ++i) {
        if (i > 0) out[used++] = ' ';
        used += show(reply->element[i], out + used, room - used);
      }
      return used + (size_t)snprintf(out + used, room - used, "]");
    }
    default:
      return (size_t)snprintf(out, room, "%s", reply->str);
  }
}

static bool is_reply(redisReply* reply, const char* expected, char* found, size_t room) {
  show(reply, found, room);
  if (reply != NULL) freeReplyObject(reply);
  return strcmp(found, expected) == 0;
}

static bool good;  // of the check under way

static void expect(redisContext* context, const char* expected, const char* command) {
  char found[4096];
  if (is_reply(redisCommand(context, command), expected, found, sizeof(found))) return;
  if (good) printf("failed %s: %s instead of %s\n", command, found, expected);
  good = false;
}

static void expect_next(redisContext* context, const char* expected) {
  char found[4096];
  void* reply = NULL;
  if (redisGetReply(context, &reply) != REDIS_OK) reply = NULL;
  if (is_reply(reply, expected, found, sizeof(found))) return;
  if (good) printf("failed next reply: %s instead of %s\n", found, expected);
  good = false;
}

static void handshake(redisContext* one, redisContext* two) {
  expect(one, "PONG", "PING");
  expect(two, "OK", "CLIENT SETNAME second");
  expect(two, "second", "CLIENT GETNAME");
  expect(two, "OK", "SELECT 4");
  expect(two, "OK", "SET here 4");
  expect(one, "nil", "GET here");
  expect(two, "OK", "SELECT 0");
}

static void claim(redisContext* one, redisContext* two) {
  expect(one, "nil", "SET claim CONSUMING NX GET PX 60000");
  expect(two, "CONSUMING", "SET claim CONSUMING NX GET PX 60000");
}

static void lock(redisContext* one, redisContext* two) {
  expect(one, "OK", "SET lock mine NX PX 60000");
  expect(two, "nil", "SET lock theirs NX PX 60000");
  expect(one, "OK", "WATCH lock");
  expect(one, "mine", "GET lock");
  expect(one, "OK", "MULTI");
  expect(one, "QUEUED", "DEL lock");
  expect(one, "[1]", "EXEC");
  expect(two, "OK", "SET lock theirs NX PX 60000");
}

static void expiry(redisContext* one, redisContext* two) {
  expect(one, "OK", "SET short 1 PX 30");
  char found[64];
  int tries = 0;
  while (!is_reply(redisCommand(two, "EXISTS short"), "0", found, sizeof(found))) {
    if (++tries == 2000) break;
    poll(NULL, 0, 5);
  }
  expect(two, "-2", "PTTL short");
  expect(one, "OK", "SET long 1 EX 100");
  expect(two, "100", "TTL long");
  expect(two, "1", "PERSIST long");
  expect(one, "-1", "TTL long");
}

static void pubsub(redisContext* one, redisContext* two) {
  redisContext* listener = connect_to_server();
  expect(listener, "[subscribe channel 1]", "SUBSCRIBE channel");
  expect(one, "1", "PUBLISH channel news");
  expect_next(listener, "[message channel news]");
  expect(two, "1", "PUBLISH channel more");
  expect_next(listener, "[message channel more]");
  expect(listener, "[unsubscribe channel 0]", "UNSUBSCRIBE channel");
  expect(listener, "PONG", "PING");
  redisFree(listener);
}

static void pipeline(redisContext* one, redisContext* two) {
  char number[16];
  for (int i = 0; i < 500; ++i) redisAppendCommand(one, "INCR %s", "count");
  for (int i = 1; i <= 500; ++i) {
    snprintf(number, sizeof(number), "%d", i);
    expect_next(one, number);
  }
  expect(two, "500", "GET count");
}

static void transaction(redisContext* one, redisContext* two) {
  expect(one, "OK", "WATCH t");
  expect(two, "OK", "SET t theirs");
  expect(one, "OK", "MULTI");
  expect(one, "QUEUED", "SET t mine");
  expect(one, "nil", "EXEC");
  expect(one, "OK", "MULTI");
  expect(one, "QUEUED", "SET t 1");
  expect(one, "QUEUED", "INCR t");
  expect(one, "[OK 2]", "EXEC");
}

static void errors(redisContext* one, redisContext* two) {
  expect(one, "OK", "SET text abc");
  expect(two, "ERR value is not an integer or out of range", "INCR text");
  expect(two, "ERR wrong number of arguments for 'get' command", "GET");
}

int main(void) {
  static const struct {
    const char* name;
    void (*run)(redisContext*, redisContext*);
  } checks[] = {{"handshake", handshake}, {"claim", claim},       {"lock", lock},
                {"expiry", expiry},       {"pubsub", pubsub},     {"pipeline", pipeline},
                {"errors", errors},       {"transaction", transaction}};
  redisContext* one = connect_to_server();
  redisContext* two = connect_to_server();
  for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); ++i) {
    good = true;
    checks[i].run(one, two);
    if (good) printf("ok %s\n", checks[i].name);
  }
  redisFree(one);
  redisFree(two);
  printf("skipped RESP3: hiredis %d.%d knows RESP2 alone\n", HIREDIS_MAJOR, HIREDIS_MINOR);
  puts("end");
  return 0;
}
