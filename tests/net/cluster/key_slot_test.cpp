// Redis Cluster's slots.
#include "net/cluster/key_slot.hpp"

#include "tests/support/catch.hpp"

namespace semel::tests {

TEST_CASE("cluster: slots are those of Redis", "[net][cluster]") {
  CHECK(net::slot_of("") == 0);
  CHECK(net::slot_of("123456789") == 0x31c3 % net::slot_count);
  CHECK(net::slot_of("foo") == 12'182);
  CHECK(net::slot_of("{foo}bar") == 12'182);
  CHECK(net::slot_of("a{foo}{bar}") == 12'182);
  CHECK(net::slot_of("a") == 15'495);
  // Nothing between the braces, or no end: the whole key counts.
  CHECK(net::slot_of("foo{}{bar}") != net::slot_of("bar"));
  CHECK(net::slot_of("{}foo") != net::slot_of("foo"));
  CHECK(net::slot_of("{foo") != net::slot_of("foo"));
}

}  // namespace semel::tests
