// Nodes that begin again with a wall clock that is behind, or ahead of, the time of their group.
#include <poll.h>

#include "replication/node/replica.hpp"
#include "replication/parts/group_clock.hpp"
#include "semel/claims.hpp"
#include "tests/replication/node/group.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {

using namespace replication;

namespace {

constexpr std::int64_t hour = 3'600'000;

class WrongClock final : public Clock {
 public:
  explicit WrongClock(std::int64_t ahead_ms) noexcept : ahead_ms_(ahead_ms) {}
  [[nodiscard]] Timestamp now() const noexcept override { return right_.now(); }
  [[nodiscard]] std::int64_t unix_ms() const noexcept override {
    return right_.unix_ms() + ahead_ms_;
  }

 private:
  const SystemClock right_;
  const std::int64_t ahead_ms_;
};

constexpr ProposalTerms patient{.repeats = true, .patience = Millis{20'000}};

ClaimOutcome claim(Group& group, Bytes key) {
  const NodeId leader = group.wait_leader();
  INFO(group.said());
  REQUIRE(leader != 0);
  ClaimCommand command{ClaimCommand::What::each, "jobs", {{.key = key, .lease = Millis{hour}}}};
  command.requests[0].claim_id.emplace()[0] = static_cast<std::uint8_t>(key.size());
  const Result<Answer> answer = group.node(leader).propose({command}, patient);
  REQUIRE(answer.ok());
  const auto* const outcomes = std::get_if<std::vector<ClaimOutcome>>(&answer->what);
  REQUIRE(outcomes != nullptr);
  return outcomes->front();
}

void declare(Group& group) {
  const NodeId leader = group.wait_leader();
  REQUIRE(leader != 0);
  REQUIRE(
      group.node(leader)
          .propose({NamespaceCommand{NamespaceCommand::What::declare, "jobs", Policy{}}}, patient)
          .ok());
}

}  // namespace

TEST_CASE("replica: a group whose wall clocks are behind its log goes on", "[replica_group]") {
  const WrongClock behind{-hour};
  Group group{3};
  declare(group);
  CHECK(claim(group, "a").answer == ClaimAnswer::granted);
  for (NodeId id = 1; id <= 3; ++id) group.close(id);
  for (NodeId id = 1; id <= 3; ++id) group.open(id, false, &behind);
  CHECK(claim(group, "a").answer == ClaimAnswer::regranted);
  CHECK(claim(group, "bb").answer == ClaimAnswer::granted);
  for (NodeId id = 1; id <= 3; ++id) {
    CHECK(group.wait_equal(id));
    CHECK(group.node(id).status().failed.empty());
  }
}

TEST_CASE("replica: what it knows of the time is kept with the term that it is of",
          "[replica_group][between-8]") {
  Group group{1};
  REQUIRE(group.wait_leader() == 1);
  const Term term = group.node(1).status().term;
  storage::Disk disk;
  const auto kept = Group::wait_for([&] {
    TimeContent content;
    auto file = storage::TwoSlots<TimeContent>::open(disk, group.directory(1) + "/time");
    REQUIRE(file.ok());
    return (*file)->read(content).ok() && content.term == term;
  });
  CHECK(kept);
}

TEST_CASE("replica: a read in an idle group sees the end of what has ended",
          "[replica_group][between-17]") {
  Group group{3};
  const NodeId leader = group.wait_leader();
  REQUIRE(leader != 0);
  declare(group);
  CHECK(claim(group, "with an end").answer == ClaimAnswer::granted);
  constexpr int reads = 20;
  int late = 0;
  for (int i = 0; i < reads; ++i) {
    poll(nullptr, 0, 130);  // so the entries that come by themselves are of no help
    Replica& node = group.node(group.wait_leader());
    const Timestamp time = node.clock().now();
    REQUIRE(node.read());
    if (node.engine().now() + Millis{50} < time) ++late;  // cluster-heartbeat
  }
  CAPTURE(late);
  CHECK(late * 2 < reads);  // a busy machine may be late
}

TEST_CASE("replica: one that begins days ahead does not end leases when it leads",
          "[replica_group]") {
  const WrongClock ahead{6 * 24 * hour};
  Group group{3};
  declare(group);
  REQUIRE(claim(group, "job").answer == ClaimAnswer::granted);
  const NodeId wrong = group.wait_leader() % 3 + 1;
  group.close(wrong);
  group.open(wrong, false, &ahead);
  // Of the leader that it follows: by then it knows the group's time.
  REQUIRE(claim(group, "another").answer == ClaimAnswer::granted);
  REQUIRE(group.wait_equal(wrong));
  const auto leads = [&] {
    const NodeId leader = group.wait_leader();
    if (leader != 0 && leader != wrong) static_cast<void>(group.node(leader).transfer(wrong));
    return group.node(wrong).is_leader();
  };
  REQUIRE(Group::wait_for(leads));
  CHECK(claim(group, "job").answer == ClaimAnswer::regranted);
  CHECK(group.node(wrong).status().clock_off_ms > 5 * 24 * hour);
}

}  // namespace semel::tests
