// Dialogues with a redis-server and with us: the same replies, messages and keys, byte for byte.
//
// Words: a *profile* says what clients ask for (profiles.cpp); what may differ is listed in
// known_differences.cpp.
#include <string>
#include "tests/support/catch.hpp"

#include "tests/net/differential/beside.hpp"
#include "tests/net/differential/known_differences.hpp"
#include "tests/net/differential/random_requests.hpp"
#include "tests/support/redis_or_skip.hpp"

namespace semel::tests {
namespace {

void play(std::string_view name) {
  const auto server = redis_or_skip();
  if (server) play_beside(*server, profile_named(name), Catch::rngSeed());
}

}  // namespace

TEST_CASE("dialogues: commands are answered as a redis-server answers them", "[net][redis]") {
  play("commands");
}
TEST_CASE("dialogues: strings at the edges of values, numbers and ends", "[net][redis]") {
  play("strings");
}
TEST_CASE("dialogues: globs match as in a redis-server", "[net][redis][glob]") {
  play("globs");
}
TEST_CASE("dialogues: absolute times, also in scripts and transactions",
          "[net][redis][ttl][once-again-20]") {
  play("absolute times");
}
TEST_CASE("dialogues: transactions of three clients", "[net][redis][transaction]") {
  play("transactions");
}
TEST_CASE("dialogues: three clients receive the same messages", "[net][redis][pubsub]") {
  play("pubsub");
}
TEST_CASE("dialogues: three clients receive the same events", "[net][redis][events]") {
  play("events");
}
TEST_CASE("dialogues: sorted sets", "[net][redis][zset]") {
  play("zsets");
}
TEST_CASE("dialogues: sorted sets that are no listpacks", "[net][redis][zset]") {
  play("large zsets");
}
TEST_CASE("dialogues: two clients receive the events of sorted sets",
          "[net][redis][zset][events]") {
  play("zset events");
}
TEST_CASE("dialogues: places on the map", "[net][redis][geo]") {
  play("geo");
}
TEST_CASE("dialogues: streams and their groups", "[net][redis][streams]") {
  play("streams");
}
TEST_CASE("dialogues: streams of hundreds of entries and their groups", "[net][redis][streams]") {
  play("large streams");
}
TEST_CASE("dialogues: three clients receive the events of streams",
          "[net][redis][streams][events]") {
  play("stream events");
}

TEST_CASE("dialogues: a trim that is about takes the same nodes of a stream",
          "[net][redis][streams]") {
  std::vector<Words> requests;
  for (int i = 1; i <= 350; ++i) requests.push_back({"XADD", "s", std::to_string(i), "f", "v"});
  for (const char* line :
       {"XTRIM s MAXLEN ~ 251", "XLEN s", "XTRIM s MAXLEN ~ 250", "XTRIM s MAXLEN ~ 100 LIMIT 99",
        "XTRIM s MAXLEN ~ 100 LIMIT 100", "XTRIM s MINID ~ 300", "XTRIM s MINID ~ 301 LIMIT 99",
        "XTRIM s MINID ~ 301", "XADD s MAXLEN ~ 10 351 f v", "XLEN s",
        "XTRIM s MAXLEN ~ 0 LIMIT 50", "XTRIM s MAXLEN ~ 0", "XADD s MAXLEN ~ 0 LIMIT 0 352 f v",
        "XINFO STREAM s"}) {
    requests.push_back(words_in(line));
  }
  play_beside(requests);
}

TEST_CASE("dialogues: lists", "[net][redis][lists]") {
  play("lists");
}
TEST_CASE("dialogues: three clients receive the events of lists", "[net][redis][lists][events]") {
  play("list events");
}

TEST_CASE("dialogues: bits, bit fields and common subsequences", "[net][redis][bits]") {
  play("bits");
}
TEST_CASE("dialogues: events of bits and HyperLogLogs", "[net][redis][events][bits]") {
  play("bit events");
}
TEST_CASE("dialogues: HyperLogLogs have the same bytes, damaged ones too", "[net][redis][hll]") {
  play("hyperloglogs");
}
TEST_CASE("dialogues: sets, what is computed of them, and SORT", "[net][redis][objects]") {
  play("sets");
}
TEST_CASE("dialogues: a listener receives the events of sets and SORT",
          "[net][redis][events][objects]") {
  play("set events");
}

TEST_CASE("dialogues: the longest value is the same as a redis-server's", "[net][redis][limits]") {
  const auto server = redis_or_skip({"--proto-max-bulk-len", "1mb"});
  if (!server) return;
  // SETRANGE reaches the limit and one beyond it, APPEND is asked at the limit.
  const Profile longest{
      .name = "longest",
      .forms = "SETRANGE k O x; APPEND k y; STRLEN k; DEL k",
      .kinds = {{'O',
                 {"1048574", "1048575", "1048576", "9223372036854775806", "9223372036854775807"}}},
      .steps = 300};
  play_beside(*server, longest, Catch::rngSeed(), {.value_bytes_max = std::size_t{1} << 20});
}

TEST_CASE("dialogues: what may differ is that and nothing more", "[net][redis]") {
  const auto same = [](const char* request, std::string_view ours, std::string_view theirs) {
    return is_same({words_in(request)}, ours, theirs, false);
  };
  CHECK(same("TTL k", ":1000000\r\n", ":1000001\r\n"));
  CHECK_FALSE(same("TTL k", ":1000000\r\n", ":1003000\r\n"));
  CHECK_FALSE(same("TTL k", ":-1\r\n", ":-2\r\n"));
  CHECK_FALSE(same("INCR k", ":1000000\r\n", ":1000001\r\n"));
  CHECK_FALSE(same("PEXPIRETIME k", ":4000000000001\r\n", ":4000000000000\r\n"));
  CHECK_FALSE(same("EXPIRETIME k", ":4000000001\r\n", ":4000000000\r\n"));
  CHECK_FALSE(is_same({{"PTTL", "k"}}, ":100000\r\n", ":100001\r\n", true));
  CHECK(same("KEYS *", "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "*2\r\n$1\r\nb\r\n$1\r\na\r\n"));
  CHECK_FALSE(same("KEYS *", "*1\r\n$1\r\na\r\n", "*2\r\n$1\r\nb\r\n$1\r\na\r\n"));
  CHECK_FALSE(same("MGET a b", "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "*2\r\n$1\r\nb\r\n$1\r\na\r\n"));
  CHECK(same("OBJECT ENCODING k", "$3\r\nint\r\n", "$3\r\nraw\r\n"));
  CHECK_FALSE(same("OBJECT ENCODING k", "$3\r\nraw\r\n", "$3\r\nint\r\n"));
  CHECK(same("HRANDFIELD h", "$1\r\na\r\n", "$1\r\nb\r\n"));
  CHECK_FALSE(same("HRANDFIELD h", "$-1\r\n", "$1\r\nb\r\n"));
  CHECK(same("XPENDING s g - + 9", "*1\r\n*4\r\n$1\r\na\r\n$1\r\nc\r\n:5\r\n:2\r\n",
             "*1\r\n*4\r\n$1\r\na\r\n$1\r\nc\r\n:7\r\n:2\r\n"));
  CHECK_FALSE(same("XPENDING s g - + 9", "*1\r\n*4\r\n$1\r\na\r\n$1\r\nc\r\n:5\r\n:1\r\n",
                   "*1\r\n*4\r\n$1\r\na\r\n$1\r\nc\r\n:5\r\n:2\r\n"));
  CHECK_FALSE(same("XINFO GROUPS s", "*2\r\n$3\r\nlag\r\n:5\r\n", "*2\r\n$3\r\nlag\r\n:6\r\n"));
  CHECK_FALSE(same("HELLO 9", "-ERR x\r\n", "-NOPROTO\r\n"));
}

}  // namespace semel::tests
