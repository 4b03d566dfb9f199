#include "engine/memory/use_table.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/random.hpp"

namespace semel::engine {

namespace {

std::uint32_t random_bits() noexcept {
  static constinit thread_local std::uint64_t state = 0;
  if (state == 0) state = base::mix_bits(reinterpret_cast<std::uintptr_t>(&state));
  return static_cast<std::uint32_t>(base::next_random(state) >> 32);
}

}  // namespace

bool UseTable::start(std::size_t bytes, Timestamp now) noexcept {
  SEMEL_ASSERT(!is_started());
  const std::size_t sets = std::max<std::size_t>(bytes / (cells_per_set * sizeof(Cell)), 1);
  // Zeroed by the system when it is touched.
  cells_made_.reset(static_cast<Cell*>(std::calloc(sets * cells_per_set, sizeof(Cell))));
  if (cells_made_ == nullptr) return false;
  sets_ = sets;
  began_ = now;
  cells_.store(cells_made_.get(), std::memory_order_release);  // mo: release [use_table.cells]
  return true;
}

void UseTable::follow(const EvictionTerms& terms) noexcept {
  SEMEL_ASSERT(is_started() || terms.databases == 0);
  // mo: relaxed: settings; a use under the old ones beside the change does no harm
  by_frequency_.store(terms.order == EvictionOrder::lfu, std::memory_order_relaxed);
  log_factor_.store(terms.lfu_log_factor, std::memory_order_relaxed);        // mo: as above
  decay_minutes_.store(terms.lfu_decay_minutes, std::memory_order_relaxed);  // mo: as above
  databases_.store(terms.databases, std::memory_order_relaxed);              // mo: as above
}

UseTable::Place UseTable::place_of(HashBits hash) const noexcept {
  Cell* const cells = cells_.load(std::memory_order_acquire);  // mo: acquire [use_table.cells]
  if (cells == nullptr) return {nullptr, 0};
  const std::uint64_t mixed = base::mix_bits(hash.bits + 1);
  const std::uint64_t set = ((mixed >> 32) * sets_) >> 32;
  const auto tag = static_cast<std::uint32_t>(mixed & 0xff);
  return {cells + set * cells_per_set, std::max(tag, 1U)};  // 0: an empty cell
}

std::uint32_t UseTable::after_use(std::uint32_t use, Timestamp now, bool is_new) noexcept {
  // mo: relaxed: settings
  if (!by_frequency_.load(std::memory_order_relaxed)) return use::second_of(now);
  if (is_new) return use::pack(use::minute_of(now), use::counter_first);
  const std::uint32_t counter =
      use::counter_of(use, now, decay_minutes_.load(std::memory_order_relaxed));
  // mo: relaxed: a setting
  const std::uint64_t log_factor = log_factor_.load(std::memory_order_relaxed);
  return use::pack(use::minute_of(now), use::counted(counter, log_factor, random_bits()));
}

std::uint32_t UseTable::age_of(std::uint32_t use, Timestamp now) const noexcept {
  // mo: relaxed: settings
  if (!by_frequency_.load(std::memory_order_relaxed)) return use::idle_of(use, now);
  return use::counter_max -
         use::counter_of(use, now, decay_minutes_.load(std::memory_order_relaxed));
}

UseTable::Cell& UseTable::cell_of(const Place& place, Timestamp now) const noexcept {
  Cell* oldest = place.set;
  std::uint32_t oldest_age = 0;
  for (std::size_t i = 0; i < cells_per_set; ++i) {
    Cell& cell = place.set[i];
    const std::uint32_t word = cell.load(std::memory_order_relaxed);  // mo: relaxed: see the head
    if (word >> tag_shift == place.tag) return cell;
    // An empty cell is older than any.
    const std::uint32_t age = word == 0 ? ~std::uint32_t{0} : age_of(word & use::mask, now);
    if (i != 0 && age <= oldest_age) continue;
    oldest = &cell;
    oldest_age = age;
  }
  return *oldest;
}

void UseTable::note(HashBits hash, Timestamp now, bool is_new) noexcept {
  const Place place = place_of(hash);
  if (place.set == nullptr) return;
  Cell& cell = cell_of(place, now);
  const std::uint32_t seen = cell.load(std::memory_order_relaxed);  // mo: relaxed: see the head
  const bool is_known = seen >> tag_shift == place.tag;
  const std::uint32_t before =
      is_known ? seen & use::mask : use::pack(use::minute_of(now), use::counter_first);
  const std::uint32_t word = place.tag << tag_shift | after_use(before, now, is_new);
  if (word != seen) cell.store(word, std::memory_order_relaxed);  // mo: relaxed: see the head
}

void UseTable::set(HashBits hash, Timestamp now, Use use) noexcept {
  const Place place = place_of(hash);
  if (place.set == nullptr) return;
  // mo: relaxed: a setting
  const bool by_frequency = by_frequency_.load(std::memory_order_relaxed);
  const std::uint32_t packed =
      by_frequency ? use::pack(use::minute_of(now), std::min(use.frequency, use::counter_max))
                   : (use::second_of(now) - use.idle_seconds) & use::mask;
  // mo: relaxed: see the head
  cell_of(place, now).store(place.tag << tag_shift | packed, std::memory_order_relaxed);
}

UseTable::Use UseTable::use_of(HashBits hash, Timestamp now) const noexcept {
  const Place place = place_of(hash);
  if (place.set == nullptr) return {};
  const auto made_of = [&](std::uint32_t use, bool is_exact) {
    // mo: relaxed: a setting
    const std::uint64_t decay = decay_minutes_.load(std::memory_order_relaxed);
    return Use{use::idle_of(use, now), use::counter_of(use, now, decay), is_exact};
  };
  bool is_full = true;
  std::uint32_t oldest = 0;
  std::uint32_t oldest_age = 0;
  for (std::size_t i = 0; i < cells_per_set; ++i) {
    const std::uint32_t word = place.set[i].load(std::memory_order_relaxed);  // mo: see the head
    if (word >> tag_shift == place.tag) return made_of(word & use::mask, true);
    is_full = is_full && word != 0;
    const std::uint32_t age = word == 0 ? 0 : age_of(word & use::mask, now);
    if (age < oldest_age || word == 0) continue;
    oldest = word & use::mask;
    oldest_age = age;
  }
  if (is_full) {  // used before all of them
    Use bound = made_of(oldest, false);
    bound.frequency = 0;
    return bound;
  }
  // Not used since the table was made.
  Use bound;
  bound.idle_seconds = use::idle_of(use::second_of(began_), now);
  // mo: relaxed: a setting
  bound.frequency = use::counter_of(use::pack(use::minute_of(began_), use::counter_first), now,
                                    decay_minutes_.load(std::memory_order_relaxed));
  return bound;
}

}  // namespace semel::engine
