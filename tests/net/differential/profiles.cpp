// What dialogues with a redis-server are made of.
#include <algorithm>

#include "base/ascii.hpp"
#include "tests/net/differential/profile_bits.hpp"
#include "tests/net/differential/random_requests.hpp"

namespace semel::tests {
namespace {

const Words values{"",
                   "0",
                   "10",
                   "-5",
                   "007",
                   "1.5",
                   "abc",
                   "9223372036854775807",
                   "-9223372036854775808",
                   "v\r\n",
                   std::string(60, 'x'),
                   "3.0e3"};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Strings, hashes, ends and databases, one client.
const Profile commands{
    .name = "commands",
    .forms = R"(
SET K V; SET K V O; SET K V O O; SET K V O O O; SET K V NX GET EX T; GET K; GET K; GETSET K V;
GETDEL K; GETEX K; GETEX K O; GETEX K EX T; GETEX K PERSIST; GETEX K PXAT A; SETNX K V;
SETEX K T V; PSETEX K T V; APPEND K V; STRLEN K; GETRANGE K N N; SUBSTR K N N; SETRANGE K S V;
INCR K; DECR K; INCRBY K N; DECRBY K N; INCRBYFLOAT K F; MGET K K K; MSET K V K V; MSET K V K;
MSETNX K V K V; DEL K; DEL K K; UNLINK K; EXISTS K K; TOUCH K K; TYPE K;
EXPIRE K T; EXPIRE K T R; EXPIRE K T R R; PEXPIRE K T; EXPIREAT K N; PEXPIREAT K A; TTL K;
PEXPIREAT K A R; EXPIRETIME K; PEXPIRETIME K; PERSIST K;
RENAME K K; RENAMENX K K; COPY K K; COPY K K REPLACE; COPY K K DB D; COPY K K DB D REPLACE;
MOVE K D; SELECT D; SWAPDB D D; DBSIZE; KEYS *; KEYS [a-b]?; FLUSHDB O;
PING; PING V; PING V V; ECHO V; OBJECT ENCODING K; OBJECT IDLETIME none; CLIENT SETNAME K;
CLIENT GETNAME; CLIENT REPLY ON; WAIT 0 N; nothing V V;
HSET H E W; HSET H E W; HSET H E L E L E L; HSET K E W; HSET H E W E; HMSET H E W E W;
HMSET H E W E; HSETNX H E W; HGET H E; HGET K E; HMGET H E E E; HDEL H E; HDEL H E E E;
HEXISTS H E; HLEN H; HSTRLEN H E; HGETALL H; HGETALL H; HGETALL K; HKEYS H; HVALS H;
HINCRBY H E N; HINCRBY H E 1; HINCRBYFLOAT H E F; HINCRBYFLOAT H E 0.25; HRANDFIELD I;
HRANDFIELD H M; HRANDFIELD H M WITHVALUES; HRANDFIELD H M O; HRANDFIELD I -3 WITHVALUES;
HSCAN H C; HSCAN H C COUNT N; HSCAN H C MATCH f[1-3]; HSCAN H C MATCH * COUNT N; HSCAN H C O N;
SET H V; DEL H; DEL I; HSET I one W; COPY H H REPLACE; RENAME H H; TYPE H; GET H; SET H V GET)",
    .kinds = {{'K', {"a1", "a2", "b1", "c"}},
              {'V', with(values, {std::string(70, 'x')})},
              {'W', values},  // not too long for the order that a hash keeps
              {'N',
               {"0", "1", "-1", "5", "-100", "9223372036854775807", "-9223372036854775808",
                "9223372036854775808", "1x", "", "+1", "01"}},
              {'F', {"1", "0.5", "-2.25", "3e2", "abc", "", " 1", "1e5000"}},
              {'O',
               {"NX", "XX", "GET", "KEEPTTL", "nx", "EX", "PX", "1000000", "PERSIST", "async",
                "O"}},
              {'R', {"NX", "XX", "GT", "LT", "gt", "ZZ"}},
              {'D', {"0", "1", "0", "1", "15", "16", "-1", "x", "4294967296"}},
              {'S', {"<offset>", "<offset>", "<offset>", "<offset>", "<offset>", "3x"}},
              {'T',
               {"<ttl>", "<ttl>", "<ttl>", "<ttl>", "<ttl>", "<ttl>", "<ttl>", "<ttl>", "0", "-1",
                "x", "9223372036854775807"}},
              {'A',
               {"<end>", "<end>", "<end>", "<end>", "<end>", "<end>", "<end>", "<end>", "1", "0",
                "-5", "x"}},
              {'E', {"f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11"}},
              {'L', {"<word>"}},
              {'H', {"h1", "h1", "h1", "h2", "h3"}},
              {'I', {"single"}},  // has one field at most, so that it is known which is taken
              {'M',
               {"0", "1000", "9223372036854775807", "-9223372036854775808", "-0", "x",
                "4611686018427387904", "-9223372036854775807x"}},
              {'C', {"0", "0", "0", "7", "", "-1", "+1", " 1", "1x", "99999999999999999999"}}},
    .steps = 25'000,
    .dialects = {"2", "3"},
    .lower_one_in = 6,
    .cut_one_in = 40};

const Words integers{"-9223372036854775808",
                     "-9223372036854775807",
                     "9223372036854775807",
                     "9223372036854775806",
                     "-1",
                     "0",
                     "1",
                     "<near 0>",
                     "<near 0>",
                     "<near 0>",
                     "<near 0>",
                     "<near 0>"};
const Words numbers{"",
                    "0",
                    "10",
                    "-5",
                    "007",
                    " 1",
                    "1 ",
                    "+1",
                    "-0",
                    "-",
                    "9223372036854775807",
                    "9223372036854775808",
                    "-9223372036854775808",
                    "-9223372036854775809",
                    "99999999999999999999",
                    "abc",
                    "3.14",
                    "1e5",
                    "inf",
                    "-infinity",
                    "nan",
                    "0x1A",
                    "0x1p-3",
                    "1e4931",
                    "1e5000",
                    "1e-5000",
                    "1e-4940",
                    ".5",
                    "5.",
                    "1e",
                    "\tx",
                    "\v1",
                    "0.1",
                    "-0.00000000000000000001"};

Words often(const Words& words, const Words& drawn) {
  Words all = words;
  for (std::size_t i = 0; i < words.size(); ++i) all.push_back(drawn[i % drawn.size()]);
  return all;
}

/// The truth table of strings: every value, number and end at its edges, on few keys, some of
/// which are of another kind.
const Profile strings{
    .name = "strings",
    .forms = R"(
SET K V; SET K V C; SET K V GET; SET K V GET C; SET K V KEEPTTL; SET K V C KEEPTTL;
SET K V PX T; SET K V EX T C; SET K V EXAT B GET; SET K V PXAT A C; SET K V PXAT P; SET K V EX Z;
SETNX K V; GETSET K V; SETEX K T V; SETEX K 0 V; PSETEX K T V; PSETEX K 0 V;
GET K; GET K; EXISTS K; TYPE K; STRLEN K; PEXPIRETIME K; EXPIRETIME K; PTTL K; TTL K;
GETEX K; GETEX K PERSIST; GETEX K PX T; GETEX K EX T; GETEX K EXAT B; GETEX K PXAT A;
GETEX K PXAT P; GETEX K EX Z; INCR K; DECR K; INCRBY K N; INCRBY K N; DECRBY K N; DECRBY K N;
INCRBYFLOAT K V; INCRBYFLOAT K V; GETRANGE K N N; SUBSTR K N N; SETRANGE K S V; APPEND K V;
EXPIRE K T; EXPIRE K -1; EXPIRE K T R; EXPIRE K T R R; PEXPIRE K T; PEXPIRE K T R;
EXPIREAT K B; EXPIREAT K B R; EXPIREAT K B R R; EXPIREAT K 1;
PEXPIREAT K A; PEXPIREAT K A R; PEXPIREAT K A R; PEXPIREAT K A R R; PEXPIREAT K 1000;
DEL K; UNLINK K; GETDEL K; PERSIST K; PERSIST K; HSET K f 1)",
    .kinds = {{'K', {"k0", "k1", "k2", "k3", "k4"}},
              {'V', often(numbers, {"<integer>", "<like a number>", "<bytes>"})},
              {'N', integers},
              {'S',
               {"<near 0>", "<near 0>", "<near 0>", "<near 0>", "<near 0>", "<near 0>",
                "-9223372036854775808", "9223372036854775807", "-1", "0"}},
              {'C', {"NX", "XX"}},
              {'R', {"NX", "XX", "GT", "LT"}},
              {'T', {"<ttl>"}},
              {'Z', {"0", "-1"}},
              {'A', {"<far ms>"}},
              {'B', {"<far s>"}},
              {'P', {"<past>"}}},
    .steps = 40'000};

const Profile globs{.name = "globs",
                    .forms = "KEYS G; KEYS G; KEYS G; KEYS H; SET K v",
                    .kinds = {{'G', {"<glob>"}}, {'H', {"k*"}}, {'K', {"<key of globs>"}}},
                    .steps = 10'000,
                    .settings = {"FLUSHALL"}};

/// Few ends, around the halves of seconds of a time in the year 2100, so that they are often equal.
const Profile absolute_times{
    .name = "absolute times",
    .forms = R"(
SET K v PXAT A; SET K v EXAT B; SET K v KEEPTTL; PEXPIREAT K A; PEXPIREAT K A R; PEXPIREAT K A R;
EXPIREAT K B R; GETEX K PXAT A; RENAME K K; COPY K K REPLACE; PERSIST K; EXPIRETIME K;
PEXPIRETIME K; PEXPIRETIME K; MULTI; EXEC; EXEC)",
    .kinds = {{'K', {"a", "b", "c"}},
              {'A',
               {"4102444800000", "4102444800001", "4102444800002", "4102444800499", "4102444800500",
                "4102444800501", "4102444800999", "4102444801000"}},
              {'B', {"4102444800", "4102444801"}},
              {'R', {"NX", "XX", "GT", "LT"}}},
    .steps = 12'000,
    .script_one_in = 20,
    .has_exact_times = true};

const Profile transactions{.name = "transactions",
                           .forms = R"(
MULTI; MULTI; EXEC; EXEC; EXEC; DISCARD; WATCH K; WATCH K K; WATCH; UNWATCH; SET K 1; SET K 2 NX;
SET K 3 XX; GET K; INCR K; APPEND K x; DEL K; DEL K K; MSET K 1 K 2; MSETNX K 1 K 2; RENAME K K;
COPY K K; EXPIRE K 1000; PERSIST K; EXPIRE K -1; SELECT 0; SELECT 1; SELECT 99; SWAPDB 0 1;
FLUSHDB; FLUSHALL; GET; EXEC more; nothing; PING)",
                           .kinds = {{'K', {"k0", "k1", "k2"}}},
                           .steps = 12'000,
                           .clients = 3,
                           .renew_one_in = 100};

/// HELLO inside a transaction changes how its own reply is written, and lists have no order there.
bool is_unclear_in_transaction(const Words& words, std::size_t, bool in_transaction) {
  const bool is_list = words.size() > 1 && words[1].ends_with("CHANNELS");
  return in_transaction && (base::lower_of(words[0]) == "hello" || is_list);
}

const Profile pubsub{.name = "pubsub",
                     .forms = R"(
SUBSCRIBE C; SUBSCRIBE C C; PSUBSCRIBE P; SSUBSCRIBE C; UNSUBSCRIBE C; UNSUBSCRIBE C C;
UNSUBSCRIBE; PUNSUBSCRIBE P; PUNSUBSCRIBE; SUNSUBSCRIBE C; SUNSUBSCRIBE; PUBLISH C V;
PUBLISH C V; PUBLISH C V; PUBLISH C V; SPUBLISH C V; PUBSUB CHANNELS; PUBSUB CHANNELS P;
PUBSUB CHANNELS P P; PUBSUB CHANNELS G; PUBSUB NUMSUB C C; PUBSUB NUMPAT; PUBSUB SHARDCHANNELS;
PUBSUB SHARDNUMSUB C; PUBSUB HELP; PUBSUB nothing; PUBSUB; SUBSCRIBE; PUBLISH C; MULTI; EXEC;
EXEC; DISCARD; PING; PING V; SET k V; GET k; HELLO D)",
                     .kinds = {{'C', {"a", "b", "ab", "", "c\r\n"}},
                               {'P', {"*", "a*", "?", "[ab]", "nothing"}},
                               {'G', {"", "<glob>"}},
                               {'V', {"", "x", "message", std::string(300, 'y')}},
                               {'D', {"2", "3", "3"}}},
                     .clients = 3,
                     .lower_one_in = 6,
                     .renew_one_in = 300,
                     .leaves_out = is_unclear_in_transaction};

/// redis-server 7.0 sends misses to the caller in the middle of MGET's array.
bool is_mget_of_listener(const Words& words, std::size_t client, bool) {
  return client == 1 && words[0] == "MGET";
}

/// The first only listens, in RESP2; the second listens and speaks, in RESP3; the third speaks.
const Profile events{
    .name = "events",
    .forms = R"(
SET K V; SET K V O; SET K V O O; SET K V NX GET EX T; SET K V PX T XX; GET K; GETSET K V;
GETDEL K; GETEX K; HSET K f V; HSET K f V g V; HSETNX K f V; HMSET K g V; HINCRBY K n 2;
HINCRBYFLOAT K n 0.5; HDEL K f; HDEL K f g n; HGET K f; HGETALL K; HLEN K; GETEX K EX T;
GETEX K PERSIST; GETEX K PXAT 1; SETNX K V; SETEX K T V; PSETEX K T V; APPEND K V; STRLEN K;
GETRANGE K 0 1; SUBSTR K 0 x; SETRANGE K 3 V; SETRANGE K -1 V; INCR K; DECR K; INCRBY K V;
DECRBY K V; INCRBYFLOAT K V; MGET K K K; MSET K V K V; MSETNX K V K V; DEL K; DEL K K K;
UNLINK K K; EXISTS K; EXISTS K K; TOUCH K K; TYPE K; EXPIRE K T; EXPIRE K T NX; PEXPIRE K T XX;
EXPIRE K -1; PEXPIREAT K 1; EXPIREAT K x; PERSIST K; TTL K; RENAME K K; RENAMENX K K; COPY K K;
COPY K K REPLACE; COPY K K DB D REPLACE; MOVE K D; SELECT D; SWAPDB D D; DBSIZE; FLUSHDB;
PUBLISH K V; MULTI; EXEC)",
    .kinds = {{'K', {"a", "b", "c", "d"}},
              {'V', {"", "1", "-5", "1.5", "abc"}},
              {'O', {"NX", "XX", "GET", "KEEPTTL"}},
              {'D', {"0", "0", "1", "16"}},
              {'T', {"1000000", "2000000", "1000000", "2000000", "1000000", "2000000", "0", "x"}}},
    .clients = 3,
    .first_speaker = 1,
    .opening = {"0 PSUBSCRIBE __key*", "1 HELLO 3", "1 PSUBSCRIBE __keyspace@0__:[ab]"},
    .settings = {"CONFIG SET notify-keyspace-events KEA", "CONFIG SET notify-keyspace-events KEAnm",
                 "CONFIG SET notify-keyspace-events K$gxe", "CONFIG SET notify-keyspace-events E",
                 "CONFIG SET notify-keyspace-events Eg", "CONFIG SET notify-keyspace-events K$n",
                 "CONFIG SET notify-keyspace-events Em", "CONFIG SET notify-keyspace-events ''",
                 "CONFIG SET notify-keyspace-events KAmn", "CONFIG SET notify-keyspace-events Ex"},
    .has_bursts = true,
    .leaves_out = is_mget_of_listener};

}  // namespace

const std::vector<Profile>& all_profiles() {
  static const std::vector<Profile> all{commands,
                                        strings,
                                        globs,
                                        absolute_times,
                                        transactions,
                                        pubsub,
                                        events,
                                        zsets_profile(),
                                        large_zsets_profile(),
                                        zset_events_profile(),
                                        geo_profile(),
                                        streams_profile(),
                                        large_streams_profile(),
                                        stream_events_profile(),
                                        lists_profile(),
                                        list_events_profile(),
                                        bits_profile(),
                                        bit_events_profile(),
                                        hyperloglogs_profile(),
                                        profile_of_sets(),
                                        profile_of_set_events()};
  return all;
}

const Profile& profile_named(std::string_view name) {
  return *std::ranges::find(all_profiles(), name, &Profile::name);
}

}  // namespace semel::tests
