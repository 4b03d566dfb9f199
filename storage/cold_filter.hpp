// A Bloom filter over a stretch of ranks: one cache line a key, one bit in each of its eight words.
//
// The line follows the rank's place in the stretch, so a part of a spill makes its filter alone. It
// is written once by the spiller before anybody can see it, and read only from then on.
//
// False positives, by bits a record (binomial load of the lines included, measured by
// cold_filter_test.cpp): 12: 0.45 %, 15: 0.12 %, 20: 0.02 %.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "semel/types.hpp"

namespace semel::storage {

/// The ranks first..last, cut into `count` pieces of the same width.
class Stretch {
 public:
  Stretch(std::uint64_t first, std::uint64_t last, std::uint64_t count) noexcept
      : first_(first), count_(count) {
    const std::uint64_t width = last - first + 1;  // 0: all ranks
    if (width == 0) {
      scale_ = count;
    } else if (width <= count) {
      scale_ = ~std::uint64_t{0};  // a piece for each rank, and more
    } else {
      scale_ = static_cast<std::uint64_t>((static_cast<Wide>(count) << 64) / width);
    }
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t piece_of(std::uint64_t rank) const noexcept {
    const auto piece = static_cast<std::uint64_t>((static_cast<Wide>(rank - first_) * scale_) >> 64);
    return std::min(piece, count_ - 1);
  }

 private:
  __extension__ using Wide = unsigned __int128;
  std::uint64_t first_;
  std::uint64_t count_;
  std::uint64_t scale_;
};

class ColdFilter {
 public:
  static constexpr std::size_t line_bytes = 64;

  [[nodiscard]] static std::uint64_t lines_for(std::uint64_t records, unsigned bits) noexcept {
    return std::max<std::uint64_t>(1, (records * bits + 511) / 512);
  }
  /// Empty, for the ranks first..last.
  ColdFilter(std::uint64_t first, std::uint64_t last, std::uint64_t lines)
      : stretch_(first, last, lines) {
    words_.reset(static_cast<std::uint64_t*>(std::aligned_alloc(line_bytes, bytes())));
    if (words_ != nullptr) std::memset(words_.get(), 0, bytes());
  }

  /// False: there was no memory.
  [[nodiscard]] bool ok() const noexcept { return words_ != nullptr; }
  [[nodiscard]] std::uint64_t lines() const noexcept { return stretch_.count(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return lines() * line_bytes; }
  [[nodiscard]] Bytes view() const noexcept {
    return {reinterpret_cast<const char*>(words_.get()), bytes()};
  }
  /// Puts back a piece of view(). False: it lies outside.
  [[nodiscard]] bool load(std::size_t at, Bytes piece) noexcept {
    if (at > bytes() || piece.size() > bytes() - at) return false;
    std::memcpy(reinterpret_cast<char*>(words_.get()) + at, piece.data(), piece.size());
    return true;
  }

  void add(std::uint64_t rank) noexcept {
    std::uint64_t* const line = line_of(rank);
    const std::uint64_t mixed = mix(rank);
    for (unsigned word = 0; word < 8; ++word) line[word] |= bit(mixed, word);
  }
  void prefetch(std::uint64_t rank) const noexcept { __builtin_prefetch(line_of(rank)); }
  [[nodiscard]] bool may_hold(std::uint64_t rank) const noexcept {
    const std::uint64_t* const line = line_of(rank);
    const std::uint64_t mixed = mix(rank);
    std::uint64_t missing = 0;
    for (unsigned word = 0; word < 8; ++word) missing |= ~line[word] & bit(mixed, word);
    return missing == 0;
  }

 private:
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };

  [[nodiscard]] std::uint64_t* line_of(std::uint64_t rank) const noexcept {
    return words_.get() + stretch_.piece_of(rank) * 8;
  }
  /// The ranks of one line differ in their lower bits only.
  [[nodiscard]] static std::uint64_t mix(std::uint64_t rank) noexcept {
    rank *= 0x9E37'79B9'7F4A'7C15U;
    rank ^= rank >> 32;
    rank *= 0xD6E8'FEB8'6659'FD93U;
    return rank ^ (rank >> 32);
  }
  [[nodiscard]] static std::uint64_t bit(std::uint64_t mixed, unsigned word) noexcept {
    return std::uint64_t{1} << ((mixed >> (word * 6)) & 63);
  }

  Stretch stretch_;
  std::unique_ptr<std::uint64_t[], Free> words_;
};

}  // namespace semel::storage
