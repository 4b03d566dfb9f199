// Dialogues about sets and SORT.
#include <algorithm>

#include "base/ascii.hpp"
#include "tests/net/differential/random_requests.hpp"

namespace semel::tests {
namespace {

/// Which member goes is chance, and so are, in a transaction, places in a list of members.
bool has_chance(const Words& request, std::size_t, bool in_transaction) {
  constexpr std::size_t script = 3;
  const bool is_script = request.size() > script && request[0] == "EVAL";
  const Words words{request.begin() + (is_script ? script : 0), request.end()};
  const std::string name = base::lower_of(words[0]);
  if (name == "spop") {
    if (words.size() == 1 || words[1] == "none" || words[1] == "one") return false;
    return in_transaction || words.size() == 2 || words[2] == "1" || words[2] == "2" ||
           words[2] == "3";
  }
  constexpr const char* some[] = {"1", "2", "3", "-1", "-2", "-100"};
  const bool draws_some = name == "srandmember" && words.size() == 3 && words[1] != "none" &&
                          std::ranges::find(some, words[2]) != std::end(some);
  if (draws_some) return true;
  constexpr const char* lists[] = {"smembers",    "sinter", "sunion", "sdiff",
                                   "srandmember", "sscan",  "sort",   "sort_ro"};
  const bool stores =
      words.size() > 3 && words[words.size() - 2] == "STORE" && words[words.size() - 3] != "BY";
  return in_transaction && !stores && std::ranges::find(lists, name) != std::end(lists);
}

}  // namespace

/// SORT of sets keeps to weights that differ, or to numbers: where weights are equal redis-server's
/// order is that of its hash table.
Profile profile_of_sets() {
  return {.name = "sets",
          .forms = R"(
SADD S M; SADD S M M M; SADD S M; SADD K M; SADD I N N N; SREM S M; SREM S M M; SREM K M;
SREM I N N; SCARD S; SCARD K; SISMEMBER S M; SISMEMBER K M; SMISMEMBER S M M M; SMEMBERS S;
SMEMBERS K; SMEMBERS I; SMOVE S S M; SMOVE K S M; SMOVE S K M; SMOVE I S N; SPOP none;
SPOP none C; SPOP one; SPOP one C; SPOP K 0; SPOP S 0; SPOP S 100; SPOP K x; SPOP K 100;
SPOP I 9223372036854775807; SPOP S C C; SPOP S -1; SRANDMEMBER none; SRANDMEMBER none C;
SRANDMEMBER K; SRANDMEMBER S 100; SRANDMEMBER S 0; SRANDMEMBER S x; SRANDMEMBER S C C;
SRANDMEMBER S -9223372036854775808; SRANDMEMBER one -3; SINTER S; SINTER S S; SINTER S S K;
SINTER S I S; SINTER none S K; SUNION S; SUNION S S S; SUNION S K; SUNION I S; SDIFF S; SDIFF S S;
SDIFF S S I; SDIFF K S; SDIFF none K; SDIFF I I; SINTERSTORE S S; SINTERSTORE S S S;
SINTERSTORE K S S; SINTERSTORE S K S; SINTERSTORE I I I; SUNIONSTORE S S; SUNIONSTORE S S S;
SUNIONSTORE K S I; SUNIONSTORE S K; SDIFFSTORE S S; SDIFFSTORE S S S; SDIFFSTORE K S;
SDIFFSTORE I I S; SINTERCARD C S; SINTERCARD 2 S S; SINTERCARD 2 S S LIMIT C;
SINTERCARD 3 S I S LIMIT 1; SINTERCARD 1 K; SINTERCARD 1 S O C; SSCAN S 0;
SSCAN S 0 MATCH G COUNT 1000; SSCAN S 0 COUNT 1000; SSCAN K 0; SSCAN none 0 O; SSCAN S x;
SSCAN S 0 COUNT C; SSCAN S 0 O C; SSCAN S; OBJECT ENCODING e1; SADD e1 N N N; SREM e1 N; DEL e1;
OBJECT ENCODING one; SADD one x; SREM one x; SORT S O; SORT S ALPHA; SORT S ALPHA DESC; SORT I;
SORT I DESC; SORT I LIMIT C C; SORT I BY none; SORT S ALPHA LIMIT C C; SORT S BY none STORE K;
SORT I STORE K; SORT I STORE I; SORT K; SORT none; SORT S ALPHA STORE S; SORT I GET #;
SORT I GET # GET w_*; SORT I BY w_*; SORT I BY w_* DESC; SORT I BY h_*->f;
SORT I BY h_*->f GET h_*->g; SORT I GET h_*->f GET #; SORT I LIMIT C; SORT I BY w_* GET # STORE K;
SORT S ALPHA LIMIT 0 2 GET w_* STORE K; SORT S BY none LIMIT C C STORE K; SORT_RO I;
SORT_RO I GET # DESC; SORT_RO I STORE K; SORT I O O; SORT I BY; SORT I GET; SORT J;
SORT J BY none; SORT J BY none DESC LIMIT C C; SORT J BY w_* ALPHA; SORT S GET none ALPHA;
SORT J GET w_* GET #; SORT J ALPHA DESC LIMIT C C; SORT J STORE K; SORT J BY none STORE J; SORT L;
SORT L ALPHA; SORT L ALPHA BY w_*; SORT L BY w_*; SORT L BY none DESC; SORT I BY none STORE J;
SORT S ALPHA STORE L; EXISTS J L; SET w_1 N; SET w_2 N; SET w_3 M; SET w_-7 N; DEL w_1 w_2 w_3;
HSET h_1 f N; HSET h_2 f N g M; HSET h_3 g M; SET h_2 N; DEL h_1 h_2 h_3; SET K M; SET S M; DEL K;
DEL S; HSET K f M; DEL K K; PEXPIRE S T; PEXPIRE I T; PTTL S; TTL I; EXPIRE S -1; PERSIST S;
RENAME S S; COPY S S REPLACE; TYPE S; TYPE K; EXISTS S I; MULTI; EXEC; EXEC; EXEC; DISCARD;
WATCH S; UNWATCH)",
          .kinds = {{'S', {"s1", "s2", "s3", "s4"}},
                    {'I', {"i1", "i2", "i3"}},
                    {'J', {"j1"}},
                    {'L', {"l1"}},
                    {'K', {"k1", "s1", "i1"}},
                    {'M',
                     {"", "a", "b", "c", "abc", "1", "2", "3", "-7", "01", "1.5", "\r\n",
                      "9223372036854775807", "9223372036854775808", std::string(70, 'x'),
                      "\x80\xff\x01", "<integer>"}},
                    {'N',
                     {"1", "2", "3", "-7", "0", "10", "200", "9223372036854775807",
                      "-9223372036854775808", "<integer>"}},
                    {'C', {"0", "1", "2", "3", "-1", "-2", "100", "x", "", "9223372036854775807"}},
                    {'O', {"ALPHA", "DESC", "ASC", "COUNT", "MATCH", "LIMIT", "STORE", "BY", "ZZ"}},
                    {'G', {"*", "a*", "[1-3]", "?"}},
                    {'T', {"<ttl>"}}},
          .steps = 8'000,
          .clients = 2,
          .dialects = {"2", "3"},
          .lower_one_in = 20,
          .cut_one_in = 40,
          .script_one_in = 12,
          .leaves_out = has_chance};
}

/// Another client listens to what the others do.
Profile profile_of_set_events() {
  return {
      .name = "set events",
      .forms = R"(
SADD S M; SADD S M M; SREM S M; SREM S M M M; SMOVE S S M; SPOP S 100; SADD one x; SPOP one;
SINTERSTORE S S S; SUNIONSTORE S S S; SDIFFSTORE S S S; SINTER S S; SUNION S none S; SDIFF S S;
SINTERCARD 2 S none; SMEMBERS S; SISMEMBER S M; SMISMEMBER S M M; SCARD S; SRANDMEMBER S 100;
SSCAN S 0; SSCAN none x; SORT S STORE S; SORT S STORE l; SORT l BY none STORE S;
SORT l LIMIT 9 9 STORE l; SORT none STORE l; SORT S; SORT_RO S; SET S 1; DEL S;
SORT l BY w_* GET h_*->f; SET w_1 5; MULTI; EXEC; EXEC)",
      .kinds = {{'S', {"a", "b", "c"}}, {'M', {"1", "2", "3"}}},
      .steps = 12'000,
      .clients = 3,
      .first_speaker = 1,
      .opening = {"0 PSUBSCRIBE __key*", "1 HELLO 3"},
      .settings = {"CONFIG SET notify-keyspace-events KEA",
                   "CONFIG SET notify-keyspace-events KEAnm",
                   "CONFIG SET notify-keyspace-events Es", "CONFIG SET notify-keyspace-events Kg",
                   "CONFIG SET notify-keyspace-events KEl"},
      .script_one_in = 12,
      .leaves_out = has_chance};
}

}  // namespace semel::tests
