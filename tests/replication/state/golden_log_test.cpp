// A log that a release has written means the same to every later one: to nodes of both, in a group
// that is upgraded, and to a node that reads its own log. level_N.log has random commands of every
// kind as that level writes them, and what they were answered. An answer or a state that changed
// needs a new level, under which it changes; the file of the old one stays as it is.
//
//   file   entries: u32 bytes | entry | u64 XXH3 of its answers ; u32 0 | u64 XXH3 of the state
//
// A new level writes its file with SEMEL_RECORD=1 and `replication_tests "[.record]"`.
#include <xxhash.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "replication/state/state_machine.hpp"
#include "tests/replication/state/canonical.hpp"
#include "tests/replication/state/commands.hpp"
#include "tests/replication/state/origins.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;

std::string path_of(FeatureLevel level) {
  return std::string{SEMEL_GOLDEN_LOGS} + "/level_" + std::to_string(level) + ".log";
}

std::unique_ptr<StateMachine> golden_replica() {
  Options options;
  options.memory_bytes = std::size_t{64} << 20;
  options.background = std::nullopt;
  auto opened = StateMachine::open(options);
  REQUIRE(opened);
  return *std::move(opened);
}

std::uint64_t sum_of(const std::string& bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}
std::uint64_t sum_of(const std::vector<Answer>& answers) {
  std::string bytes;
  for (const Answer& answer : answers) encode(answer, bytes);
  return sum_of(bytes);
}

template <class Number>
void put(std::string& to, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i)
    to.push_back(static_cast<char>(number >> (8 * i)));
}
template <class Number>
Number take(Bytes& from) {
  REQUIRE(from.size() >= sizeof(Number));
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    number |= static_cast<Number>(static_cast<unsigned char>(from[i])) << (8 * i);
  }
  from.remove_prefix(sizeof number);
  return number;
}

void record(FeatureLevel level) {
  constexpr LogIndex entries = 400;
  constexpr LogIndex between_states = 50;
  Commands commands{level, level};
  Origins origins{level + 1};
  const auto made = golden_replica();
  std::string bytes;
  for (LogIndex index = 1; index <= entries; ++index) {
    EntryBuilder builder{commands.next_time(), commands.random().bits()};
    std::vector<Command> written;
    if (index == 2) {
      written.push_back({FeatureLevelCommand{level}});
      REQUIRE(*builder.add(written.back()));
    }
    for (std::uint64_t wanted = commands.random().between(1, 12); wanted > 0; --wanted) {
      Command command = commands.next();
      const Origins::Next next = origins.next();
      const auto added = builder.add(command, next.origin);
      if (!added.ok() || !*added) break;
      written.push_back(std::move(command));
    }
    if (written.empty()) REQUIRE(*builder.add({TimeCommand{}}));
    const auto answers = made->apply(index, builder.bytes());
    REQUIRE(answers);
    for (std::size_t i = 0; i < written.size(); ++i) commands.note(written[i], (*answers)[i]);
    put(bytes, static_cast<std::uint32_t>(builder.bytes().size()));
    bytes += builder.bytes();
    put(bytes, sum_of(*answers));
    if (index % between_states == 0) {
      put(bytes, std::uint32_t{0});
      put(bytes, sum_of(canonical(*made).bytes()));
    }
    commands.forget_bytes();
  }
  std::ofstream{path_of(level), std::ios::binary} << bytes;
}

}  // namespace

TEST_CASE("golden log: what earlier levels have written is answered as it was then", "[golden]") {
  for (FeatureLevel level = feature_level_first; level <= feature_level_newest; ++level) {
    INFO(path_of(level));
    std::ifstream file{path_of(level), std::ios::binary};
    const std::string all{std::istreambuf_iterator<char>{file}, {}};
    REQUIRE_FALSE(all.empty());
    const auto made = golden_replica();
    LogIndex index = 0;
    for (Bytes rest = all; !rest.empty();) {
      const auto size = take<std::uint32_t>(rest);
      if (size == 0) {
        CHECK(sum_of(canonical(*made).bytes()) == take<std::uint64_t>(rest));
        continue;
      }
      REQUIRE(rest.size() > size);
      const auto answers = made->apply(++index, rest.substr(0, size));
      rest.remove_prefix(size);
      INFO("entry " << index);
      REQUIRE(answers);
      REQUIRE(sum_of(*answers) == take<std::uint64_t>(rest));
    }
    CHECK(index >= 300);
  }
}

TEST_CASE("golden log: writes those that are missing", "[.record]") {
  if (std::getenv("SEMEL_RECORD") == nullptr) return;
  for (FeatureLevel level = feature_level_first; level <= feature_level_newest; ++level) {
    // A level that was released stays as it is.
    if (!std::filesystem::exists(path_of(level))) record(level);
  }
}

}  // namespace semel::tests
