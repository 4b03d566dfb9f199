#include "storage/journal/log_extent.hpp"

#include <utility>

namespace semel::storage {

std::uint8_t LogExtent::measure() const noexcept {
  const LogOffset at = tail() + state_step();
  const LogOffset end = room();
  // What operations under way may still append after accepts() became false. One segment: enough
  // for some hundred threads with values of some 10 KiB each, or for one large value.
  const LogOffset kept = at + segment_bytes_;
  const std::size_t frees_bytes = segment_bytes_ / 2;
  const bool frees = kept <= end;
  const bool accepts = kept + frees_bytes <= end;
  const bool crowded = number_of(at) - oldest() >= segment_count * 3 / 4 ||
                       kept + frees_bytes + segment_bytes_ / 2 > end;
  return static_cast<std::uint8_t>((frees ? state_frees : 0) | (accepts ? state_accepts : 0) |
                                   (crowded ? state_crowded : 0));
}

void LogExtent::refresh_state() noexcept {
  // The last thread to store measures once more, so the value that stays is not older than its
  // inputs.
  std::uint8_t state = measure();
  do {
    state_.store(state, std::memory_order_seq_cst);  // mo: seq_cst [log.state]: then measured again
  } while (std::exchange(state, measure()) != state);
}

bool LogExtent::reserve_to(LogOffset offset, LogOffset to) noexcept {
  // mo: seq_cst [log.tail] [log.take_back]: as in reserve()
  if (!tail_.compare_exchange_weak(offset, to, std::memory_order_seq_cst,
                                   std::memory_order_relaxed)) {
    return false;
  }
  refresh_state();
  return true;
}

void LogExtent::note_made(std::uint64_t number) noexcept {
  // mo: relaxed: only this thread sets it. release [log.room]
  if (oldest_.load(std::memory_order_relaxed) == 0) {
    oldest_.store(number, std::memory_order_release);  // mo: release [log.room]
  }
  SEMEL_ASSERT(number >= oldest());
  room_.store(end_of(number), std::memory_order_release);  // mo: [log.room]
  refresh_state();
}

void LogExtent::note_released(std::uint64_t number) noexcept {
  SEMEL_ASSERT(number == oldest());
  oldest_.store(number + 1, std::memory_order_release);  // mo: release [log.room]
  refresh_state();
}

void LogExtent::note_taken_back(std::uint64_t number) noexcept {
  SEMEL_ASSERT(end_of(number) == room() && number > oldest());
  room_.store(number * segment_bytes_, std::memory_order_release);  // mo: [log.room]
  refresh_state();
}

}  // namespace semel::storage
