// Streams: their ids are explicit, and times of deliveries are either now or long ago.
#include <set>

#include "base/ascii.hpp"
#include "tests/net/differential/random_requests.hpp"

namespace semel::tests {
namespace {

const Words ids{"1-1", "1-2", "2-1", "2-2", "3-1", "4-1", "5-1", "6", "7-0", "0-1", "9-3"};
const Words odd_ids{"0-0",
                    "0",
                    "-",
                    "+",
                    "$",
                    ">",
                    "*",
                    "x",
                    "1-x",
                    "1-",
                    "-1",
                    "",
                    " 4-2",
                    "5--0",
                    "18446744073709551615-18446744073709551615",
                    "18446744073709551616-0",
                    "18446744073709551615",
                    "007-1",
                    "+3-1",
                    "1-*"};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words usually(const Words& words, const Words& sometimes) {
  Words all;
  for (int i = 0; i < 10; ++i) all = with(all, words);
  return with(all, sometimes);
}

std::map<char, Words> stream_kinds() {
  return {
      {'K', {"s1", "s1", "s1", "s2", "s2", "text", "none"}},
      {'S', {"s1", "s2"}},
      {'A', usually({"<id>"}, {"0-*", "9-*", "3-1", "5-1", "x", "-", "0-0", "*x"})},
      {'I', usually(with(ids, {"<near id>", "<near id>", "<near id>"}), odd_ids)},
      {'L', usually({"<near id>", "-", "+", "-", "+", "<open id>", "3", "4"},
                    with(odd_ids, {"(-", "(+", "(0-0", "(18446744073709551615-18446744073709551615",
                                   "(3", "("}))},
      {'F', {"f", "g", "", "field\r\n"}},
      {'V', {"", "1", "value", std::string(70, 'x')}},
      {'N', usually({"0", "1", "2", "3", "5", "8"}, {"-1", "x", "", "9223372036854775808", "007"})},
      {'M', usually({"2", "3", "5", "9", "20"}, {"0", "-1", "x", "9223372036854775807"})},
      {'G', {"g1", "g1", "g1", "g2", "g2", "nog"}},
      {'C', {"c1", "c1", "c2", "c2", "", "c\r\n3"}},
      {'T', usually({"0", "0", "1000000"}, {"-1", "x", "9223372036854775807"})},
      {'D', usually({"1000", "1000000000000", "0"}, {"-5", "x", "9223372036854775807"})},
      {'E', usually({"0", "1", "5", "10", "30"}, {"-1", "-2", "x"})},
      {'O',
       {"FORCE", "JUSTID", "RETRYCOUNT", "3", "TIME", "1000", "IDLE", "2000000", "LASTID", "COUNT",
        "nothing"}},
      {'R', {"MAXLEN", "MINID", "LIMIT", "~", "=", "NOMKSTREAM", "x", "0"}}};
}

// `MINID ~` with an id in between differs behind deleted entries (docs/compatibility.md, XADD); it
// is compared without them in differential_test.cpp.
constexpr std::string_view forms = R"(
XADD S A F V; XADD S A F V; XADD S A F V; XADD S A F V F V; XADD K A F V; XADD K A F;
XADD K A F V F; XADD K NOMKSTREAM A F V; XADD K MAXLEN M A F V; XADD K MAXLEN = M A F V;
XADD K MAXLEN ~ M A F V; XADD K MAXLEN ~ M LIMIT N A F V; XADD K MINID I A F V;
XADD K MINID = I A F V; XADD K MINID ~ 0 LIMIT N A F V; XADD K MAXLEN M LIMIT N A F V;
XADD K R R R A F V; XLEN K; XRANGE K L L; XRANGE K - +; XRANGE K L L COUNT N; XREVRANGE K + -;
XREVRANGE K L L; XREVRANGE K L L COUNT N; XRANGE K L L O N; XDEL K I; XDEL K I I I;
XTRIM K MAXLEN M; XTRIM K MAXLEN = M; XTRIM K MAXLEN ~ M; XTRIM K MINID I;
XTRIM K MINID ~ 0 LIMIT N; XTRIM K R R; XTRIM K R R R R; XSETID K I; XSETID K A;
XSETID K A ENTRIESADDED E; XSETID K A MAXDELETEDID I; XSETID K I ENTRIESADDED E MAXDELETEDID I;
XREAD STREAMS K I; XREAD COUNT N STREAMS K I; XREAD STREAMS K K I I; XREAD STREAMS K $;
XREAD COUNT N BLOCK x STREAMS K I; XREAD NOACK STREAMS K I; XREAD GROUP G C STREAMS K I;
XREAD STREAMS K; XREAD O N STREAMS K I; XREAD STREAMS S S S 0 0 0; TYPE K; OBJECT ENCODING K;
DEL K; RENAME K K; COPY K K; COPY K K REPLACE; EXPIRE K <ttl>; SET text V; SET K V NX; GET K;
EXISTS K; PERSIST K)";

constexpr std::string_view group_forms = R"(
XGROUP CREATE S G I; XGROUP CREATE S G 0; XGROUP CREATE S G $; XGROUP CREATE K G I MKSTREAM;
XGROUP CREATE K G 0 MKSTREAM ENTRIESREAD E; XGROUP CREATE K G I ENTRIESREAD E;
XGROUP CREATE K G I O O; XGROUP SETID K G I; XGROUP SETID K G 0;
XGROUP SETID K G I ENTRIESREAD E; XGROUP SETID K G I MKSTREAM; XGROUP DESTROY K G;
XGROUP CREATECONSUMER K G C; XGROUP DELCONSUMER K G C; XGROUP NOTHING K G; XGROUP HELP;
XINFO HELP; XGROUP CREATE K G I MKSTREAM ENTRIESREAD E ENTRIESREAD E;
XREADGROUP GROUP G C STREAMS K >; XREADGROUP GROUP G C STREAMS S >;
XREADGROUP GROUP G C COUNT N STREAMS S >; XREADGROUP GROUP G C COUNT N STREAMS S >;
XREADGROUP GROUP G C STREAMS S I; XREADGROUP GROUP G C COUNT N STREAMS S 0;
XREADGROUP GROUP G C NOACK STREAMS S >; XREADGROUP GROUP G C STREAMS S S > >;
XREADGROUP GROUP G C STREAMS K K I I; XREADGROUP GROUP G C COUNT N NOACK STREAMS K I;
XREADGROUP COUNT N STREAMS K I x; XREADGROUP GROUP G C BLOCK x STREAMS K I; XACK K G I;
XACK K G I I I; XPENDING K G; XPENDING S G; XPENDING S G - + N; XPENDING S G L L N;
XPENDING K G L L N C; XPENDING S G IDLE T - + N; XPENDING K G IDLE T L L N C; XPENDING K G L;
XPENDING K G IDLE T L; XPENDING K G - + 10 C x y z; XCLAIM S G C T I; XCLAIM S G C T I I I;
XCLAIM S G C T I FORCE; XCLAIM S G C T I I JUSTID; XCLAIM S G C T I TIME D;
XCLAIM S G C T I IDLE D RETRYCOUNT N; XCLAIM S G C T I FORCE TIME D; XCLAIM S G C T I LASTID I;
XCLAIM K G C T I O O O; XCLAIM K G C T I O O; XAUTOCLAIM S G C T I;
XAUTOCLAIM S G C T - COUNT N; XAUTOCLAIM S G C T L JUSTID; XAUTOCLAIM S G C 0 - COUNT N;
XAUTOCLAIM K G C T I O N; XINFO STREAM K; XINFO STREAM S FULL; XINFO STREAM K FULL COUNT N;
XINFO STREAM K O; XINFO STREAM K FULL O N; XINFO GROUPS K; XINFO GROUPS S; XINFO CONSUMERS K G;
XINFO CONSUMERS S G; XINFO nothing K; MULTI; EXEC; EXEC; EXEC)";

/// redis-server 7.0 sends events to the caller in the middle of the arrays of these.
bool is_array_of_listener(const Words& words, std::size_t client, bool) {
  static const std::set<std::string> names{"xclaim", "xautoclaim", "xread", "xreadgroup"};
  return client == 1 && names.contains(base::lower_of(words[0]));
}

}  // namespace

const Profile& streams_profile() {
  static const std::string all = std::string{forms} + ";" + std::string{group_forms};
  static const Profile profile{.name = "streams",
                               .forms = all,
                               .kinds = stream_kinds(),
                               .steps = 12'000,
                               .dialects = {"2", "3"},
                               .lower_one_in = 6,
                               .cut_one_in = 40,
                               .script_one_in = 30};
  return profile;
}

/// Of entries that come by the hundred.
const Profile& large_streams_profile() {
  // A trim that is about takes other nodes behind deleted entries (docs/compatibility.md, XADD).
  static const std::string exact = [] {
    std::string kept;
    std::string_view rest{"EVAL B 1 S J; EVAL B 1 S J; EVAL B 1 S J; EVAL B 1 S J; XRANGE S L +"};
    const std::string all = std::string{forms} + ";" + std::string{group_forms};
    for (std::size_t at = 0; at < all.size();) {
      const std::string form = all.substr(at, all.find(';', at) - at);
      at += form.size() + 1;
      if (form.find('~') == form.npos) kept += form + ";";
    }
    for (int i = 0; i < 5; ++i) kept.append(rest).append(";");
    return kept;
  }();
  static const std::map<char, Words> kinds = [] {
    std::map<char, Words> changed = stream_kinds();
    changed['B'] = {
        "local first = tonumber(string.match(ARGV[1], '^%d+')) for ms = first, first + 120 do "
        "for seq = 0, 2 do redis.pcall('XADD', KEYS[1], ms .. '-' .. seq, 'f', 'v' .. ms) end end",
        "local first = tonumber(string.match(ARGV[1], '^%d+')) for ms = first, first + 120 do "
        "redis.pcall('XADD', KEYS[1], ms .. '-1', 'f', ms, 'name', string.rep('x', ms % 300)) end"};
    changed['J'] = {"<later id>"};
    changed['I'] = usually({"<any id>", "<any id>", "<near id>"}, {"0-0", "0", "+", "3-1"});
    changed['L'] = usually({"<any id>", "<any id>", "<near id>", "<open id>"}, {"-", "+", "0-0"});
    changed['N'] = usually({"1", "3", "70", "150"}, {"0", "x"});
    changed['M'] = usually({"300", "350", "500", "900"}, {"20", "0"});
    changed['R'] = {"MAXLEN", "MINID", "=", "NOMKSTREAM", "x", "400"};
    return changed;
  }();
  static const Profile large{.name = "large streams",
                             .forms = exact,
                             .kinds = kinds,
                             .steps = 2'000,
                             .dialects = {"2", "3"},
                             .script_one_in = 30};
  return large;
}

/// The first only listens, the second listens and speaks, the third speaks.
const Profile& stream_events_profile() {
  static const std::string all = std::string{forms} + ";" + std::string{group_forms};
  static const Profile profile{
      .name = "stream events",
      .forms = all,
      .kinds = stream_kinds(),
      .steps = 6'000,
      .clients = 3,
      .first_speaker = 1,
      .opening = {"0 PSUBSCRIBE __key*", "1 HELLO 3", "1 PSUBSCRIBE __keyspace@0__:[st]*"},
      .settings = {"CONFIG SET notify-keyspace-events KEAmn",
                   "CONFIG SET notify-keyspace-events KEA", "CONFIG SET notify-keyspace-events Kt",
                   "CONFIG SET notify-keyspace-events Em"},
      .leaves_out = is_array_of_listener};
  return profile;
}

}  // namespace semel::tests
