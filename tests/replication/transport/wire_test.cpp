// Frames: what is decoded is what was encoded, and bytes that are none are refused.
#include "replication/transport/wire.hpp"

#include <cstring>
#include <fstream>
#include <sstream>

#include "tests/proofs/random.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;
using proofs::Random;

std::string some_text(Random& random, std::size_t most) {
  std::string text(random.below(most + 1), '\0');
  for (char& each : text) each = static_cast<char>(random.below(256));
  return text;
}

RaftMessage some_message(Random& random) {
  RaftMessage made{.from = random.bits(), .to = random.below(9), .term = random.bits(), .what = {}};
  switch (random.below(9)) {
    case 0:
      made.what = VoteRequest{random.bits(), random.bits(), random.chance(1, 2), true};
      break;
    case 1:
      made.what = VoteReply{random.chance(1, 2), random.chance(1, 2)};
      break;
    case 2: {
      AppendRequest append{random.bits(), random.bits(), random.below(300), random.bits(), {}};
      for (std::uint64_t i = random.below(9); i > 0; --i) {
        append.entries.push_back({random.below(9), static_cast<EntryType>(1 + random.below(3)),
                                  std::make_shared<const std::string>(some_text(random, 500))});
      }
      append.mark = random.bits();
      made.what = std::move(append);
      break;
    }
    case 3:
      made.what = AppendReply{random.bits(), random.bits(), random.bits(), random.bits()};
      break;
    case 4: {
      SnapshotOffer offer{{random.bits(), random.bits(), random.bits(), {}},
                          std::make_shared<const std::string>(some_text(random, 20))};
      for (std::uint64_t i = random.below(members_max + 1); i > 0; --i) {
        offer.snapshot.configuration.push_back(
            {random.bits(), some_text(random, 30), static_cast<MemberRole>(random.below(2))});
      }
      made.what = std::move(offer);
      break;
    }
    case 5:
      made.what = TimeoutNow{random.bits(), random.bits()};
      break;
    case 6:
      made.what = ReadProbe{random.bits()};
      break;
    case 7:
      made.what = CommitNotice{random.bits(), random.bits()};
      break;
    default:
      made.what = ReadReply{random.bits()};
  }
  return made;
}

Frame some_frame(Random& random) {
  switch (random.below(10)) {
    case 0:
      return Hello{
          .cluster_id = random.bits(), .node_id = random.bits(), .address = some_text(random, 30)};
    case 1:
      return Refusal{some_text(random, 80)};
    case 2:
      return Forward{random.bits(), some_text(random, 500)};
    case 3:
      return ForwardReply{random.bits(), some_text(random, 500)};
    case 4:
      return SnapshotRequest{random.bits(), random.bits(), random.bits()};
    case 5:
      return SnapshotChunk{some_text(random, 5'000)};
    case 6:
      return SnapshotEnd{random.chance(1, 2), random.bits()};
    default:
      return some_message(random);
  }
}

std::string bytes_of(const Frame& frame) {
  std::string bytes;
  encode(frame, bytes);
  return bytes;
}

/// As a connection reads it.
Result<Frame> read(Bytes bytes) {
  if (bytes.size() < frame_head_bytes) return Error{ErrorCode::bad_encoding, "no head"};
  SEMEL_TRY(rest, frame_rest(bytes.data(), frame_bytes_max));
  if (bytes.size() - frame_head_bytes < rest) return Error{ErrorCode::bad_encoding, "no rest"};
  return decode_frame(bytes.substr(frame_head_bytes, rest));
}

}  // namespace

TEST_CASE("wire: what is decoded is what was encoded", "[wire]") {
  Random random{1};
  for (int i = 0; i < 20'000; ++i) {
    const std::string bytes = bytes_of(some_frame(random));
    const auto frame = read(bytes);
    REQUIRE(frame.ok());
    REQUIRE(bytes_of(*frame) == bytes);
  }
}

TEST_CASE("wire: a changed or cut frame is refused", "[wire]") {
  Random random{2};
  for (int i = 0; i < 50'000; ++i) {
    const std::string bytes = bytes_of(some_frame(random));
    CHECK_FALSE(read(Bytes{bytes}.substr(0, random.below(bytes.size()))).ok());
    std::string changed = bytes;
    changed[random.below(changed.size())] ^= static_cast<char>(1U << random.below(8));
    const auto frame = read(changed);
    // Only the length may have become that of a longer frame.
    CHECK_FALSE(frame.ok());
  }
}

TEST_CASE("wire: a body that lies behind a right checksum is refused or means something",
          "[wire]") {
  Random random{3};
  std::uint64_t accepted = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string bytes = bytes_of(some_frame(random));
    const std::size_t body = bytes.size() - frame_head_bytes - frame_tail_bytes;
    for (std::uint64_t n = 1 + random.below(4); n > 0; --n) {
      bytes[frame_head_bytes + random.below(body)] = static_cast<char>(random.below(256));
    }
    const std::uint64_t sum = checksum({bytes.data() + frame_head_bytes, body});
    std::memcpy(bytes.data() + frame_head_bytes + body, &sum, sizeof sum);
    if (const auto frame = read(bytes); frame.ok()) {
      ++accepted;
      // What was read can be said again.
      static_cast<void>(bytes_of(*frame));
    }
  }
  CHECK(accepted > 1'000);
}

TEST_CASE("wire: a length beyond the bound is refused before anything is kept", "[wire]") {
  char head[frame_head_bytes];
  for (const std::uint32_t bytes :
       {0U, 0xffffffffU, static_cast<std::uint32_t>(hello_bytes_max - frame_tail_bytes + 1)}) {
    std::memcpy(head, &bytes, sizeof bytes);
    CHECK_FALSE(frame_rest(head, hello_bytes_max).ok());
  }
  const auto most = static_cast<std::uint32_t>(hello_bytes_max - frame_tail_bytes);
  std::memcpy(head, &most, sizeof most);
  CHECK(frame_rest(head, hello_bytes_max).ok());
}

TEST_CASE("wire: the examples of docs/replication-wire.md are what they say", "[wire][docs]") {
  std::ifstream page{SEMEL_REPLICATION_WIRE};
  REQUIRE(page);
  std::vector<std::string> examples;
  std::string line;
  bool is_inside = false;
  while (std::getline(page, line)) {
    if (line.starts_with("```")) {
      is_inside = line == "```hex";
      if (is_inside) examples.emplace_back();
    } else if (is_inside) {
      std::istringstream words{line};
      unsigned byte = 0;
      while (words >> std::hex >> byte) examples.back().push_back(static_cast<char>(byte));
    }
  }
  REQUIRE(examples.size() == 2);
  const auto first = read(examples[0]);
  REQUIRE(first.ok());
  const Hello& hello = std::get<Hello>(*first);
  CHECK(hello.cluster_id == 0xc0ffee);
  CHECK(hello.node_id == 2);
  CHECK(hello.address == "127.0.0.1:7102");
  const auto second = read(examples[1]);
  REQUIRE(second.ok());
  const RaftMessage& message = std::get<RaftMessage>(*second);
  CHECK(message.from == 1);
  CHECK(message.to == 2);
  CHECK(message.term == 3);
  const AppendRequest& append = std::get<AppendRequest>(message.what);
  CHECK(append.previous_index == 7);
  CHECK(append.commit == 6);
  CHECK(*append.entries.at(0).data == "hello");
  CHECK(append.mark == 9);
  for (const std::string& each : examples) CHECK(bytes_of(*read(each)) == each);
}

}  // namespace semel::tests
