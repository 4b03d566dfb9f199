// The wall clock is set, by an hour, by a day, forward and back, while a storage runs and between
// its lives, in the same boot of the machine and in another.
//
//   proof_faults --fault clock [--long] [--seed N]
//
// The proof knows the true time. What must hold: while the process runs and after a restart within
// the boot, a record is there exactly until its time is over; after a boot it is there at least
// as long. What a machine cannot know is left out: a clock that was set forward while it was off.
#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

#include "tests/storage/boot_disk.hpp"
#include "tests/storage/faults/proofs.hpp"
#include "tests/storage/faults/scratch.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {
namespace {

using namespace std::chrono_literals;
using tests::BootDisk;

constexpr std::uint64_t key_count = 200;
constexpr std::uint64_t steps_short = 1'000;
constexpr std::uint64_t steps_long = 20'000;
constexpr std::uint64_t shown_errors = 12;

/// What is known of a key: its end on the true time line.
struct Kept {
  std::int64_t ends = 0;  ///< 0: never set
  bool may_stay = false;  ///< there was a boot since: it may be kept longer
};

struct Total {
  std::uint64_t steps = 0;
  std::uint64_t restarts = 0;
  std::uint64_t boots = 0;
  std::uint64_t looks = 0;
  std::uint64_t early = 0;
  std::uint64_t late = 0;
  std::uint64_t failed = 0;
};

class ClockSteps {
 public:
  explicit ClockSteps(std::uint64_t seed) : random_(seed), seed_(seed) {}
  [[nodiscard]] bool open();
  void one_step();
  [[nodiscard]] int report() const;
  [[nodiscard]] bool is_open() const { return world_.has_value(); }

 private:
  void pass(Millis by);
  void step_wall();
  void set_some();
  void look_at_all();
  void restart();
  void say(const std::string& what);

  proofs::Random random_;
  const std::uint64_t seed_;
  const Scratch scratch_;
  std::optional<ManualClock> clock_{std::in_place};
  std::uint64_t boot_ = 1;
  std::optional<BootDisk> disk_;
  std::optional<World> world_;
  std::int64_t true_ms_ = 1;
  std::map<std::string, Kept> kept_;
  std::uint64_t said_ = 0;
  Total total_;
};

void ClockSteps::say(const std::string& what) {
  if (said_++ >= shown_errors) return;
  std::printf("clock: seed %llu, step %llu: %s\n", static_cast<unsigned long long>(seed_),
              static_cast<unsigned long long>(total_.steps), what.c_str());
}

bool ClockSteps::open() {
  disk_.emplace("boot " + std::to_string(boot_));
  StorageOptions options;
  options.directory = scratch_ / "storage";
  options.span = 1'000ms;
  options.log_bytes = std::size_t{1} << 20;
  options.disk = &*disk_;
  auto world = open_world(options, *clock_, Durability::logged);
  if (!world) {
    ++total_.failed;
    say("not opened: " + world.error().message());
    return false;
  }
  world_ = *std::move(world);
  return true;
}

/// True time goes on, and with it every clock.
void ClockSteps::pass(Millis by) {
  true_ms_ += by.count();
  clock_->advance(by);
}

void ClockSteps::step_wall() {
  constexpr std::array<Millis, 4> steps{-24h, -1h, 1h, 24h};
  Millis by = random_.pick(steps);
  if (random_.chance(1, 2)) by = Millis{static_cast<std::int64_t>(random_.between(1, 90'000'000))};
  if (random_.chance(1, 4)) by = -by;
  // A wall clock before 1970 is none; keep it well after.
  if (clock_->unix_ms() + by.count() > 1'000'000'000'000) clock_->step_wall(by);
}

void ClockSteps::set_some() {
  constexpr std::array<Millis, 6> ttls{1ms, 900ms, 5'000ms, 600'000ms, 3'600'000ms, 90'000'000ms};
  for (int i = 0; i < 10; ++i) {
    const std::string key = std::to_string(random_.below(key_count));
    const Millis ttl = random_.pick(ttls);
    const auto set = world_->engine->store().set(key, "v", {.expiry = Expiry::in(ttl)});
    if (!set.ok()) {
      ++total_.failed;
      say("set: " + set.error().message());
      return;
    }
    kept_[key] = {.ends = true_ms_ + ttl.count(), .may_stay = false};
  }
}

void ClockSteps::look_at_all() {
  world_->engine->advance();
  for (auto& [key, kept] : kept_) {
    const auto there = world_->engine->store().exists(key);
    if (!there.ok()) {
      ++total_.failed;
      say("exists: " + there.error().message());
      return;
    }
    ++total_.looks;
    const std::int64_t left = kept.ends - true_ms_;
    if (left > 0 && !*there) {
      ++total_.early;
      say(key + " is forgotten " + std::to_string(left) + " ms early");
      kept.ends = 0;  // told once
    } else if (left <= 0 && *there && !kept.may_stay) {
      ++total_.late;
      say(key + " is kept " + std::to_string(-left) + " ms too long");
      kept.may_stay = true;
    }
  }
}

void ClockSteps::restart() {
  world_.reset();
  ++total_.restarts;
  const bool other_boot = random_.chance(1, 2);
  const Millis off{static_cast<std::int64_t>(random_.below(20'000))};
  if (!other_boot) {
    if (random_.chance(1, 2)) step_wall();
    pass(off);
    return;
  }
  ++total_.boots;
  ++boot_;
  true_ms_ += off.count();
  // The machine's clock may be set back meanwhile, and the engine's begins anew.
  const Millis back{random_.chance(1, 2) ? static_cast<std::int64_t>(random_.below(90'000'000))
                                         : 0};
  const std::int64_t unix_ms = clock_->unix_ms() + off.count() - back.count();
  clock_.emplace(Millis{static_cast<std::int64_t>(random_.between(1, 2'000'000))}, unix_ms);
  for (auto& [key, kept] : kept_) kept.may_stay = true;
}

void ClockSteps::one_step() {
  ++total_.steps;
  pass(Millis{random_.duration(4'000'000)});
  step_wall();
  look_at_all();
  set_some();
  look_at_all();
  if (random_.chance(1, 20)) {
    restart();
    if (open()) look_at_all();
  }
}

int ClockSteps::report() const {
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "clock: %llu steps, %llu restarts, %llu of them boots, %llu looks, %llu forgotten "
      "early, %llu kept too long, %llu failed\n",
      number(total_.steps), number(total_.restarts), number(total_.boots), number(total_.looks),
      number(total_.early), number(total_.late), number(total_.failed));
  return total_.early + total_.late + total_.failed == 0 ? 0 : 1;
}

}  // namespace

int prove_clock(const Wanted& wanted) {
  ClockSteps proof{wanted.seed};
  const std::uint64_t steps = wanted.is_long ? steps_long : steps_short;
  bool good = proof.open();
  for (std::uint64_t i = 0; good && i < steps; ++i) {
    proof.one_step();
    good = proof.is_open();
  }
  return proof.report();
}

}  // namespace semel::faults
