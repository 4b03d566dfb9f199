// What a node of a group does with the words of an entry.
#include "net/node/group_runner.hpp"

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

}  // namespace semel::tests
