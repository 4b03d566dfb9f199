// Three cores without a network: what becomes of reads when messages are lost.
// Words: deliver (hand over what was sent), round (of a read).
#include <deque>
#include <functional>
#include <memory>

#include "replication/core/configuration_codec.hpp"
#include "replication/core/consensus_core.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;

/// What is appended is on the disk at once.
class Member final : public ConsensusEffects {
 public:
  Member(NodeId id, const SharedData& configuration) {
    ConsensusOptions options;
    options.id = id;
    options.address = "node-" + std::to_string(id);
    options.seed = static_cast<std::uint32_t>(id);
    auto made = ConsensusCore::make(options, *this);
    REQUIRE(made.ok());
    core = std::move(*made);
    StoredState stored{.term = 1};
    stored.entries.push_back({1, EntryType::configuration, configuration});
    REQUIRE(core->start(1, std::move(stored)).ok());
  }
  Status save_vote(Term, NodeId) override { return Done{}; }
  void append(LogIndex first, std::vector<RaftEntry> entries) override {
    written = first + entries.size() - 1;
    term_written = entries.back().term;
  }
  void send(RaftMessage message) override { sent.push_back(std::move(message)); }
  void apply(LogIndex, const RaftEntry&) override {}
  void install(const SnapshotOffer&) override { FAIL("nothing is installed here"); }
  void changed() override {}
  void failed(const Error& error) override { FAIL(error.detail); }

  void write(std::uint64_t now) {
    if (written == 0) return;
    core->persisted(now, std::exchange(written, 0), term_written);
  }

  std::unique_ptr<ConsensusCore> core;
  std::deque<RaftMessage> sent;
  LogIndex written = 0;
  Term term_written = 0;
};

class Three {
 public:
  using Loses = std::function<bool(const RaftMessage&)>;

  Three() {
    Configuration members;
    for (NodeId id = 1; id <= 3; ++id) {
      members.push_back({id, "node-" + std::to_string(id), MemberRole::voter});
    }
    const auto configuration = encode_configuration(members);
    REQUIRE(configuration.ok());
    for (NodeId id = 1; id <= 3; ++id) all.push_back(std::make_unique<Member>(id, *configuration));
  }

  /// Until nothing is under way, for so many milliseconds.
  void pass(std::uint64_t ms, const Loses& loses = {}) {
    for (const std::uint64_t end = now + ms; now < end; ++now) {
      for (const auto& each : all) {
        if (each->core->raft().next_timeout() <= now) each->core->tick(now);
        each->write(now);
        while (!each->sent.empty()) {
          RaftMessage message = std::move(each->sent.front());
          each->sent.pop_front();
          if (!loses || !loses(message)) all[message.to - 1]->core->receive(now, message);
        }
      }
    }
  }

  Member& leader() {
    for (int tries = 0; tries < 100; ++tries) {
      pass(100);
      for (const auto& each : all) {
        const ConsensusCore& core = *each->core;
        if (core.raft().is_leader() &&
            core.log().term_of(core.log().commit()) == core.raft().term())
          return *each;
      }
    }
    FAIL("no leader");
    return *all.front();
  }

  std::vector<std::unique_ptr<Member>> all;
  std::uint64_t now = 1;
};

}  // namespace

TEST_CASE("reads: a probe that is lost is sent again", "[consensus][reads]") {
  Three group;
  Member& leader = group.leader();
  const auto round = leader.core->read(group.now);
  REQUIRE(round.ok());
  unsigned lost = 0;
  leader.write(group.now);
  for (const RaftMessage& each : std::exchange(leader.sent, {})) {
    lost += std::holds_alternative<ReadProbe>(each.what) ? 1 : 0;
  }
  CHECK(lost == 2);
  CHECK(leader.core->leadership().confirmed() < *round);
  group.pass(200);  // some heartbeats
  CHECK(leader.core->raft().is_leader());
  CHECK(leader.core->leadership().confirmed() == *round);
}

TEST_CASE("reads: without a majority that answers none is confirmed", "[consensus][reads]") {
  Three group;
  Member& leader = group.leader();
  const auto round = leader.core->read(group.now);
  REQUIRE(round.ok());
  group.pass(400,
             [](const RaftMessage& each) { return std::holds_alternative<ReadReply>(each.what); });
  CHECK(leader.core->raft().is_leader());  // all the rest arrives
  CHECK(leader.core->leadership().confirmed() < *round);
  // Who has confirmed is not asked again.
  group.pass(200);
  CHECK(leader.core->leadership().confirmed() == *round);
  unsigned probes = 0;
  group.pass(200, [&](const RaftMessage& each) {
    probes += std::holds_alternative<ReadProbe>(each.what) ? 1 : 0;
    return false;
  });
  CHECK(probes == 0);
}

}  // namespace semel::tests
