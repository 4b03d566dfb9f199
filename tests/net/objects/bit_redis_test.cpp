// Bits of strings and modules, beside a redis-server: edges that a random dialogue does not meet.
#include <string>
#include "tests/support/catch.hpp"

#include "tests/net/differential/beside.hpp"

namespace semel::tests {

TEST_CASE("BITCOUNT and BITPOS of large strings are a redis-server's", "[net][redis][bits]") {
  const std::string large(100'000, '\xff');
  play_beside({{"SET", "k", large + '\x7f' + large},
               {"BITCOUNT", "k"},
               {"BITCOUNT", "k", "99999", "100001"},
               {"BITCOUNT", "k", "799993", "800009", "BIT"},
               {"BITPOS", "k", "0"},
               {"BITPOS", "k", "0", "100001"},
               {"BITPOS", "k", "0", "0", "99999"},
               {"SETBIT", "k", "800000", "1"},
               {"BITPOS", "k", "0"},
               {"BITPOS", "k", "0", "0", "-1"},
               {"BITPOS", "k", "0", "3", "-1", "BIT"}});
}

TEST_CASE("LCS: a table larger than proto-max-bulk-len is refused", "[net][redis][bits]") {
  const std::string one(20'000, 'a');
  play_beside({{"SET", "one", one},
               {"SET", "other", std::string(6'710, 'b')},  // 20001 x 6711 x 4 > 512 MiB
               {"LCS", "one", "other", "LEN"},
               {"LCS", "one", "other"},
               {"SET", "other", std::string(1'000, 'b') + "aaa"},
               {"LCS", "one", "other", "IDX", "WITHMATCHLEN"},
               {"LCS", "other", "one", "IDX", "WITHMATCHLEN"},
               {"LCS", "one", "other", "LEN"}});
}

TEST_CASE("MODULE: there are none, and none is loaded", "[net][redis][objects]") {
  play_beside({{"MODULE"},
               {"MODULE", "LIST"},
               {"MODULE", "LIST", "x"},
               {"MODULE", "nothing"},
               {"MODULE", "LOAD"},
               {"MODULE", "LOAD", "/a.so", "b"},
               {"MODULE", "LOADEX", "/a.so", "CONFIG", "a", "b"},
               {"MODULE", "UNLOAD", "a"},
               {"MODULE", "UNLOAD"},
               {"OBJECT", "FREQ", "none"},
               {"OBJECT", "IDLETIME", "none"},
               {"SET", "k", "v"},
               {"OBJECT", "FREQ", "k"},
               {"OBJECT", "IDLETIME", "k"},
               {"OBJECT", "REFCOUNT", "k"},
               {"SET", "small", "9999"},
               {"OBJECT", "REFCOUNT", "small"},
               {"INCR", "small"},
               {"OBJECT", "REFCOUNT", "small"},
               {"SET", "small", "-1"},
               {"OBJECT", "REFCOUNT", "small"},
               {"INCR", "small"},
               {"OBJECT", "REFCOUNT", "small"},
               {"APPEND", "small", "1"},
               {"OBJECT", "REFCOUNT", "small"},
               {"OBJECT", "FREQ"},
               {"OBJECT", "nothing", "k"},
               {"OBJECT"}});
}

}  // namespace semel::tests
