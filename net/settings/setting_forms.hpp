// Texts that have a form of their own, by the word in the column `detail` of settings.def.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "semel/result.hpp"

namespace semel::net {

/// Classes of keyspace events, by their letters in notify-keyspace-events.
enum EventClass : std::uint32_t {
  event_generic = 1U << 0U,     // g
  event_string = 1U << 1U,      // $
  event_list = 1U << 2U,        // l
  event_set = 1U << 3U,         // s
  event_hash = 1U << 4U,        // h
  event_zset = 1U << 5U,        // z
  event_expired = 1U << 6U,     // x
  event_evicted = 1U << 7U,     // e
  event_stream = 1U << 8U,      // t
  event_module = 1U << 9U,      // d
  event_new = 1U << 10U,        // n
  event_keyspace = 1U << 11U,   // K
  event_keyevent = 1U << 12U,   // E
  event_missed = 1U << 13U,     // m
  event_all = (1U << 10U) - 1,  // A
};
/// None: a letter that is not a class.
[[nodiscard]] std::optional<std::uint32_t> event_classes_of(std::string_view letters);

struct OutputLimit {
  std::int64_t hard_bytes = 0;  ///< 0: none
  std::int64_t soft_bytes = 0;  ///< 0: none
  std::int64_t soft_seconds = 0;
};
enum class ClientClass : std::uint8_t { normal, replica, pubsub };
/// By ClientClass.
using OutputLimits = std::array<OutputLimit, 3>;
/// Those of a text that CONFIG GET showed; a class that is not named has no limit.
[[nodiscard]] OutputLimits output_limits_of(std::string_view text);

/// What maxmemory-clients means beside a maxmemory of `whole` bytes. 0: a quarter of it. Never less
/// than ClientMemory::limit_min.
[[nodiscard]] std::size_t clients_bytes_of(std::string_view text, std::size_t whole);

/// `text` in its usual form. `form` is the detail of a row; an unknown form accepts every text.
/// `present`: the value so far, for forms that can be changed in part. The detail of an error is
/// the text of CONFIG SET.
[[nodiscard]] Result<std::string> formed_text(std::string_view form, std::string_view text,
                                              std::string_view present);

}  // namespace semel::net
