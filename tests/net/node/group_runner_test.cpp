// What a node of a group does with the words of an entry.
#include "net/node/group_runner.hpp"

#include <memory>
#include <string>

#include "tests/net/claims/claims_fixture.hpp"

namespace semel::tests {

TEST_CASE("group: a command that only a later release knows stops the replica", "[net][group]") {
  NodeFixture f;
  net::GroupRunner runner{*f.node};
  net::GroupRequest request;
  request.requests = {{"SET", "k", "v"}, {"GET", "k"}};
  auto known = runner.run(request);
  CHECK(known.failures.empty());
  CHECK(known.replies == "+OK\r\n$1\r\nv\r\n");
  for (const std::vector<std::string_view>& later :
       std::vector<std::vector<std::string_view>>{{"SEMEL.LATER", "k"}, {"GET", "k", "NEW"}}) {
    for (const bool is_transaction : {false, true}) {
      request.requests = {later};
      request.is_transaction = is_transaction;
      const auto unknown = runner.run(request);
      CHECK(unknown.failures == std::vector{ErrorCode::storage_newer});
    }
  }
}

TEST_CASE("group: a change of libraries that this release refuses stops the replica",
          "[net][group]") {
  NodeFixture f;
  net::GroupRunner runner{*f.node};
  using What = net::LibraryChange::What;
  net::LibraryText text;
  text.name = "lib";
  text.functions.push_back({.name = "f"});
  const auto library = std::make_shared<const net::LibraryText>(text);
  const net::LibraryChange load{.what = What::load, .libraries = {library}};
  REQUIRE(runner.change_libraries(load));
  text.name = std::string("\0\xff\r\n", 4);
  text.functions.push_back({.name = "g"});
  const net::LibraryChange clash{.what = What::load,
                                 .libraries = {std::make_shared<const net::LibraryText>(text)}};
  for (const net::LibraryChange& refused :
       {load, clash, net::LibraryChange{.what = What::remove, .name = "other"}}) {
    const Status status = runner.change_libraries(refused);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code == ErrorCode::storage_newer);
    const auto left = f.node->scripts.functions.all();
    REQUIRE(left.size() == 1);
    CHECK(left.front()->text == library);
  }
  CHECK(runner.change_libraries({.what = What::flush}));
}

}  // namespace semel::tests
