#include "semel/clock.hpp"

#include <ctime>

#include "engine/time/bounded.hpp"
#include "engine/time/system_time.hpp"

namespace semel {

namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;

std::int64_t read_ns(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);  // cannot fail for these clocks
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// How far the wall clock is ahead of another clock, in units of that one: between the two.
struct Lead {
  std::int64_t least;
  std::int64_t most;

  [[nodiscard]] bool admits(std::int64_t lead, std::int64_t tolerance) const noexcept {
    return lead >= least - tolerance && lead <= most + tolerance;
  }
};

/// A thread that is stopped between two readings would take the pause for a step of the wall clock:
/// then it reads again. `read` is called a few times at most.
template <class Read>
Lead measure(const Read& read, std::int64_t close_enough) noexcept {
  Lead best = read();
  for (int tries = 1; tries < 10 && best.most - best.least > close_enough; ++tries) {
    const Lead next = read();
    if (next.most - next.least < best.most - best.least) best = next;
  }
  return best;
}

/// `kept`, or the measured offset if there is none or the wall clock has stepped. Threads that
/// measure at the same time agree on one.
std::int64_t keep_offset(std::atomic<std::int64_t>& word, std::int64_t kept, std::int64_t measured,
                         std::int64_t tolerance) noexcept {
  // mo: relaxed: a number, not an order
  if (word.compare_exchange_strong(kept, measured, std::memory_order_relaxed)) return measured;
  const Lead found{measured, measured};
  return found.admits(kept, tolerance) ? kept : measured;
}

Lead lead_of_system() noexcept {
  const auto read = [] {
    const std::int64_t before = read_ns(CLOCK_BOOTTIME);
    const std::int64_t wall = read_ns(CLOCK_REALTIME);
    return Lead{wall - read_ns(CLOCK_BOOTTIME), wall - before};
  };
  return measure(read, ns_per_ms / 100);
}

/// Between its steps the wall clock runs as CLOCK_BOOTTIME does, whatever corrects their speed: the
/// kernel makes both from one count.
class SystemLead {
 public:
  SystemLead() noexcept {
    const Lead lead = lead_of_system();
    const std::int64_t ns = lead.least + (lead.most - lead.least) / 2;
    phase_ns_ = (ns % ns_per_ms + ns_per_ms) % ns_per_ms;
    // mo: relaxed: others see it once this object is made
    offset_ms_.store((ns - phase_ns_) / ns_per_ms, std::memory_order_relaxed);
  }

  [[nodiscard]] std::int64_t engine_ms() const noexcept {
    return (read_ns(CLOCK_BOOTTIME) + phase_ns_) / ns_per_ms;
  }
  [[nodiscard]] std::int64_t offset_ms() noexcept {
    constexpr std::int64_t tolerance = Clock::wall_step_min.count() * ns_per_ms;
    const Lead lead = lead_of_system();
    // mo: relaxed: a number, not an order
    const std::int64_t kept = offset_ms_.load(std::memory_order_relaxed);
    if (lead.admits(kept * ns_per_ms + phase_ns_, tolerance)) [[likely]]
      return kept;
    const std::int64_t ns = lead.least + (lead.most - lead.least) / 2 - phase_ns_;
    const std::int64_t half = ns < 0 ? -ns_per_ms / 2 : ns_per_ms / 2;
    return keep_offset(offset_ms_, kept, (ns + half) / ns_per_ms, Clock::wall_step_min.count());
  }

 private:
  std::int64_t phase_ns_ = 0;  // 0..999'999
  std::atomic<std::int64_t> offset_ms_{0};
};

/// Of the process: all instances of SystemClock show one time.
SystemLead& system_lead() noexcept {
  static SystemLead lead;
  return lead;
}

}  // namespace

std::int64_t Clock::wall_offset_ms() const noexcept {
  const auto read = [this] {
    const std::int64_t before = now().time_since_epoch().count();
    const std::int64_t wall = unix_ms();
    return Lead{wall - now().time_since_epoch().count(), wall - before};
  };
  const Lead lead = measure(read, 0);
  // mo: relaxed: a number, not an order
  const std::int64_t kept = wall_offset_.load(std::memory_order_relaxed);
  if (kept != not_measured && lead.admits(kept, wall_step_min.count())) return kept;
  return keep_offset(wall_offset_, kept, lead.least, wall_step_min.count());
}

namespace engine {

#if defined(__x86_64__)
constinit thread_local SystemReading last_reading{0, SystemReading::none};

Timestamp read_system_time(std::uint64_t ticks) noexcept {
  const Timestamp now = bounded(Timestamp{Millis{system_lead().engine_ms()}});
  last_reading = {ticks, now.time_since_epoch().count()};
  return now;
}
#else
Timestamp system_time() noexcept {
  return bounded(Timestamp{Millis{system_lead().engine_ms()}});
}
#endif

}  // namespace engine

Timestamp SystemClock::now() const noexcept {
  return engine::system_time();
}

std::int64_t SystemClock::unix_ms() const noexcept {
  return read_ns(CLOCK_REALTIME) / ns_per_ms;
}

std::int64_t SystemClock::wall_offset_ms() const noexcept {
  return system_lead().offset_ms();
}

}  // namespace semel
