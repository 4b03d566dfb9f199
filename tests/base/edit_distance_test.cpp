// Words: an edit inserts, deletes, replaces or swaps neighbours.
#include "base/edit_distance.hpp"

#include "tests/support/catch.hpp"

using semel::base::edit_distance;

TEST_CASE("edit_distance: each kind of edit counts once", "[base][edit_distance]") {
  CHECK(edit_distance("dedup", "dedup") == 0);
  CHECK(edit_distance("dedup", "deup") == 1);
  CHECK(edit_distance("dedup", "dedupe") == 1);
  CHECK(edit_distance("dedup", "dadup") == 1);
  CHECK(edit_distance("dedup", "dedpu") == 1);
  CHECK(edit_distance("dedup", "eddpu") == 2);
  CHECK(edit_distance("", "node") == 4);
  CHECK(edit_distance("node", "") == 4);
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("abc", "xyz") == 3);
}

TEST_CASE("edit_distance: it is the same in both directions", "[base][edit_distance]") {
  for (const auto* a : {"", "a", "ab", "ba", "verify", "inspect"}) {
    for (const auto* b : {"", "b", "abc", "verfiy", "insp"}) {
      CHECK(edit_distance(a, b) == edit_distance(b, a));
    }
  }
}
