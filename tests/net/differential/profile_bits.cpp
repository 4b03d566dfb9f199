#include "tests/net/differential/profile_bits.hpp"

#include <string>

#include "base/ascii.hpp"

namespace semel::tests {
namespace {

const Words ends{"0",
                 "1",
                 "-1",
                 "2",
                 "7",
                 "8",
                 "9",
                 "-2",
                 "-8",
                 "-9",
                 "15",
                 "100",
                 "-1000",
                 "<near 0>",
                 "<near 0>",
                 "<near 0>",
                 "<near 0>",
                 "<near 0>",
                 "9223372036854775807",
                 "-9223372036854775808",
                 "x",
                 "",
                 "01"};
const Words offsets{"0",        "1",        "7",        "8",          "63",
                    "64",       "100",      "<offset>", "<offset>",   "<offset>",
                    "<offset>", "<offset>", "-1",       "4294967296", "x"};
const Words counted{"0",  "1",  "5",  "#0", "#1", "#2",  "#9", "<offset>", "<offset>",   "<offset>",
                    "60", "65", "#3", "#4", "#",  "#-1", "-1", "##1",      "4294967296", "#x"};
const Words types{"u8",  "i8",  "u1",  "i1",  "u63", "i64", "i63", "u5", "i5",  "u16", "i32", "u32",
                  "u33", "i17", "u64", "i65", "i0",  "u",   "x8",  "",   "i-1", "u08", "U8"};
const Words operands{"0",
                     "1",
                     "-1",
                     "127",
                     "128",
                     "255",
                     "256",
                     "-128",
                     "-129",
                     "100",
                     "-100",
                     "9223372036854775807",
                     "-9223372036854775808",
                     "9223372036854775806",
                     "4611686018427387904",
                     "-4611686018427387905",
                     "<integer>",
                     "<integer>",
                     "x",
                     "9223372036854775808",
                     ""};
const Words strings{"",
                    "a",
                    std::string(1, '\0'),
                    "\xff",
                    "\xff\xff\xff",
                    std::string("\0\0\x01", 3),
                    "foobar",
                    "12",
                    "-5",
                    std::string(30, '\xff'),
                    std::string(30, '\0'),
                    std::string(20, '\xff') + "a" + std::string(20, '\xff'),
                    "<bytes>",
                    "<bytes>",
                    "<bytes>"};
const Words texts{"ohmytext", "mynewtext", "abcabcabc", "cbacba", "aXbXcX", "<bytes>", "", "zzzz"};

/// A HyperLogLog of these encoding, count and registers.
std::string hll_of(char encoding, const std::string& count, const std::string& registers) {
  return std::string{"HYLL"} + encoding + std::string(3, '\0') + count + registers;
}

const std::string zero_count(8, '\0');
const std::string no_count = std::string(7, '\0') + '\x80';

const Words hyperloglogs{
    hll_of('\x01', zero_count, "\x7f\xff"),
    hll_of('\x01', no_count, "\x7f\xff"),
    hll_of('\x01', no_count, "\x7f\xfe\x80"),
    hll_of('\x01', no_count, "\x7f\xfb\x83"),
    hll_of('\x01', no_count,
           "\x7f\xf0\x80\x84\x84\x84\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"),
    hll_of('\x01', no_count, std::string(256, '\x3f')),
    hll_of('\x01', no_count, std::string(4'096, '\x83')),
    hll_of('\x01', no_count, std::string(4'096, '\xff')),
    hll_of('\0', no_count, std::string(12'288, '\0')),
    hll_of('\0', no_count, std::string(12'288, '\x11')),
    hll_of('\0', no_count, std::string(12'288, '\xff')),
    hll_of('\0', "\x05" + std::string(7, '\0'), std::string(12'288, '\x11'))};

/// Damaged: too few registers, too many, no such encoding, too short. Of several elements a
/// redis-server adds those in front of the first that meets the damage; we add none.
const Words damaged_ones{"",
                         "HYLL",
                         "HYL",
                         std::string(16, 'H'),
                         "12",
                         hll_of('\x01', no_count, "\x7f\xff\x80"),
                         hll_of('\x01', no_count, "\x01\x01"),
                         hll_of('\x01', no_count, ""),
                         hll_of('\x01', no_count, std::string(257, '\x3f')),
                         hll_of('\x02', no_count, "\x7f\xff"),
                         hll_of('\0', no_count, std::string(12'287, '\0')),
                         hll_of('\0', no_count, std::string(12'289, '\0'))};

}  // namespace

Profile bits_profile() {
  return {.name = "bits",
          .forms = R"(
SET K V; SET K V; SET K V; APPEND K V; HSET K f v; DEL K; GET K; GET K; TYPE K; STRLEN K;
PEXPIRE K T; PERSIST K; PTTL K;
SETBIT K F B; SETBIT K F B; SETBIT K F B; SETBIT K F B; GETBIT K F; GETBIT K F;
BITCOUNT K; BITCOUNT K; BITCOUNT K E E; BITCOUNT K E E; BITCOUNT K E E U; BITCOUNT K E E U;
BITCOUNT K E; BITCOUNT K E E U E; BITPOS K B; BITPOS K B E; BITPOS K B E E; BITPOS K B E E;
BITPOS K B E E U; BITPOS K B E E U; BITPOS K B E E U E;
BITOP O K K; BITOP O K K K; BITOP O K K K K; BITOP NOT K K; BITOP NOT K K K; BITOP O K nokey;
BITFIELD K; BITFIELD K GET Y C; BITFIELD K SET Y C P; BITFIELD K INCRBY Y C P;
BITFIELD K OVERFLOW W INCRBY Y C P; BITFIELD K OVERFLOW W SET Y C P; BITFIELD K GET Y;
BITFIELD K OVERFLOW W INCRBY Y C P OVERFLOW W INCRBY Y C P GET Y C; BITFIELD K SET Y C;
BITFIELD K INCRBY u5 C 3 GET u5 C OVERFLOW FAIL INCRBY i5 C P SET i5 C P GET i64 C;
BITFIELD K OVERFLOW; BITFIELD K OVERFLOW W; BITFIELD K O Y C P; BITFIELD K SET Y C P SET Y C x;
BITFIELD_RO K; BITFIELD_RO K GET Y C; BITFIELD_RO K GET Y C GET Y C; BITFIELD_RO K SET u8 0 1;
BITFIELD_RO K OVERFLOW W; BITFIELD_RO K INCRBY Y C P;
SET K X; SET K X; LCS K K; LCS K K; LCS K K LEN; LCS K K IDX; LCS K K IDX; LCS K K IDX WITHMATCHLEN;
LCS K K IDX MINMATCHLEN M; LCS K K IDX MINMATCHLEN M WITHMATCHLEN; LCS K K L; LCS K K L L;
MULTI; EXEC; EXEC; WATCH K; WATCH K)",
          .kinds = {{'K', {"a", "b", "c", "d"}},
                    {'V', strings},
                    {'X', texts},
                    {'E', ends},
                    {'F', offsets},
                    {'C', counted},
                    {'Y', types},
                    {'P', operands},
                    {'B', {"0", "1", "0", "1", "0", "1", "2", "-1", "x", ""}},
                    {'U', {"BIT", "BYTE", "bit", "byte", "BITS", ""}},
                    {'O', {"AND", "OR", "XOR", "and", "or", "xor", "NOT", "NAND", ""}},
                    {'W', {"WRAP", "SAT", "FAIL", "sat", "fail", "NONE"}},
                    {'M', {"0", "1", "2", "3", "-1", "x", "9223372036854775807"}},
                    {'L', {"LEN", "IDX", "WITHMATCHLEN", "MINMATCHLEN", "NONE", "1"}},
                    {'T', {"<ttl>"}}},
          .steps = 12'000,
          .dialects = {"2", "3"},
          .lower_one_in = 6,
          .cut_one_in = 60,
          .script_one_in = 15};
}

Profile bit_events_profile() {
  return {
      .name = "bit events",
      .forms = R"(
SETBIT K F B; SETBIT K F B; GETBIT K F; BITCOUNT K; BITCOUNT K 0 x; BITPOS K 1; BITOP O K K K;
BITOP O K nokey; BITOP NOT K K; BITFIELD K SET u8 C 1; BITFIELD K SET u8 0 1 INCRBY u8 8 1;
BITFIELD K OVERFLOW FAIL INCRBY u2 0 4; BITFIELD K GET u8 0; BITFIELD_RO K GET u8 0; LCS K K;
LCS K K IDX; PFADD H E; PFADD H E E; PFADD H; PFCOUNT H; PFCOUNT H H; PFCOUNT H K; PFMERGE H H;
PFMERGE H H H; PFMERGE H; PFMERGE H K; PFADD K E; SET K v; DEL K; DEL H; HSET K f v;
EXPIRE K 1000; EXPIRE H -1; MULTI; EXEC)",
      .kinds = {{'K', {"a", "b", "c"}},
                {'H', {"g", "h"}},
                {'F', {"0", "1", "9", "x"}},
                {'C', {"0", "8", "9"}},
                {'B', {"0", "1", "2"}},
                {'E', {"x", "y", "z"}},
                {'O', {"AND", "OR", "XOR"}}},
      .steps = 8'000,
      .clients = 3,
      .first_speaker = 1,
      .opening = {"0 PSUBSCRIBE __key*", "1 HELLO 3", "1 PSUBSCRIBE __keyspace@0__:[ah]"},
      .settings = {"CONFIG SET notify-keyspace-events KEA",
                   "CONFIG SET notify-keyspace-events KEAnm",
                   "CONFIG SET notify-keyspace-events K$gn", "CONFIG SET notify-keyspace-events Em",
                   "CONFIG SET notify-keyspace-events ''"},
      .has_bursts = true};
}

namespace {

/// PFSELFTEST in earnest, also by a script: with the settings below redis-server takes a minute for
/// it, or answers that its sparse encoding was not used.
bool is_self_test(const Words& words, std::size_t, bool) {
  return !words.empty() && base::lower_of(words.back()) == "pfselftest";
}

}  // namespace

Profile hyperloglogs_profile() {
  return {
      .name = "hyperloglogs",
      .forms = R"(
PFADD H E; PFADD H E; PFADD H E E E; PFADD H E E E E E E E E E E; PFADD H; PFADD K E;
PFADD H W W W;
PFADD H E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E;
PFCOUNT H; PFCOUNT H; PFCOUNT H H; PFCOUNT H K H; PFCOUNT none; PFCOUNT none H; PFCOUNT K;
PFMERGE H H; PFMERGE H H H; PFMERGE H; PFMERGE H none; PFMERGE H K; PFMERGE K H;
GET H; GET H; GET H; STRLEN H; TYPE H; SET K V; SET K V; SET K U; SET H U; COPY H H REPLACE;
DEL H; DEL K;
HSET K f v; EXPIRE H T; PERSIST H; PTTL H; APPEND K 0; SETRANGE K S 0; SETRANGE K S 0;
PFDEBUG ENCODING H; PFDEBUG DECODE H; PFDEBUG TODENSE K; PFDEBUG GETREG K; PFDEBUG D K;
PFDEBUG ENCODING none; PFSELFTEST none; MULTI; EXEC; EXEC; WATCH H; WATCH H; EVAL_RO I 1 H;
EVAL J 2 H H)",
      .kinds = {{'H', {"h1", "h1", "h2", "h3", "h4"}},
                {'K', {"k1", "k2"}},
                {'U', hyperloglogs},
                {'V', damaged_ones},
                {'E', {"<word>", "<word>", "<word>", "<word>", "<word>", "<bytes>"}},
                {'W', {"a", "b", "c", "d", "e", "f", ""}},
                {'T', {"<ttl>"}},
                {'S', {"0", "4", "5", "15", "16", "17", "20"}},
                {'D', {"ENCODING", "TODENSE", "nothing", "GETREG"}},
                {'I', {"return redis.call('PFCOUNT', KEYS[1])"}},
                {'J',
                 {"redis.call('PFMERGE', KEYS[1], KEYS[2]) "
                  "return redis.call('GET', KEYS[1])"}}},
      .steps = 8'000,
      .settings = {"CONFIG SET hll-sparse-max-bytes 3000", "CONFIG SET hll-sparse-max-bytes 100",
                   "CONFIG SET hll-sparse-max-bytes 18", "CONFIG SET hll-sparse-max-bytes 0",
                   "CONFIG SET hll-sparse-max-bytes 16000", "CONFIG SET hll-sparse-max-bytes 3000"},
      .lower_one_in = 6,
      .cut_one_in = 60,
      .script_one_in = 20,
      .leaves_out = is_self_test};
}

}  // namespace semel::tests
