// Sorted sets, of one client that is only answered and of two that listen.
#include <algorithm>

#include "base/ascii.hpp"
#include "tests/net/differential/random_requests.hpp"

namespace semel::tests {
namespace {

const std::map<char, Words> zset_kinds{
    {'Z', {"z1", "z1", "z2", "z2", "z3", "z4", "x"}},
    {'S', {"z1", "z2", "z3", "s1", "s2", "x"}},  // inputs of unions: sets, too
    {'F',
     {"1", "2", "3", "2.5", "-1", "0", "-0", "inf", "-inf", "1e3", "3.0", "1e17", "0.1",
      "-1.7976931348623157e308", "5e-324", "1152921504606846976"}},
    {'J', {"1", "-1", "0.5", "inf", "-inf", "nan", "x", "", " 1", "1e400", "0x10"}},
    {'M', {"a", "b", "c", "d", "e", "", "m\r\n", "10", "9", "-1", std::string(64, 'm')}},
    {'B', {"0",   "1",    "2",  "(1",  "(2", "-inf", "+inf", "inf", "(inf", "3",
           "2.5", "(2.5", "-0", "1e3", "",   "(",    "nan",  "x",   " 1",   "1 "}},
    {'L', {"-", "+", "[a", "(a", "[c", "(c", "[", "(", "[b", "[e", "(e", "[9", "a", "", "-x"}},
    {'N',
     {"0", "1", "2", "-1", "-2", "5", "-100", "100", "9223372036854775807", "-9223372036854775808",
      "9223372036854775808", "x"}},
    // Of no random choice: none, or all.
    {'D',
     {"0", "1000", "9223372036854775807", "-9223372036854775808", "4611686018427387904",
      "9223372036854775808", "x"}},
    {'U', {"0", "1", "2", "-1", "x", "3"}},
    {'O', {"NX", "XX", "GT", "LT", "CH", "INCR", "nx", "ZZ"}},
    {'Q', {"BYSCORE", "BYLEX", "REV", "WITHSCORES", "LIMIT", "rev"}},
    {'W', {"1", "2", "0", "-1", "0.5", "inf", "x"}},
    {'G', {"SUM", "MIN", "MAX", "sum", "AVG"}},
    {'E', {"MIN", "MAX", "max", "MID"}},
    {'P', {"a*", "*", "?", "", "[a-c]"}},
    {'T', {"<ttl>"}}};

constexpr std::string_view zset_writes = R"(
ZADD Z F M; ZADD Z F M F M; ZADD Z F M F M F M; ZADD Z O F M; ZADD Z O F M F M; ZADD Z O O F M;
ZADD Z INCR F M; ZADD Z O INCR F M; ZADD Z CH F M F M; ZADD Z CH GT F M; ZADD Z CH LT F M;
ZADD Z J M; ZADD Z F M J M; ZADD Z F; ZINCRBY Z F M; ZINCRBY Z J M; ZREM Z M; ZREM Z M M M;
SADD s1 M M; SADD s2 M; SREM s1 M; SET x v; DEL Z; EXPIRE Z T; PERSIST Z; RENAME Z Z;
COPY Z Z REPLACE; ZREMRANGEBYRANK Z N N; ZREMRANGEBYSCORE Z B B; ZREMRANGEBYLEX Z L L;
ZPOPMIN Z; ZPOPMIN Z U; ZPOPMAX Z; ZPOPMAX Z U; ZPOPMAX Z U U; ZMPOP 1 Z E; ZMPOP 2 Z Z E COUNT U;
ZMPOP U Z Z E; ZMPOP 2 Z Z E COUNT; ZRANGESTORE Z Z N N; ZRANGESTORE Z Z B B BYSCORE;
ZRANGESTORE Z Z B B BYSCORE REV LIMIT N N; ZRANGESTORE Z Z L L BYLEX; ZRANGESTORE Z Z N N Q;
ZUNIONSTORE Z 2 S S; ZUNIONSTORE Z U S S; ZUNIONSTORE Z 2 S S WEIGHTS W W;
ZUNIONSTORE Z 3 S S S AGGREGATE G; ZINTERSTORE Z 2 S S; ZINTERSTORE Z 2 S S WEIGHTS W W AGGREGATE G;
ZDIFFSTORE Z 2 S S; ZDIFFSTORE Z U S S; ZUNIONSTORE Z 1 S WITHSCORES)";

constexpr std::string_view zset_reads = R"(
ZCARD Z; ZSCORE Z M; ZSCORE Z M; ZMSCORE Z M M M; ZRANK Z M; ZREVRANK Z M; ZCOUNT Z B B;
ZLEXCOUNT Z L L; ZRANGE Z N N; ZRANGE Z 0 -1 WITHSCORES; ZRANGE Z N N REV WITHSCORES;
ZRANGE Z B B BYSCORE; ZRANGE Z B B BYSCORE REV LIMIT N N WITHSCORES; ZRANGE Z L L BYLEX;
ZRANGE Z L L BYLEX REV LIMIT N N; ZRANGE Z N N Q; ZRANGE Z B B Q Q; ZRANGE Z L L Q N N;
ZREVRANGE Z N N; ZREVRANGE Z N N WITHSCORES; ZRANGEBYSCORE Z B B; ZRANGEBYSCORE Z B B WITHSCORES;
ZRANGEBYSCORE Z B B LIMIT N N; ZREVRANGEBYSCORE Z B B; ZREVRANGEBYSCORE Z B B LIMIT N N WITHSCORES;
ZRANGEBYSCORE Z B B Q; ZRANGEBYLEX Z L L; ZRANGEBYLEX Z L L LIMIT N N; ZREVRANGEBYLEX Z L L;
ZREVRANGEBYLEX Z L L LIMIT N N; ZRANGEBYLEX Z L L Q; ZRANDMEMBER Z 0; ZRANDMEMBER Z 1000;
ZRANDMEMBER Z 1000 WITHSCORES; ZRANDMEMBER Z D Q; ZRANDMEMBER none D; ZRANDMEMBER s1; ZUNION 2 S S;
ZRANDMEMBER none; ZUNION 2 S S WITHSCORES; ZUNION 3 S S S WEIGHTS W W W WITHSCORES;
ZUNION 3 S S S WEIGHTS W W W AGGREGATE G WITHSCORES; ZUNION U S S G; ZUNION 2 S S WEIGHTS W;
ZINTER 2 S S WITHSCORES; ZINTER 2 S S WEIGHTS W W AGGREGATE G WITHSCORES; ZINTER 3 S S S;
ZINTERCARD 2 S S; ZINTERCARD 2 S S LIMIT U; ZINTERCARD U S S; ZDIFF 2 S S WITHSCORES; ZDIFF 3 S S S;
ZDIFF 2 S S WEIGHTS W W; ZSCAN Z 0; ZSCAN Z 0 COUNT U; ZSCAN Z 0 MATCH P; ZSCAN Z U MATCH P COUNT 5;
ZSCAN Z 0 Q U; ZSCAN Z x; ZSCAN none 0 COUNT; TYPE Z; EXISTS Z; OBJECT ENCODING Z; SCARD Z; GET Z;
MULTI; EXEC; EXEC)";

/// All but random choices and what is said in the middle of a reply.
std::string forms(std::string_view more = {}) {
  return std::string{zset_writes} + ";" + std::string{zset_reads} + std::string{more};
}

/// Words cut off leave a random choice of one member.
bool is_random(const Words& words, std::size_t, bool) {
  return words.size() >= 2 && base::lower_of(words[words.size() - 2]) == "zrandmember" &&
         (words.back().starts_with('z') || words.back() == "x");
}

/// redis-server sends the event of a pop to the caller in the middle of the reply.
bool is_said_within_reply(const Words& words, std::size_t client, bool in_transaction) {
  const std::string name = base::lower_of(words[0]);
  return name.starts_with("zpop") || name == "zmpop" || is_random(words, client, in_transaction);
}

/// Of a skiplist, ranges of members whose scores differ depend on its levels, and an iteration on
/// its table.
bool is_of_small_sets(const Words& words, std::size_t client, bool in_transaction) {
  return is_random(words, client, in_transaction) ||
         std::ranges::any_of(words, [](const std::string& word) {
           const std::string small = base::lower_of(word);
           return small.find("lex") != std::string::npos || small == "zscan";
         });
}

}  // namespace

const Profile& zsets_profile() {
  static const std::string all = forms();
  static const Profile zsets{.name = "zsets",
                             .forms = all,
                             .kinds = zset_kinds,
                             .steps = 15'000,
                             .dialects = {"2", "3"},
                             .lower_one_in = 8,
                             .cut_one_in = 50,
                             .script_one_in = 12,
                             .leaves_out = is_random};
  return zsets;
}

/// Sets that redis-server keeps as skiplists from the first member on.
const Profile& large_zsets_profile() {
  static const std::string all = forms();
  static const std::map<char, Words> kinds = [] {
    std::map<char, Words> changed = zset_kinds;
    // A skiplist keeps the sign of zero, and we do not.
    changed['F'] = {"1", "2", "3", "2.5", "1e17", "0.1", "0.2", "0.3", "inf", "1e-300"};
    changed['W'] = {"1", "2", "0.5", "x"};
    return changed;
  }();
  static const Profile large{.name = "large zsets",
                             .forms = all,
                             .kinds = kinds,
                             .steps = 6'000,
                             .opening = {"0 CONFIG SET zset-max-listpack-entries 0"},
                             .script_one_in = 12,
                             .leaves_out = is_of_small_sets};
  return large;
}

/// The first only listens; the second speaks, and hears what it does.
const Profile& zset_events_profile() {
  static const std::string all = forms("; ZADD Z F M; ZCARD none; ZUNION 2 none S");
  static const Profile events{
      .name = "zset events",
      .forms = all,
      .kinds = zset_kinds,
      .steps = 6'000,
      .clients = 2,
      .first_speaker = 1,
      .opening = {"0 PSUBSCRIBE __key*", "1 HELLO 3", "1 PSUBSCRIBE __keyspace@0__:[sz]*"},
      .settings = {"CONFIG SET notify-keyspace-events KEA",
                   "CONFIG SET notify-keyspace-events KEAnm",
                   "CONFIG SET notify-keyspace-events Kz", "CONFIG SET notify-keyspace-events Em"},
      .leaves_out = is_said_within_reply};
  return events;
}

}  // namespace semel::tests
