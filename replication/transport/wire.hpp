// What nodes of a group send each other, as bytes (docs/replication-wire.md).
//
//   frame    u32 bytes of kind and body | u8 kind | body | u64 XXH3-64 of kind and body
//
// Numbers of a frame are little-endian; those of a body have seven bits a byte, the lowest first.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "replication/core/message.hpp"
#include "replication/state/feature_level.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::replication {

inline constexpr std::uint64_t wire_magic = 0x3145524957'4d53;  // "SMWIRE1"
inline constexpr std::uint8_t wire_version = 1;                 ///< that this release speaks
inline constexpr std::uint8_t wire_version_least = 1;           ///< the oldest that it understands
inline constexpr std::size_t frame_head_bytes = 4;
inline constexpr std::size_t frame_tail_bytes = 8;
/// Of one frame: an entry may be as large as a segment of the replicated log.
inline constexpr std::size_t frame_bytes_max = std::size_t{32} << 20;
inline constexpr std::size_t hello_bytes_max = 1'024;  ///< before a peer is known
inline constexpr std::size_t chunk_bytes = std::size_t{256} << 10;
inline constexpr std::size_t message_entries_max = 4'096;

enum class Purpose : std::uint8_t { messages = 0, snapshot = 1 };

/// The first frame of both sides.
struct Hello {
  std::uint8_t version = wire_version;
  std::uint8_t version_least = wire_version_least;
  std::uint64_t cluster_id = 0;
  NodeId node_id = 0;
  Purpose purpose = Purpose::messages;
  FeatureLevel feature_level = feature_level_first;  ///< up to which it knows
  std::string address{};  ///< where the sender listens: a new node does not know the leader
  LogIdentity log{};      ///< that it has; neither number is 0, or both are
};
/// Instead of a hello: why there is no connection. The last frame.
struct Refusal {
  std::string reason;
};
/// A call for the leader and its answer, as bytes whose format the callers define.
struct Forward {
  std::uint64_t id = 0;
  std::string bytes;
};
struct ForwardReply {
  std::uint64_t id = 0;
  std::string bytes;
};
/// For a file of a snapshot from this offset on.
struct SnapshotRequest {
  LogIndex index = 0;
  Term term = 0;
  std::uint64_t offset = 0;
};
struct SnapshotChunk {
  std::string bytes;
};
struct SnapshotEnd {
  bool is_there = false;    ///< false: it is not there any more
  std::uint64_t bytes = 0;  ///< of the whole file
};

using Frame = std::variant<Hello, Refusal, RaftMessage, Forward, ForwardReply, SnapshotRequest,
                           SnapshotChunk, SnapshotEnd>;

/// Appends the whole frame, without what a peer that knows features up to `level` cannot read.
void encode(const Frame& frame, std::string& to, FeatureLevel level = feature_level_newest);
/// Of kind and body.
[[nodiscard]] std::uint64_t checksum(Bytes bytes) noexcept;
/// The bytes of kind, body and tail that follow this head. Errors: bad_encoding (more than
/// `at_most`, or less than a frame has).
[[nodiscard]] Result<std::size_t> frame_rest(const char* head, std::size_t at_most);
/// `rest`: all behind the head. Errors: bad_encoding: a checksum, a kind, a value out of its range.
[[nodiscard]] Result<Frame> decode_frame(Bytes rest);

}  // namespace semel::replication
