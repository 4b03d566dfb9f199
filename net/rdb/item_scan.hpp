// Finds the end of an item of an RDB file while its bytes arrive, without unpacking it: no byte is
// looked at twice, and nothing is kept but places.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace semel::net {

/// What an item is made of, a letter each. A digit: so many bytes.
///   S  string     L  length     D  a score as text     M  the parts of a module, up to its end
///   *( .. )  a length, and the letters in the brackets so many times; three deep at most
using ItemShape = const char*;

/// By the first byte of an item, which is not part of it. Null: no item begins so.
[[nodiscard]] ItemShape shape_of(std::uint8_t first) noexcept;

enum class ScanResult : std::uint8_t {
  more,  ///< the bytes end before the item
  whole,
  damaged,
  too_large,  ///< more than `bytes_max`; found before the bytes are there
};

class ItemScan {
 public:
  ItemScan(ItemShape shape, std::size_t bytes_max) noexcept : next_(shape), bytes_max_(bytes_max) {}

  /// `bytes` begin with the item; each call brings the bytes of the last one again, and perhaps
  /// more behind them. Goes on where that call ended.
  [[nodiscard]] ScanResult scan(std::string_view bytes) noexcept;
  /// How many bytes have been understood: of a whole item, all of it.
  [[nodiscard]] std::size_t place() const noexcept { return place_; }

 private:
  struct Loop {
    ItemShape begin = nullptr;
    std::uint64_t left = 0;
  };
  static constexpr std::size_t depth_max = 3;

  ScanResult step(std::string_view bytes) noexcept;
  ScanResult skip(std::string_view bytes, std::size_t head, std::uint64_t rest) noexcept;
  ScanResult length(std::string_view bytes, std::size_t& head, std::uint64_t& value) const noexcept;
  ScanResult skip_string(std::string_view bytes, std::size_t head) noexcept;
  ScanResult skip_score(std::string_view bytes) noexcept;
  ScanResult skip_module_part(std::string_view bytes, bool& is_end) noexcept;
  ScanResult begin_loop(std::string_view bytes) noexcept;
  void end_loop() noexcept;

  ItemShape next_;
  std::size_t bytes_max_;
  std::size_t place_ = 0;
  std::array<Loop, depth_max> loops_{};
  std::size_t depth_ = 0;
};

}  // namespace semel::net
