// The words of SORT and SORT_RO.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/commands/command.hpp"

namespace semel::net {

struct SortWords {
  bool is_descending = false;
  bool is_alpha = false;
  bool keeps_order = false;  ///< BY without an asterisk
  std::int64_t offset = 0;
  std::int64_t count = -1;  ///< negative: all
  std::optional<std::string_view> by{};
  std::vector<std::string_view> gets{};
  std::optional<std::string_view> target{};

  /// Keys are read that the words do not name.
  [[nodiscard]] bool has_patterns() const noexcept { return !gets.empty() || (by && !keeps_order); }
};

/// None: an error has been written. `stores`: STORE is one of the words.
[[nodiscard]] std::optional<SortWords> sort_words_of(Call& call, bool stores);

/// The key, and perhaps the field, that a pattern and an element make.
struct SortPlace {
  std::string key;
  std::optional<std::string_view> field{};  ///< of `pattern`
};
/// None: the pattern has no asterisk.
[[nodiscard]] std::optional<SortPlace> sort_place(std::string_view pattern,
                                                  std::string_view element);
/// A weight, as strtod reads it up to a zero byte. None: it is no number.
[[nodiscard]] std::optional<double> sort_number(std::string_view text);

}  // namespace semel::net
