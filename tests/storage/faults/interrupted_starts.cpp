#include "tests/storage/faults/interrupted_starts.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "semel/engine_host.hpp"
#include "tests/proofs/random.hpp"
#include "tests/storage/boot_disk.hpp"
#include "tests/storage/faults/power_disk.hpp"
#include "tests/storage/faults/scratch.hpp"
#include "tests/storage/golden.hpp"

namespace semel::faults {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr Millis lock_lease{2'000};
constexpr int holds_each = 3;
constexpr std::int64_t unix_start_ms = 1'700'000'000'000;
constexpr std::uint64_t chain_max = 3;  // starts that are interrupted, in a row

Policy lock_policy() {
  Policy policy;
  policy.lease = lock_lease;
  policy.attempts_ttl = 1ms;
  policy.result_ttl = 1ms;
  policy.unique_ttl = 1ms;
  return policy;
}

struct ProcessWanted {
  bool recovers = true;
  bool has_cold = false;
  std::size_t memory_bytes = std::size_t{64} << 20;
  std::size_t log_bytes = std::size_t{1} << 20;
  Durability durability = Durability::synced;
};

Result<StartedProcess> open_process(const std::string& directory, const Clock& clock,
                                    storage::Disk& disk, const ProcessWanted& wanted) {
  StartedProcess process;
  SEMEL_TRY(storage, Storage::open({.directory = directory + "/storage",
                                    .log_bytes = wanted.log_bytes,
                                    .span = 1s,
                                    .disk = &disk},
                                   clock));
  process.storage = std::move(storage);
  if (!wanted.recovers) return process;
  if (wanted.has_cold) {
    SEMEL_TRY(cold, open_cold_directory({.directory = directory + "/cold",
                                         .cache_bytes = std::size_t{1} << 20,
                                         .disk = &disk},
                                        clock));
    process.cold = std::move(cold);
  }
  SEMEL_TRY(engine, Engine::open({.clock = &clock,
                                  .journal = process.storage.get(),
                                  .durability = wanted.durability,
                                  .cold = process.cold.get(),
                                  .spill_ttl_min = Millis{0},
                                  .memory_bytes = wanted.memory_bytes,
                                  .value_bytes_max = 1'024,
                                  .first_version = process.storage->first_version()}));
  process.engine = std::move(engine);
  SEMEL_CHECK(process.storage->recover(*process.engine));
  return process;
}

std::string numbered(const std::string& kind, int number) {
  return kind + std::to_string(number);
}

/// Holds that last, and such that were released, completed and forgotten.
Status hold_some(StartedProcess& process, int first) {
  SEMEL_TRY(claims, process.engine->claims("locks", lock_policy()));
  for (int i = first; i < first + holds_each; ++i) {
    for (const char* const kind : {"held", "released", "completed", "forgotten"}) {
      const std::string key = numbered(kind, i);
      const Epoch epoch = claims.claim({.key = key, .session = SessionId{0}}).epoch;
      if (epoch == 0) return Error{ErrorCode::refused, key + " is not granted"};
      if (key[0] == 'r') static_cast<void>(claims.release({.key = key, .epoch = epoch}));
      if (key[0] == 'c') static_cast<void>(claims.complete({.key = key, .epoch = epoch}));
      if (key[0] == 'f') static_cast<void>(claims.forget(key));
    }
    SEMEL_CHECK(process.engine->store().set(numbered("value", i), "v"));
  }
  return Done{};
}

std::vector<std::string> wrong_holds(StartedProcess& process) {
  std::vector<std::string> wrong;
  auto claims = process.engine->claims("locks", lock_policy());
  if (!claims) return {"the namespace: " + claims.error().message()};
  for (int i = 0; i < 2 * holds_each; ++i) {
    const std::string held = numbered("held", i);
    if (claims->claim({.key = held}).answer != ClaimAnswer::in_flight) wrong.push_back(held);
    for (const char* const kind : {"released", "completed", "forgotten"}) {
      const std::string key = numbered(kind, i);
      const ClaimOutcome again = claims->claim({.key = key});
      if (again.answer != ClaimAnswer::granted || again.takeover) wrong.push_back(key);
    }
    const auto value = process.engine->store().get(numbered("value", i));
    if (!value.ok() || *value != "v") wrong.push_back(numbered("value", i));
  }
  return wrong;
}

constexpr ProcessWanted full{.has_cold = true,
                             .memory_bytes = std::size_t{8} << 20,
                             .log_bytes = std::size_t{16} << 20,
                             .durability = Durability::logged};
constexpr int filler_count = 80'000;
constexpr int filler_step = 97;  // of those that are looked at

std::string filler(int number) {
  return numbered("filler", number) + std::string(100, 'f');
}

/// A store that is full for a moment spills first.
Status fill(StartedProcess& process, int number) {
  Error why{ErrorCode::refused, "a filler"};
  for (int attempt = 0; attempt < 1'000; ++attempt) {
    const auto set = process.engine->store().set(numbered("filler", number), filler(number),
                                                 {.expiry = Expiry::in(1'000h)});
    if (set.ok()) return Done{};
    why = set.error();
    static_cast<void>(process.engine->host().spill());  // or its own thread does
  }
  return why;
}

std::vector<std::string> wrong_fillers(StartedProcess& process) {
  std::vector<std::string> wrong = wrong_holds(process);
  for (int i = 0; i < filler_count; i += filler_step) {
    const auto value = process.engine->store().get(numbered("filler", i));
    if (!value.ok() || *value != filler(i)) wrong.push_back(numbered("filler", i));
  }
  return wrong;
}

/// One line of starts of copies of a subject.
class Chain {
 public:
  Chain(const StartSubject& subject, const Scratch& scratch, proofs::Random& random,
        StartsFound& found)
      : subject_(subject), scratch_(scratch), random_(random), found_(found) {
    clock_.emplace(subject.now.time_since_epoch(), subject.unix_ms);
    root_ = fresh_root();
    fs::copy(subject.directory, root_, fs::copy_options::recursive);
  }
  ~Chain() { remove(); }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  /// False: the start has fewer steps.
  bool interrupt_at(std::uint64_t step) {
    pass_time();
    const std::string image = random_.chance(1, 2) ? fresh_root() : std::string{};
    bool was_cut = false;
    {
      PowerDisk disk{options(image, step)};
      ++found_.starts;
      {
        const auto process = subject_.open(root_, *clock_, disk, true);
        if (!process && !disk.is_cut()) say("not opened: " + process.error().message());
      }
      was_cut = disk.is_cut();  // perhaps while it was closed
    }
    if (!was_cut) return false;
    ++found_.interrupted;
    if (image.empty()) return true;
    remove();
    root_ = image;
    is_rebooted_ = true;
    return true;
  }
  /// Ended by a signal before it has recovered.
  void end_early() {
    pass_time();
    PowerDisk disk{options({}, 0)};
    ++found_.starts;
    const auto process = subject_.open(root_, *clock_, disk, false);
    if (!process) say("not opened: " + process.error().message());
  }
  void judge() {
    pass_time();
    PowerDisk disk{options({}, 0)};
    ++found_.starts;
    auto process = subject_.open(root_, *clock_, disk, true);
    if (!process) return say("not opened: " + process.error().message());
    for (const std::string& wrong : subject_.wrong(*process)) say(wrong);
  }
  void tell(std::string line) { story_ += (story_.empty() ? "" : ", ") + std::move(line); }

 private:
  [[nodiscard]] std::string fresh_root() const {
    static std::uint64_t number = 0;
    return scratch_ / std::to_string(++number);
  }
  [[nodiscard]] PowerDisk::Options options(const std::string& image, std::uint64_t cut_at) {
    return {.root = root_,
            .image = image,
            .boot = "boot " + std::to_string(boot_),
            .seed = random_.bits(),
            .cut_at = cut_at,
            .maps = random_.chance(1, 2),
            .torn = random_.chance(1, 2),
            .bytes_free = std::size_t{8} << 20};  // no reserve: it takes longest to copy
  }
  void pass_time() {
    clock_->advance(subject_.downtime);
    if (!std::exchange(is_rebooted_, false) && random_.chance(1, 2)) return;
    ++boot_;
    // Either way more has passed than any lease.
    const std::int64_t by_ms = subject_.downtime.count() / 4;
    const std::int64_t steps_ms[] = {0, 0, by_ms, -by_ms};
    const std::int64_t unix_ms = clock_->unix_ms() + steps_ms[random_.below(4)];
    clock_.emplace(Millis{static_cast<std::int64_t>(random_.between(1, 100'000))}, unix_ms);
    tell("boot");
  }
  void say(const std::string& what) {
    found_.wrong.push_back(subject_.name + ": " + what + " after " + story_);
  }
  void remove() const {
    std::error_code code;  // what stays goes with the scratch directory
    fs::remove_all(root_, code);
  }

  const StartSubject& subject_;
  const Scratch& scratch_;
  proofs::Random& random_;
  StartsFound& found_;
  std::optional<ManualClock> clock_;
  std::string root_;
  std::uint64_t boot_ = 1;
  bool is_rebooted_ = true;  // the subject's boot is another
  std::string story_;
};

}  // namespace

Result<StartSubject> new_subject(const std::string& directory, bool has_cold) {
  ManualClock clock{Millis{1'000'000}, unix_start_ms};
  tests::BootDisk disk{"boot 0"};
  fs::create_directories(directory);
  {
    SEMEL_TRY(process, open_process(directory, clock, disk, {true, has_cold}));
    SEMEL_CHECK(hold_some(process, 0));
    SEMEL_CHECK(process.storage->drain());
    if (has_cold) SEMEL_CHECK(process.engine->host().spill());
    clock.advance(lock_lease / 4);
    SEMEL_CHECK(hold_some(process, holds_each));
  }
  return StartSubject{
      .name = has_cold ? "with a cold store" : "without a cold store",
      .directory = directory,
      .downtime = 5 * lock_lease,
      .now = clock.now(),
      .unix_ms = clock.unix_ms(),
      .open =
          [has_cold](const std::string& root, const Clock& now, storage::Disk& on, bool recovers) {
            return open_process(root, now, on, {recovers, has_cold});
          },
      .wrong = wrong_holds};
}

Result<StartSubject> full_subject(const std::string& directory) {
  ManualClock clock{Millis{1'000'000}, unix_start_ms};
  fs::create_directories(directory);
  PowerDisk disk{
      {.root = directory, .image = {}, .boot = "boot 0", .bytes_free = std::size_t{8} << 20}};
  {
    SEMEL_TRY(process, open_process(directory, clock, disk, full));
    SEMEL_CHECK(hold_some(process, 0));
    SEMEL_CHECK(hold_some(process, holds_each));
    for (int i = 0; i < filler_count; ++i) SEMEL_CHECK(fill(process, i));
    disk.cut();  // a kill: nothing is done any more
  }
  return StartSubject{
      .name = "with a cold store, at its limit",
      .directory = directory,
      .downtime = 5 * lock_lease,
      .now = clock.now(),
      .unix_ms = clock.unix_ms(),
      .open =
          [](const std::string& root, const Clock& now, storage::Disk& on, bool recovers) {
            ProcessWanted wanted = full;
            wanted.recovers = recovers;
            return open_process(root, now, on, wanted);
          },
      .wrong = wrong_fillers};
}

StartSubject golden_subject(const std::string& directory) {
  return {.name = directory,
          .directory = directory,
          // The records of the holds are kept for twice the lease.
          .downtime = 5 * tests::golden::long_ttl / 2,
          .now = Timestamp{tests::golden::engine_start},
          .unix_ms = tests::golden::unix_start_ms,
          .open = [](const std::string& root, const Clock& clock, storage::Disk& disk,
                     bool recovers) -> Result<StartedProcess> {
            SEMEL_TRY(process, tests::golden::open(root, clock, {&disk, recovers}));
            return StartedProcess{std::move(process.storage), {}, std::move(process.engine)};
          },
          .wrong =
              [](StartedProcess& process) {
                std::vector<std::string> wrong;
                auto claims = process.engine->claims("golden", tests::golden::policy_of_all());
                for (const char* const part : {"drained", "undrained"}) {
                  const std::string held = std::string{"held-"} + part;
                  if (!claims || claims->claim({.key = held}).answer != ClaimAnswer::in_flight) {
                    wrong.push_back(held);
                  }
                  const auto plain = process.engine->store().get(std::string{"plain-"} + part);
                  if (!plain.ok() || !*plain) wrong.push_back(std::string{"plain-"} + part);
                }
                return wrong;
              }};
}

StartsFound interrupt_starts(const StartSubject& subject, const StartsWanted& wanted) {
  const Scratch scratch;
  proofs::Random random{wanted.seed};
  StartsFound found;
  bool more = true;
  for (std::uint64_t step = wanted.first; more; step += wanted.stride) {
    Chain chain{subject, scratch, random, found};
    ++found.chains;
    chain.tell("step " + std::to_string(step));
    more = chain.interrupt_at(step);
    for (std::uint64_t i = random.between(1, chain_max); i > 1; --i) {
      const std::uint64_t next = random.between(1, std::max<std::uint64_t>(2, 2 * step));
      const bool is_early = random.chance(1, 4);
      chain.tell(is_early ? "an early end" : "step " + std::to_string(next));
      if (is_early) {
        chain.end_early();
      } else {
        static_cast<void>(chain.interrupt_at(next));
      }
    }
    chain.judge();
  }
  return found;
}

}  // namespace semel::faults
