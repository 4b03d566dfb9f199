// Proposals, forwards and reads of a node, without a thread, a clock or a disk.
//
// Vocabulary: a proposal is *held* until it has a number, *ready* until it is in an *entry* or
// *forwarded*, and *open* once it is not known whether it was decided.
#include "replication/proposals/proposals.hpp"

#include <optional>

#include "replication/proposals/forward_codec.hpp"
#include "replication/proposals/forwards.hpp"
#include "replication/proposals/reads.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;

constexpr engine::SessionOwner owner{7, 42};

using Answered = std::optional<Result<Answer>>;

Proposal a_proposal(Answered& answered, const ProposalTerms& terms, std::uint64_t now = 0) {
  auto prepared = prepare({TimeCommand{}});
  REQUIRE(prepared.ok());
  return Proposal::made(
      *std::move(prepared), [&](Result<Answer> answer) { answered = std::move(answer); }, terms,
      now);
}

bool has_error(const Answered& answered, ErrorCode code) {
  return answered && !answered->ok() && answered->error().code == code;
}

/// Applies the newest entry, whose one command has this answer.
void apply(Proposals& proposals, LogIndex index, Answer answer, std::uint64_t now = 0) {
  Result<std::vector<Answer>> answers = std::vector<Answer>{};
  answers->push_back(std::move(answer));
  proposals.answer(index, 1, answers, now);
}

void propose_all(Proposals& proposals, LogIndex index, std::uint64_t now = 0) {
  CHECK_FALSE(proposals.begin_entry(index, 1, 1'000, now).empty());
  CHECK(proposals.end_entry(index, Done{}, now));
}

/// The log gives the node its number.
void begin_life(Proposals& proposals, std::uint64_t life) {
  proposals.begin_life(0);
  propose_all(proposals, life);
  apply(proposals, life, Answer{PlainAnswer{.number = static_cast<std::int64_t>(life)}});
  REQUIRE(proposals.figures().has_life);
}

}  // namespace

TEST_CASE("proposals: one that is numbered is held until the log has numbered the node",
          "[replication][proposals]") {
  Proposals proposals{owner};
  Answered answered;
  proposals.add(a_proposal(answered, {}));
  proposals.number_held();
  CHECK(proposals.figures().held == 1);
  begin_life(proposals, 5);
  CHECK(proposals.figures().can_number);
  proposals.number_held();
  CHECK(proposals.figures().held == 0);
  CHECK(proposals.figures().ready == 1);
  proposals.check_invariants();
  propose_all(proposals, 6);
  apply(proposals, 6, Answer{PlainAnswer{.number = 3}});
  REQUIRE(answered);
  CHECK(answered->ok());
  proposals.close();
}

TEST_CASE("proposals: one that another leader may decide waits to be asked again, with its number",
          "[replication][proposals]") {
  Proposals proposals{owner};
  begin_life(proposals, 5);
  Answered answered;
  proposals.add(a_proposal(answered, {.asks_again = Millis{100}}));
  proposals.number_held();
  propose_all(proposals, 6);
  proposals.lose_entries(50);
  CHECK_FALSE(answered);
  CHECK(proposals.figures().ready == 1);
  std::uint64_t sequence = 0;
  proposals.hand_over(false, [&](Proposal& each) {
    CHECK(each.is_open);
    CHECK(each.origin.life == 5);
    sequence = each.origin.sequence;
    return false;
  });
  CHECK(sequence == 1);
  proposals.refuse_waiting(ErrorCode::not_leader, 149);
  CHECK_FALSE(answered);
  proposals.refuse_waiting(ErrorCode::not_leader, 150);
  CHECK(has_error(answered, ErrorCode::outcome_unknown));
  proposals.close();
}

TEST_CASE("proposals: one that is neither numbered nor repeats ends with its leader",
          "[replication][proposals]") {
  Proposals proposals{owner};
  Answered answered;
  proposals.add(a_proposal(answered, {.patience = Millis{100}, .is_numbered = false}));
  propose_all(proposals, 1);
  proposals.lose_entries(0);
  CHECK(has_error(answered, ErrorCode::outcome_unknown));
  proposals.close();
}

TEST_CASE("proposals: one that the log refused was not decided, and waits as long as it may",
          "[replication][proposals]") {
  Proposals proposals{owner};
  Answered answered;
  proposals.add(a_proposal(answered, {.patience = Millis{100}, .is_numbered = false}));
  CHECK_FALSE(proposals.begin_entry(1, 1, 1'000, 99).empty());
  CHECK_FALSE(proposals.end_entry(1, Error{ErrorCode::log_busy, {}}, 99));
  CHECK_FALSE(answered);
  CHECK_FALSE(proposals.begin_entry(1, 1, 1'000, 100).empty());
  CHECK_FALSE(proposals.end_entry(1, Error{ErrorCode::log_busy, {}}, 100));
  CHECK(has_error(answered, ErrorCode::log_busy));
  proposals.close();
}

TEST_CASE("proposals: a node that the log has forgotten begins again, and renews what is not open",
          "[replication][proposals]") {
  Proposals proposals{owner};
  begin_life(proposals, 5);
  Answered answered;
  proposals.add(a_proposal(answered, {.patience = Millis{100}}));
  proposals.number_held();
  propose_all(proposals, 6);
  apply(proposals, 6, Answer{NotApplied{NotApplied::Why::no_life}});
  CHECK_FALSE(proposals.figures().has_life);
  CHECK(proposals.figures().held == 1);
  CHECK(proposals.figures().ready == 1);  // which asks for a new life
  CHECK_FALSE(answered);
  proposals.check_invariants();
  proposals.close();
  CHECK(has_error(answered, ErrorCode::closing));
}

TEST_CASE("proposals: bytes that begin to wait end to wait once", "[replication][proposals]") {
  Proposals proposals{owner};
  proposals.add_own({TimeCommand{}}, nullptr, {.is_numbered = false}, 0);
  const CallQueue::Change added = proposals.take_change();
  CHECK(added.added != 0);
  CHECK(added.freed == 0);
  propose_all(proposals, 1);  // it cannot be asked again: its bytes are needed no longer
  CHECK(proposals.take_change().freed == added.added);
  apply(proposals, 1, Answer{PlainAnswer{}});
  CHECK(proposals.take_change().freed == 0);
  proposals.close();
}

TEST_CASE("call queue: only the first call wakes the loop, and none when it is closed",
          "[replication][proposals]") {
  Answered answered;
  CallQueue calls{4};
  Proposal first = a_proposal(answered, {});
  const std::size_t bytes = first.command.bytes.size();
  CHECK(calls.push(first) == CallQueue::Pushed::closed);
  calls.open();
  REQUIRE(bytes <= 4);
  CHECK(calls.push(first) == CallQueue::Pushed::wakes);
  CHECK(calls.is_waking());
  calls.end_wake(true);
  CHECK_FALSE(calls.is_waking());
  for (std::size_t waiting = 2 * bytes; waiting <= 4; waiting += bytes) {
    Proposal next = a_proposal(answered, {});
    CHECK(calls.push(next) == CallQueue::Pushed::queued);
  }
  Proposal last = a_proposal(answered, {});
  CHECK(calls.push(last) == CallQueue::Pushed::full);
  CHECK(calls.take({}, false).proposals.size() == 4 / bytes);
  CHECK(calls.push(last) == CallQueue::Pushed::full);  // they wait elsewhere
  CHECK(calls.take({.freed = bytes}, false).proposals.empty());
  CHECK(calls.push(last) == CallQueue::Pushed::wakes);
  calls.end_wake(true);
}

TEST_CASE("forwards: only the leader that was asked can answer, and a silent one is given up",
          "[replication][proposals]") {
  Answered answered;
  Forwards forwards{100};
  const std::uint64_t id = forwards.next_id();
  forwards.add(2, 10, a_proposal(answered, {.is_numbered = false}));
  forwards.add(2, 10, Forwards::Readers{});
  CHECK(forwards.has_reads());
  CHECK(forwards.proposals() == 1);
  CHECK_FALSE(forwards.take(id, 3));
  CHECK(forwards.take_late(60, 50).empty());
  CHECK(forwards.take_late(61, 50).size() == 2);
  CHECK_FALSE(forwards.has_reads());
  forwards.check_invariants();
  forwards.add(2, 10, a_proposal(answered, {.is_numbered = false}));
  CHECK(forwards.take_of_others(2).empty());
  CHECK(forwards.take_of_others(3).size() == 1);
}

TEST_CASE("reads: a round ends when it is confirmed and its entries are applied",
          "[replication][proposals]") {
  Answered answered;
  Reads reads;
  reads.add(
      {{[&](Result<Answer> answer) { answered = std::move(answer); }, ErrorCode::closing}, 0});
  CHECK(reads.must_ask());
  reads.begin({.round = 4, .index = 10, .time_index = 11, .time_until = 1'000});
  reads.check_invariants();
  CHECK_FALSE(reads.must_ask());
  reads.finish(3, 11, 0);
  reads.finish(4, 9, 0);
  reads.finish(4, 10, 999);
  CHECK_FALSE(answered);
  reads.finish(4, 10, 1'000);  // the entry of the time has not come: without it
  REQUIRE(answered);
  CHECK(answered->ok());
  reads.check_invariants();
}

TEST_CASE("forwards: bytes of a command and of its answer are read as they were written",
          "[replication][proposals]") {
  auto prepared = prepare({TimeCommand{}});
  REQUIRE(prepared.ok());
  const Origin origin{.node = 7, .life = 5, .sequence = 9, .lowest = 8};
  const std::string bytes = forward_bytes(origin, *prepared);
  const auto read = read_forward(7, bytes);
  REQUIRE(read.ok());
  CHECK(read->origin == origin);
  CHECK_FALSE(read_forward(7, bytes + "x").ok());
  const ForwardAnswer answer =
      read_forward_reply(forward_reply_bytes(Answer{PlainAnswer{.number = 6}}, 12));
  CHECK(answer.index == 12);
  REQUIRE(answer.answer.ok());
  CHECK(std::get<PlainAnswer>(answer.answer->what).number == 6);
  const ForwardAnswer error =
      read_forward_reply(forward_reply_bytes(Error{ErrorCode::log_busy, {}}, 12));
  REQUIRE_FALSE(error.answer.ok());
  CHECK(error.answer.error().code == ErrorCode::log_busy);
  CHECK(read_forward_reply("").answer.error().code == ErrorCode::outcome_unknown);
}

}  // namespace semel::tests
