// The table of CLIENT TRACKING: the keys that connections have read, and their readers, by number.
//
// Not thread-safe. Invariant: order has each key of the table once, at its own place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace semel::net {

class TrackedKeys {
 public:
  static constexpr std::size_t bytes_max = std::size_t{128} << 20;
  static constexpr std::size_t key_bytes = 160;  ///< of a key, beside its name; about

  using Ids = std::vector<std::uint64_t>;  ///< ascending

  /// Keys at most; 0: bytes_max alone holds.
  void set_keys_max(std::size_t keys_max) noexcept { keys_max_ = keys_max; }
  void add(std::uint64_t id, std::string_view key);
  [[nodiscard]] bool has(std::uint64_t id, std::string_view key) const;
  /// Removes the key and returns its readers; none: it is not in the table.
  [[nodiscard]] Ids take(std::string_view key);
  void clear() noexcept;

  [[nodiscard]] bool is_full() const noexcept {
    return bytes_ > bytes_max || (keys_max_ != 0 && table_.size() > keys_max_);
  }
  /// A key at random, while the table is not empty.
  [[nodiscard]] std::string any_key();
  [[nodiscard]] std::size_t size() const noexcept { return table_.size(); }
  /// Pairs of a key and a reader.
  [[nodiscard]] std::size_t items() const noexcept { return items_; }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  struct Readers {
    Ids ids{};
    std::size_t place = 0;  // in order_
  };

  std::unordered_map<std::string, Readers, Hash, std::equal_to<>> table_;
  std::vector<const std::string*> order_;  // keys of table_
  std::size_t items_ = 0;
  std::size_t bytes_ = 0;
  std::size_t keys_max_ = 1'000'000;
  std::uint64_t random_ = 1;
};

}  // namespace semel::net
