#include "engine/upkeep/timers.hpp"

#include <algorithm>
#include <array>

#include "engine/core/operation.hpp"
#include "engine/upkeep/expiry.hpp"

namespace semel::engine {

void Timers::start(Timestamp now) {
  wheel_ = std::make_unique<TtlWheel>(core_.region(), now);
}

bool Timers::drain(ThreadContext& own, ThreadContext& context) {
  // Where most timed records end early (locks, tokens), most timers are dead before they reach
  // the wheel: looking at each costs a cache hit, keeping them all costs memory for their whole
  // ttl.
  const auto read = [&](Count which) {
    // mo: relaxed: a guess.
    return context.counts[static_cast<std::size_t>(which)].load(std::memory_order_relaxed);
  };
  const std::uint64_t ended = read(Count::ended_early);
  const std::uint64_t logged = read(Count::timers_logged);
  const std::uint64_t ended_now = ended - context.drained_ended;
  const bool many_ended = ended_now != 0 && ended_now * 4 >= logged - context.drained_logged;
  context.drained_ended = ended;
  context.drained_logged = logged;
  if (many_ended) {
    drain_living(own, context);
  } else {
    TtlWheel& wheel = *wheel_;
    context.timers.drain([&](const TimerEntry& timer) { return wheel.schedule(timer); });
  }
  return !context.timers.has_dropped();
}

void Timers::drain_living(ThreadContext& own, ThreadContext& context) {
  // A key that comes and goes within a millisecond leaves many timers of the same time.
  struct Same {
    std::uint64_t hash_bits = 0;
    Timestamp wake{};
    unsigned scheduled = 0;
  };
  std::array<Same, 16> recent{};
  TtlWheel& wheel = *wheel_;
  context.timers.drain([&](const TimerEntry& timer) {
    Same& same = recent[(timer.hash_bits ^
                         static_cast<std::uint64_t>(timer.wake.time_since_epoch().count())) %
                        recent.size()];
    if (same.hash_bits != timer.hash_bits || same.wake != timer.wake) {
      same = {timer.hash_bits, timer.wake, 0};
    }
    if (timers_alive(core_, own, timer.hash_bits, timer.wake, same.scheduled + 1) <= same.scheduled)
      return true;
    if (!wheel.schedule(timer)) return false;
    ++same.scheduled;
    return true;
  });
}

void Timers::step_compaction(std::size_t budget) {
  // Timers of records that ended early take memory from the same limit as the records.
  const std::size_t slack =
      std::clamp<std::size_t>(core_.region().limit_bytes() >> 12, 1'024, 65'536);
  // Without memory for records, what they leave is all that owners have to end their work with:
  // every timer beyond one for each record is looked for, and sooner again.
  const bool is_short =
      core_.region().used_bytes() >= core_.region().limit_bytes(Region::Use::record);
  const std::size_t per_record = is_short ? 1 : 2;
  if (!compacting_) {
    compact_above_ = std::min(
        compact_above_, is_short ? compacted_to_ + compacted_to_ / 16 : 3 * wheel_->size() + slack);
    if (wheel_->size() < std::max(slack, compact_above_)) return;
    const std::uint64_t timed = core_.threads().sum(Count::records_with_ttl);
    if (wheel_->size() < std::max(per_record * timed + slack, compact_above_)) return;
  }
  ThreadContext& own = core_.threads().context();
  const Operation operation{core_, own};
  compacting_ = !wheel_->compact(std::max<std::size_t>(budget, slack),
                                 [&](std::uint64_t bits, Timestamp wake) {
                                   return timers_alive(core_, own, bits, wake, 1) != 0;
                                 });
  // Not again before there is something new to find, however little was found this time.
  compacted_to_ = wheel_->size();
  compact_above_ = compacted_to_ + compacted_to_ / 2;
}

}  // namespace semel::engine
