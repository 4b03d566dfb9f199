// Lines that wait for the engine's answer, with their keys; and the time that lines carry.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/assert.hpp"
#include "semel/clock.hpp"
#include "semel/engine.hpp"
#include "tools/semel/dedup/dedup_options.hpp"

namespace semel::tool {

/// Points into the lines that it was given.
class LineBatch {
 public:
  // 256 lines of 64 bytes are 16 KiB: a batch and its records' cache lines stay near the core.
  static constexpr std::size_t lines_max = 256;

  explicit LineBatch(const DedupOptions& options);
  LineBatch(const LineBatch&) = delete;
  LineBatch& operator=(const LineBatch&) = delete;

  /// For a line more, and for its key.
  [[nodiscard]] bool has_room() const noexcept {
    return size_ < lines_max && key_buffer_bytes - key_bytes_used_ >= limits::key_bytes_max;
  }
  /// Where the key of the next line may be written, which is not part of the line.
  [[nodiscard]] char* key_space() const noexcept { return key_buffer_.get() + key_bytes_used_; }
  /// Behind a key that was written there; 0: it was not. Also for add() behind a clear().
  [[nodiscard]] std::size_t end_of(Bytes key) const noexcept {
    return key.data() == key_space() ? key_bytes_used_ + key.size() : 0;
  }
  /// `key_end`: end_of(key) as it was when the key was written.
  void add(Bytes line, std::uint64_t number, Bytes key, std::size_t key_end) noexcept;
  void clear() noexcept { size_ = key_bytes_used_ = 0; }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] Bytes line(std::size_t index) const noexcept { return lines_[index]; }
  [[nodiscard]] std::uint64_t number(std::size_t index) const noexcept { return numbers_[index]; }
  [[nodiscard]] const StoreOutcome& outcome(std::size_t index) const noexcept {
    return outcomes_[index];
  }
  /// Asks the engine about all lines from `first` on.
  void ask(Engine& engine, std::size_t first);
  /// About that line alone.
  void ask_again(Engine& engine, std::size_t index);
  /// Removes what the engine has stored of lines behind that one: otherwise a later repeat of the
  /// line would make this one the duplicate.
  void undo_behind(Engine& engine, std::size_t index);

  /// Invariants: size_ <= lines_max; key_bytes_used_ <= key_buffer_bytes.
  void check_invariants() const noexcept {
    SEMEL_ASSERT(size_ <= lines_max);
    SEMEL_ASSERT(key_bytes_used_ <= key_buffer_bytes);
  }

 private:
  static constexpr std::size_t key_buffer_bytes = std::size_t{256} << 10;
  static_assert(key_buffer_bytes >= 2 * limits::key_bytes_max);

  std::size_t size_ = 0;
  std::size_t key_bytes_used_ = 0;
  std::unique_ptr<char[]> key_buffer_;  // keys that are not part of their line
  std::array<Bytes, lines_max> lines_;
  std::array<std::uint64_t, lines_max> numbers_{};
  std::array<StoreOp, lines_max> ops_;
  std::array<StoreOutcome, lines_max> outcomes_;
};

/// The newest time of a line. It never goes back, and the engine's clock stands there.
class LineTime {
 public:
  /// `clock`: the engine's, when the lines carry the time; else null, and nothing is called.
  /// `watermark`: of earlier runs. `bias_ms`: the clock minus the watermark; 0: any.
  LineTime(ManualClock* clock, std::optional<std::int64_t> watermark, std::int64_t bias_ms) noexcept
      : clock_(clock), bias_ms_(bias_ms), watermark_(watermark) {}

  /// The times that a state can hold; none: all.
  struct Range {
    std::int64_t first;
    std::int64_t last;
  };
  [[nodiscard]] std::optional<Range> range() const noexcept {
    if (bias_ms_ == 0) return std::nullopt;
    return Range{1 - bias_ms_, 2 * bias_ms_};
  }
  [[nodiscard]] bool is_in_range(std::int64_t unix_ms) const noexcept {
    const std::optional<Range> all = range();
    return !all || (all->first <= unix_ms && unix_ms <= all->last);
  }
  /// Of the first line of all.
  void begin(std::int64_t unix_ms) {
    if (watermark_) return;
    watermark_ = unix_ms;
    if (bias_ms_ == 0) return;
    const std::int64_t now = clock_->now().time_since_epoch().count();
    clock_->advance(Millis{unix_ms + bias_ms_ - now});
  }
  [[nodiscard]] bool is_newer(std::int64_t unix_ms) const noexcept {
    SEMEL_ASSERT(watermark_.has_value());
    return unix_ms > *watermark_;
  }
  void advance_to(std::int64_t unix_ms) {
    SEMEL_ASSERT(is_newer(unix_ms));
    clock_->advance(Millis{unix_ms - *watermark_});
    watermark_ = unix_ms;
  }
  [[nodiscard]] std::int64_t age_of(std::int64_t unix_ms) const noexcept {
    SEMEL_ASSERT(watermark_.has_value());
    return *watermark_ - unix_ms;
  }

 private:
  ManualClock* const clock_;
  const std::int64_t bias_ms_;
  std::optional<std::int64_t> watermark_;
};

}  // namespace semel::tool
