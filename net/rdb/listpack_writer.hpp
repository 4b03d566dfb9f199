// Writes a listpack, see packed_lists.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace semel::net {

/// Items in order, then take(). Less than 4 GiB together. std::bad_alloc.
class ListpackWriter {
 public:
  ListpackWriter() : bytes_(head_bytes, '\0') {}

  void number(std::int64_t number);
  /// Stays text, also if it is that of a number.
  void text(std::string_view text);

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.size(); }
  /// Once.
  [[nodiscard]] std::string take();

 private:
  static constexpr std::size_t head_bytes = 6;

  void little(std::uint64_t value, std::size_t bytes);
  /// Of the item that began at `begin`.
  void end_item(std::size_t begin);

  std::string bytes_;
  std::size_t items_ = 0;
};

}  // namespace semel::net
