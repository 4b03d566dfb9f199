// What comes from another node, or lies in its log: frames, entries, commands that are handed over,
// answers, tables of answers. Whatever the bytes, they are refused or read; what was read is
// written and read again as the same. Two replicas answer an entry alike, or stop alike.
//
// Input: a byte that says what it is, and its bytes, of a frame without head and checksum.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "replication/state/answer.hpp"
#include "replication/state/answer_table.hpp"
#include "replication/state/state_machine.hpp"
#include "replication/transport/wire.hpp"
#include "tests/fuzz/check.hpp"

namespace semel::tests {
namespace {

using namespace replication;

void frame(Bytes body) {
  std::string rest{body};
  const std::uint64_t sum = checksum(rest);
  rest.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  const auto read = decode_frame(rest);
  if (!read.ok()) return check(!read.error().detail.empty(), "a frame is refused without a word");
  std::string once;
  encode(*read, once);
  const auto size = frame_rest(once.data(), frame_bytes_max);
  check(size.ok() && *size == once.size() - frame_head_bytes, "another size of a frame");
  const auto again = decode_frame(Bytes{once}.substr(frame_head_bytes));
  check(again.ok(), "a frame that was written cannot be read");
  std::string twice;
  encode(*again, twice);
  check(once == twice, "another frame when it is written again");
}

void answer(Bytes bytes) {
  const auto read = decode_answer(bytes);
  if (!read.ok()) return;
  std::string once;
  encode(*read, once);
  const auto again = decode_answer(once);
  check(again.ok(), "an answer that was written cannot be read");
  std::string twice;
  encode(*again, twice);
  check(once == twice, "another answer when it is written again");
}

void table(Bytes bytes) {
  AnswerTable read;
  if (!read.restore(bytes)) {
    return check(read.lives() == 0 && read.bytes() == AnswerTable{}.bytes(),
                 "a table that is refused keeps something");
  }
  std::string once;
  read.encode(once);
  AnswerTable copy;
  check(copy.restore(once), "a table that was written cannot be read");
  std::string twice;
  copy.encode(twice);
  check(once == twice, "another table when it is written again");
}

/// The leader refuses the others (PeerInput::read_proposal).
bool is_handed_over(const Command& command) {
  if (const auto* const section = std::get_if<SectionCommand>(&command.what)) {
    return std::all_of(section->commands.begin(), section->commands.end(), is_handed_over);
  }
  return !std::holds_alternative<RequestCommand>(command.what) &&
         !std::holds_alternative<FeatureLevelCommand>(command.what);
}

std::unique_ptr<StateMachine> replica(unsigned shards, std::uint64_t seed);

/// What a level adds is decided from here on.
void raise(StateMachine& made) {
  EntryBuilder builder{1, 1};
  check(builder.add({FeatureLevelCommand{feature_level_newest}}).ok(), "no level is proposed");
  check(made.apply(1, builder.bytes()).ok(), "no level is taken");
}

/// As a member hands it over: what prepare() takes, every replica can read.
void command(Bytes bytes) {
  const auto read = decode(bytes);
  if (!read.ok()) return;
  const auto prepared = prepare(*read);
  if (!prepared.ok()) return;
  EntryBuilder builder{1, 1};
  check(builder.add(*prepared), "an empty entry has no room for a command");
  const auto entry = read_entry(builder.bytes());
  check(entry.ok() && entry->commands.size() == 1, "a command that is proposed cannot be read");
  if (!is_handed_over(*read)) return;
  const auto member = replica(1, 1);
  raise(*member);
  const auto applied = member->apply(2, builder.bytes());
  check(applied.ok() || applied.error().code == ErrorCode::memory_full,
        "a command of a member stops a replica");
}

std::unique_ptr<StateMachine> replica(unsigned shards, std::uint64_t seed) {
  Options options;
  options.shard_count = shards;
  options.hash_seed = seed;
  options.memory_bytes = std::size_t{16} << 20;
  options.background = std::nullopt;
  auto opened = StateMachine::open(options);
  check(opened.ok(), "no replica");
  return *std::move(opened);
}

void entry(Bytes bytes) {
  if (!read_entry(bytes).ok()) return;
  std::vector<std::string> found;
  for (const unsigned shards : {1U, 8U}) {
    const auto made = replica(shards, shards);
    raise(*made);
    std::string said;
    const auto answers = made->apply(2, bytes);
    if (answers.ok()) {
      for (const Answer& each : *answers) encode(each, said);
    } else {
      said = std::to_string(static_cast<int>(answers.error().code));
      check(!answers.error().detail.empty(), "a replica stops without a word");
    }
    found.push_back(std::move(said));
  }
  check(found[0] == found[1], "two replicas answer otherwise");
}

}  // namespace
}  // namespace semel::tests

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace semel::tests;
  if (size < 2) return 0;
  const semel::Bytes bytes{reinterpret_cast<const char*>(data) + 1, size - 1};
  switch (data[0] % 8) {
    case 0:
    case 1:
      frame(bytes);
      break;
    case 2:
      answer(bytes);
      break;
    case 3:
      table(bytes);
      break;
    case 4:
    case 5:
      command(bytes);
      break;
    default:
      entry(bytes);
  }
  return 0;
}
