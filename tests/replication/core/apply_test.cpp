// A core that has begun anew, with much that is committed and not applied: it is heard meanwhile.
// Node 1 is the core, nodes 2 and 3 are what this test says they send.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "replication/core/configuration_codec.hpp"
#include "replication/core/consensus_core.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;

constexpr LogIndex last = 1'000;
constexpr LogIndex change = 900;  // the entry by which node 4 is added

Configuration members_up_to(NodeId newest) {
  Configuration members;
  for (NodeId id = 1; id <= newest; ++id) {
    members.push_back(
        {id, "node-" + std::to_string(id), id <= 3 ? MemberRole::voter : MemberRole::standby});
  }
  return members;
}

RaftEntry configuration(Term term, NodeId newest) {
  const auto encoded = encode_configuration(members_up_to(newest));
  REQUIRE(encoded.ok());
  return {term, EntryType::configuration, *encoded};
}

RaftEntry command(Term term, std::size_t bytes) {
  return {term, EntryType::command, std::make_shared<const std::string>(bytes, 'c')};
}

class Behind final : public ConsensusEffects {
 public:
  explicit Behind(std::size_t entry_bytes, ConsensusOptions options = {}) {
    options.id = 1;
    options.address = "node-1";
    auto made = ConsensusCore::make(options, *this);
    REQUIRE(made.ok());
    core = std::move(*made);
    StoredState stored{.term = 1};
    for (LogIndex index = 1; index <= last; ++index) {
      stored.entries.push_back(index == 1        ? configuration(1, 3)
                               : index == change ? configuration(1, 4)
                                                 : command(1, entry_bytes));
    }
    REQUIRE(core->start(1, std::move(stored)).ok());
  }
  Status save_vote(Term, NodeId) override { return Done{}; }
  void append(LogIndex first, std::vector<RaftEntry> entries) override {
    written = first + entries.size() - 1;
    term_written = entries.back().term;
  }
  void send(RaftMessage message) override {
    replies += std::holds_alternative<AppendReply>(message.what) ? 1 : 0;
  }
  void apply(LogIndex index, const RaftEntry&) override { applied.push_back(index); }
  void install(const SnapshotOffer&) override { FAIL("nothing is installed here"); }
  void changed() override {}
  void failed(const Error& error) override { FAIL(error.detail); }

  struct Log {
    LogIndex previous = last;
    Term previous_term = 1;
    LogIndex commit = last;
  };
  /// Of a leader whose log has `entries` behind what `log` says.
  void hear(NodeId leader, Term term, std::vector<RaftEntry> entries, const Log& log) {
    core->receive(++now, {.from = leader,
                          .to = 1,
                          .term = term,
                          .what = AppendRequest{.previous_index = log.previous,
                                                .previous_term = log.previous_term,
                                                .commit = log.commit,
                                                .echo = 0,
                                                .entries = std::move(entries)}});
    if (written != 0) core->persisted(++now, std::exchange(written, 0), term_written);
  }
  void hear(NodeId leader, Term term, std::vector<RaftEntry> entries = {}) {
    hear(leader, term, std::move(entries), Log{});
  }
  [[nodiscard]] bool is_in_order() const {
    for (std::size_t i = 0; i < applied.size(); ++i) {
      if (applied[i] != i + 1) return false;
    }
    return true;
  }

  std::unique_ptr<ConsensusCore> core;
  std::vector<LogIndex> applied;
  int replies = 0;
  LogIndex written = 0;
  Term term_written = 0;
  std::uint64_t now = 1;
};

}  // namespace

TEST_CASE("consensus: what is committed is applied in parts, and the node answers meanwhile",
          "[consensus_apply]") {
  ConsensusOptions options;
  options.apply_entries_max = 256;
  Behind node{16, options};
  CHECK_FALSE(node.core->must_apply_more());
  REQUIRE(node.applied.size() == 1);  // the first members are known to be committed
  node.hear(2, 2);
  CHECK(node.applied.size() == 257);
  CHECK(node.replies == 1);
  CHECK(node.core->log().commit() == last);
  REQUIRE(node.core->must_apply_more());
  node.core->apply_more(++node.now);
  CHECK(node.applied.size() == 513);
  node.hear(2, 2);  // every event applies a part
  CHECK(node.applied.size() == 769);
  CHECK(node.replies == 2);
  node.core->apply_more(++node.now);
  CHECK(node.applied.size() == last);
  CHECK_FALSE(node.core->must_apply_more());
  node.core->apply_more(++node.now);
  CHECK(node.applied.size() == last);
  CHECK(node.is_in_order());
}

TEST_CASE("consensus: long entries make short parts", "[consensus_apply]") {
  Behind node{std::size_t{100} << 10};
  node.hear(2, 2);
  CHECK(node.applied.size() == 1 + 3);
  Behind other{std::size_t{1} << 20};
  other.hear(2, 2);
  CHECK(other.applied.size() == 2);
  other.core->apply_more(++other.now);
  CHECK(other.applied.size() == 3);
}

TEST_CASE("consensus: a committed change of members holds before it is applied",
          "[consensus_apply]") {
  for (const bool keeps : {true, false}) {
    ConsensusOptions options;
    options.apply_entries_max = 100;
    options.guards.keeps_members = keeps;
    Behind node{16, options};
    node.hear(2, 2, {configuration(2, 5)});  // of a leader that ends before it is committed
    CHECK(node.core->raft().members().size() == 5);
    node.hear(3, 3, {command(3, 16)});  // in its place
    REQUIRE(node.applied.size() < change);
    // Without the guard node 4 is lost, which all others know.
    CHECK(node.core->raft().members().size() == (keeps ? 4 : 3));
    CHECK(node.core->applied_members().members.size() == 3);
    while (node.core->must_apply_more()) node.core->apply_more(++node.now);
    CHECK(node.is_in_order());
    if (keeps) CHECK(node.core->raft().members().size() == 4);
    CHECK(node.core->applied_members().members.size() == 4);
    CHECK(node.core->applied_members().index == change);
  }
}

TEST_CASE("consensus: a second change of members says that the first is committed",
          "[consensus_apply]") {
  // Nobody has told it yet what is committed.
  Behind node{16};
  node.hear(2, 2, {configuration(2, 5)}, {.commit = 1});
  CHECK(node.core->raft().members().size() == 5);
  node.hear(3, 3, {command(3, 16)}, {.commit = 1});
  CHECK(node.core->raft().members().size() == 4);
  CHECK(node.applied.size() == 1);
}

TEST_CASE("consensus: a change of members that its leader did not commit is dropped",
          "[consensus_apply]") {
  Behind node{16};
  CHECK(node.core->raft().members().size() == 4);
  // Appends that do not fit the log are refused, and change no members.
  node.hear(2, 2, {configuration(2, 6)}, {.previous = last - 1, .previous_term = 2, .commit = 1});
  node.hear(2, 2, {configuration(2, 6)}, {.previous = last + 1, .previous_term = 2, .commit = 1});
  CHECK(node.core->raft().members().size() == 4);
  // In its place another one, which is dropped as well.
  node.hear(2, 2, {configuration(2, 6)}, {.previous = change - 1, .commit = 1});
  CHECK(node.core->raft().members().size() == 6);
  node.hear(3, 3, {command(3, 16)}, {.previous = change - 1, .commit = 1});
  CHECK(node.core->raft().members().size() == 3);
}

}  // namespace semel::tests
