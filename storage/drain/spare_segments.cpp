#include "storage/drain/spare_segments.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace semel::storage {

Status SpareSegments::prepare() {
  // Opened on a full disk: none was made by the start.
  if (!log_.extent().has_begun()) SEMEL_CHECK(log_.segments().begin());
  while (log_.segments().wants_segment()) {
    const std::uint64_t rounds = sync_.requested_rounds();
    const LogOffset tail = log_.tail();
    SEMEL_ASSERT(prepared_tail_ <= tail && prepared_rounds_ <= rounds);
    // Several segments are made in a row; decide again only when enough was written in between.
    if (tail - prepared_tail_ >= log_.extent().segment_bytes() / 2) {
      // Zeroed segments make small syncs faster: worth it after many of them.
      constexpr std::uint64_t bytes_each = std::uint64_t{64} << 10;
      zeroes_ = tail - prepared_tail_ <= (rounds - prepared_rounds_) * bytes_each;
      prepared_rounds_ = rounds;
      prepared_tail_ = tail;
    }
    SEMEL_CHECK(log_.segments().prepare(zeroes_));
    progress_.raise();
  }
  return Done{};
}

void SpareSegments::ensure_spare_segments(std::uint64_t count, bool is_full_batch) {
  // So many were filled within so short a time: as many may follow before these are drained.
  constexpr Millis loaded_within{10'000};
  const bool loaded = is_full_batch && since_drain_.passed() < loaded_within;
  const std::uint64_t likely = loaded ? count : 0;
  // Draining needs space itself, and must find some on a disk that is nearly full.
  const StorageOptions& options = context_.options;
  const bool has_space = context_.disk.bytes_free(options.directory) >= 2 * options.log_bytes;
  log_.segments().expect(has_space ? std::max(likely, filled_ + filled_ / 2) : 0);
  // Draining makes space, and the next attempt reports the error if it persists.
  static_cast<void>(prepare());
  draining_from_ = log_.extent().number_of(log_.tail());
}

void SpareSegments::drained() noexcept {
  const std::uint64_t now = log_.extent().number_of(log_.tail());
  SEMEL_ASSERT(draining_from_ <= now);
  filled_ = now - draining_from_;
  since_drain_.restart();
}

bool SpareSegments::measure_write_rate() {
  constexpr std::uint64_t measure_after_ms = 5'000;
  const std::uint64_t now_ms = context_.durable_now();
  if (now_ms - measured_ms_ < measure_after_ms) return false;
  measured_ms_ = now_ms;
  const LogOffset tail = log_.tail();
  is_write_rate_low_ = tail - measured_tail_ < log_.extent().segment_bytes();
  measured_tail_ = tail;
  log_.segments().keep_spares(!is_write_rate_low_);
  if (is_write_rate_low_) {
    log_.segments().remove_spares();
    log_.segments().expect(0);
    log_.segments().take_back();
  }
  return true;
}

}  // namespace semel::storage
