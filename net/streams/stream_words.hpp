// The words of the commands of streams: ids, intervals, trimming, the options of XREAD. Which words
// are accepted, and which error comes first, is as in redis-server 7.0.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/types/stream.hpp"
#include "net/commands/command.hpp"

namespace semel::net {

/// What redis-server sees of a text that it takes for a C string.
[[nodiscard]] inline std::string_view c_string_in(std::string_view text) noexcept {
  return text.substr(0, text.find('\0'));
}

inline constexpr std::string_view bad_id_text =
    "ERR Invalid stream ID specified as stream command argument";

/// "ms-seq", or "ms", whose seq is then `missing_seq`. None: it is no id.
[[nodiscard]] std::optional<engine::StreamId> stream_id_of(std::string_view word,
                                                           std::uint64_t missing_seq = 0);
/// "-" and "+" as well, which are the smallest and the largest.
[[nodiscard]] std::optional<engine::StreamId> stream_end_of(std::string_view word,
                                                            std::uint64_t missing_seq = 0);
/// "ms-*" as well.
[[nodiscard]] std::optional<engine::WantedId> wanted_id_of(std::string_view word);

// False, or none: an error has been written.

/// The begin and the end of an interval; "(" in front: without the id itself.
[[nodiscard]] std::optional<engine::StreamId> read_interval_begin(Call& call,
                                                                  std::string_view word);
[[nodiscard]] std::optional<engine::StreamId> read_interval_end(Call& call, std::string_view word);
/// An id as stream_id_of() reads it.
[[nodiscard]] std::optional<engine::StreamId> read_stream_id(Call& call, std::string_view word);
[[nodiscard]] bool read_number(Call& call, std::string_view word, std::int64_t& number);

/// The options of XADD and XTRIM.
struct AddWords {
  engine::StreamTrim trim{};
  bool only_if_there = false;
  engine::WantedId wanted{};
  std::size_t fields_at = 0;  ///< of XADD
};
[[nodiscard]] bool read_add(Call& call, AddWords& words);
[[nodiscard]] bool read_trim(Call& call, AddWords& words);

/// The words of XREAD and XREADGROUP.
struct ReadWords {
  std::optional<std::int64_t> block_ms{};  ///< 0: for ever
  std::uint64_t count = 0;                 ///< of each stream; 0: all
  bool has_group = false;
  bool no_ack = false;
  std::string_view group{};
  std::string_view consumer{};
  std::span<const std::string_view> keys{};
  std::span<const std::string_view> ids{};
};
[[nodiscard]] bool read_read(Call& call, bool of_group, ReadWords& words);

}  // namespace semel::net
