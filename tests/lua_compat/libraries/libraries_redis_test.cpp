// The libraries of scripts beside those of a redis-server: the same random expressions, the same
// results and errors.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "tests/lua_compat/lua_fixture.hpp"
#include "tests/lua_compat/matcher/random_expressions.hpp"
#include "tests/support/redis_or_skip.hpp"
#include "tests/support/resp_client.hpp"

namespace semel::tests {
namespace {

constexpr int expressions_at_once = 50;

/// SEMEL_EXPRESSIONS sets how many of each library.
int expressions_wanted() {
  const char* const wanted = std::getenv("SEMEL_EXPRESSIONS");
  return wanted == nullptr ? 5'000 : std::atoi(wanted);
}

const char* name_of(Library library) {
  constexpr const char* names[] = {"patterns", "format",  "strings", "tables", "math",
                                   "json",     "msgpack", "struct",  "bit"};
  return names[static_cast<std::size_t>(library)];
}

}  // namespace

TEST_CASE("libraries: a redis-server evaluates random expressions to the same", "[lua][redis]") {
  const auto server = redis_or_skip();
  if (!server) return;
  RespClient theirs{server->socket_path()};
  LuaFixture ours;
  const auto seed = Catch::rngSeed();
  RandomExpressions random{seed};
  for (const Library library : all_libraries) {
    INFO("seed " << seed << ", " << name_of(library));
    int different = 0;
    int errors = 0;
    std::string differences;
    for (int done = 0; done < expressions_wanted() && different < 20; done += expressions_at_once) {
      std::vector<std::string> expressions;
      for (int i = 0; i < expressions_at_once; ++i) expressions.push_back(random.next(library));
      const std::string script = script_of(expressions);
      const RespValue reply = theirs.call({"EVAL", script, "0"});
      INFO(reply.show());
      REQUIRE(reply.type == RespValue::Type::bulk);
      const std::vector<std::string> expected = results_in(reply.text);
      const std::vector<std::string> results = results_in(ours.run(script));
      INFO(results.front());
      REQUIRE(expected.size() == expressions.size());
      REQUIRE(results.size() == expressions.size());
      for (std::size_t i = 0; i < expressions.size(); ++i) {
        if (results[i].starts_with("error: ")) ++errors;
        if (results[i] == expected[i]) continue;
        ++different;
        differences += expressions[i] + "\n  ours   " + printable(results[i]) + "\n  theirs " +
                       printable(expected[i]) + "\n";
      }
    }
    INFO(differences);
    CHECK(different == 0);
    // Most of what is compared are results.
    CHECK(errors < expressions_wanted() * 2 / 3);
  }
}

}  // namespace semel::tests
