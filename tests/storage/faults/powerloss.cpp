// Power is cut at random moments while threads work on a storage; what the next boot finds is
// compared with what the last one was told.
//
//   proof_powerloss [--long] [--seed N] [--cuts N] [--lie bytes|names] [--any-order] [--keep DIR]
//
// --keep: what the last boots before each finding found goes to DIR, for a look at it.
// Lives alternate between the levels. At `synced` whatever was acknowledged must be there. At
// `logged` it must be there if it was acknowledged one interval before the cut, plus the time a
// sync took and the time by which this machine wakes threads late. With --lie the disk says that
// it synced and does not: then the proof must find losses, and its verdict is turned round.
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "tests/proofs/arguments.hpp"
#include "tests/storage/faults/power_disk.hpp"
#include "tests/storage/faults/scratch.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {
namespace {

using namespace std::chrono_literals;

constexpr unsigned thread_count = 6;  // more than processors: some stop in the middle of a call
constexpr std::uint64_t lives_of_a_storage = 25;  // then it starts again with nothing
constexpr std::uint64_t shown_errors = 12;
constexpr Millis slack = 100ms;  // threads are woken late on a busy machine

struct Wanted {
  proofs::Arguments arguments;
  std::uint64_t cuts = 0;
  PowerDisk::Lie lie = PowerDisk::Lie::none;
  bool any_order = false;
  std::string keep{};
};

struct Total {
  std::uint64_t cuts = 0;
  std::uint64_t while_opening = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t lost = 0;
  std::uint64_t back = 0;
  std::uint64_t strange = 0;
  std::uint64_t parted = 0;
  std::uint64_t wrong = 0;
  std::uint64_t not_opened = 0;
  std::uint64_t sectors_lost = 0;
  std::uint64_t names_lost = 0;
  std::uint64_t syncs = 0;
  Millis oldest_lost{0};     // age of the oldest acknowledgement that `logged` lost
  Millis interval_at_it{0};  // what was promised then
};

class Powerloss {
 public:
  Powerloss(const Wanted& wanted, std::uint64_t seed)
      : wanted_(wanted), random_(seed), seed_(seed) {}
  int run();

 private:
  struct Process;
  void one_life(std::uint64_t number);
  void start_again();
  [[nodiscard]] bool open(Process& process);
  [[nodiscard]] bool compare_with_ledger(Process& process);
  void work(Process& process);
  void wait_for_cut(Process& process);
  void say(const std::string& what);
  [[nodiscard]] std::uint64_t findings() const noexcept {
    return total_.lost + total_.strange + total_.parted + total_.wrong + total_.not_opened;
  }
  void set_aside();
  void keep();

  const Wanted wanted_;
  proofs::Random random_;
  const std::uint64_t seed_;
  const SystemClock clock_;
  const Scratch scratch_;
  std::string root_;               // what the next boot finds
  std::deque<std::string> aside_;  // what the last ones found, as far as it is to be kept
  Ledger ledger_ = new_ledger(thread_count);
  std::int64_t unix_ms_ = 1'700'000'000'000;
  Timestamp horizon_ = Timestamp::max();  // of the last cut
  Timestamp last_cut_{};
  Millis last_interval_{0};
  Epoch largest_epoch_ = 0;
  bool is_useless_ = false;  // it was refused
  std::uint64_t said_ = 0;
  std::uint64_t number_ = 0;
  Total total_;
};

struct Powerloss::Process {
  std::uint64_t number;
  Durability level;
  Millis interval;
  JumpingClock clock;
  PowerDisk disk;
  std::optional<World> world{};
  Millis late{0};  // by how much a thread of ours was woken too late, at most
};

void Powerloss::say(const std::string& what) {
  if (wanted_.lie == PowerDisk::Lie::none && said_++ < shown_errors) {
    std::printf("powerloss: seed %llu, process %llu: %s\n", static_cast<unsigned long long>(seed_),
                static_cast<unsigned long long>(number_), what.c_str());
  }
}

void Powerloss::start_again() {
  std::error_code code;
  if (!root_.empty()) std::filesystem::remove_all(root_, code);
  root_ = scratch_ / ("start" + std::to_string(number_));
  ledger_ = new_ledger(thread_count);
  horizon_ = Timestamp::max();
  largest_epoch_ = 0;
}

/// A copy of what this boot finds, before anything is changed.
void Powerloss::set_aside() {
  if (wanted_.keep.empty() || !std::filesystem::exists(root_)) return;
  constexpr std::size_t kept_boots = 4;
  aside_.push_back(scratch_ / ("aside" + std::to_string(number_)));
  std::filesystem::copy(root_, aside_.back(), std::filesystem::copy_options::recursive);
  if (aside_.size() <= kept_boots) return;
  std::filesystem::remove_all(aside_.front());
  aside_.pop_front();
}

void Powerloss::keep() {
  for (const std::string& copy : aside_) {
    const std::string to =
        wanted_.keep + "/found" + std::to_string(number_) + copy.substr(copy.rfind('/'));
    std::filesystem::create_directories(to);
    std::filesystem::copy(copy, to, std::filesystem::copy_options::recursive);
  }
}

bool Powerloss::open(Process& process) {
  StorageOptions options;
  options.directory = root_ + "/storage";
  options.sync_every = process.interval;
  options.span = 1'000ms;
  options.disk = &process.disk;
  options.log_bytes = std::size_t{1} << 20;
  options.garbage_bytes = std::size_t{1} << 20;
  auto world = open_world(options, process.clock, process.level);
  if (world) {
    process.world = *std::move(world);
    return true;
  }
  if (!process.disk.is_cut()) {
    ++total_.not_opened;
    is_useless_ = true;
    say("not opened: " + world.error().message());
  }
  return false;
}

/// False: it could not be read to the end.
bool Powerloss::compare_with_ledger(Process& process) {
  auto found = compare(*process.world, ledger_, process.clock, horizon_,
                       [this](const std::string& what) { say(what); });
  if (!found) {
    if (!process.disk.is_cut()) {
      ++total_.not_opened;
      say("not read: " + found.error().message());
    }
    return false;
  }
  total_.lost += found->lost;
  total_.back += found->back;
  total_.strange += found->strange;
  total_.parted += found->parted;
  if (found->oldest_lost != Timestamp{} && last_cut_ - found->oldest_lost > total_.oldest_lost) {
    total_.oldest_lost = last_cut_ - found->oldest_lost;
    total_.interval_at_it = last_interval_;
  }
  if (process.world->storage->first_version() <= largest_epoch_) {
    ++total_.wrong;
    say("version " + std::to_string(process.world->storage->first_version()) +
        " is handed out again, seen before: " + std::to_string(largest_epoch_));
  }
  return true;
}

/// Time passes for the storage: the clock jumps, so that spans end; pages are written.
void Powerloss::wait_for_cut(Process& process) {
  std::mutex mutex;
  std::condition_variable never;
  // Long enough that `logged` has something to keep.
  const std::uint64_t longest = process.level == Durability::logged ? 400 : 90;
  const Timestamp end =
      clock_.now() + Millis{static_cast<std::int64_t>(random_.between(1, longest))};
  std::unique_lock lock{mutex};
  Timestamp before = clock_.now();
  while (!process.disk.is_cut() && before < end) {
    never.wait_for(lock, 1ms);
    const Timestamp now = clock_.now();
    process.late = std::max(process.late, now - before - 1ms);
    before = now;
    if (random_.chance(1, 4)) process.disk.write_back();
    if (random_.chance(1, 12)) {
      process.clock.jump(Millis{static_cast<std::int64_t>(random_.between(1, 1'500))});
    }
    if (random_.chance(1, 8)) process.world->engine->advance();
  }
  process.disk.cut();
}

void Powerloss::work(Process& process) {
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < thread_count; ++t) {
    workers.push_back(
        std::make_unique<Worker>(*process.world, ledger_, process.clock,
                                 Worker::Options{.thread = t,
                                                 .level = process.level,
                                                 .seed = random_.bits(),
                                                 .process = std::to_string(process.number)}));
    threads.emplace_back([&process, worker = workers.back().get()] {
      while (!process.disk.is_cut() && worker->step()) {
      }
    });
  }
  Observer observer{*process.world, ledger_, random_.bits()};
  threads.emplace_back([&process, &observer] {
    while (!process.disk.is_cut() && observer.step()) {
    }
  });
  wait_for_cut(process);
  for (std::thread& thread : threads) thread.join();
  // What somebody was shown must stay, whoever wrote it.
  if (process.level == Durability::synced) observer.hand_over(ledger_);
  for (const auto& worker : workers) {
    const Tally& tally = worker->tally();
    total_.acknowledged += tally.acknowledged;
    total_.wrong += tally.wrong;
    largest_epoch_ = std::max(largest_epoch_, tally.largest_epoch);
    if (tally.wrong > 0) say(tally.first_wrong);
  }
}

void Powerloss::one_life(std::uint64_t number) {
  number_ = number;
  if (number % lives_of_a_storage == 0 || std::exchange(is_useless_, false)) start_again();
  const std::string image = scratch_ / ("boot" + std::to_string(number));
  const bool by_step = random_.chance(1, 2);
  constexpr std::array<Millis, 4> intervals{10ms, 20ms, 30ms, 40ms};
  Process process{.number = number,
                  .level = random_.chance(1, 2) ? Durability::synced : Durability::logged,
                  .interval = random_.pick(intervals),
                  .clock = JumpingClock{unix_ms_},
                  .disk = PowerDisk{{.root = root_,
                                     .image = image,
                                     .boot = "boot " + std::to_string(number),
                                     .seed = random_.bits(),
                                     .cut_at = by_step ? random_.between(1, 300) : 0,
                                     .any_order = wanted_.any_order,
                                     .maps = random_.chance(1, 2),
                                     .lie = wanted_.lie}}};
  const std::uint64_t before = findings();
  set_aside();
  const bool worked = open(process) && compare_with_ledger(process);
  if (!wanted_.keep.empty() && findings() != before) keep();
  if (worked) {
    work(process);
  } else {
    ++total_.while_opening;
  }
  process.disk.cut();
  process.world.reset();
  unix_ms_ = process.clock.unix_ms();
  if (worked) {  // else what was acknowledged was so before an earlier cut
    last_interval_ = process.interval + 2 * (process.disk.longest_sync() + process.late) + slack;
    last_cut_ = process.disk.cut_time();
    horizon_ = last_cut_ - last_interval_;
  }
  const PowerDisk::Counts counts = process.disk.counts();
  ++total_.cuts;
  total_.sectors_lost += counts.sectors_lost;
  total_.names_lost += counts.names_lost;
  total_.syncs += counts.syncs;
  std::error_code code;
  std::filesystem::remove_all(root_, code);
  root_ = image;
}

int Powerloss::run() {
  const Timestamp begun = clock_.now();
  for (std::uint64_t number = 0; number < wanted_.cuts; ++number) {
    one_life(number);
    // With a disk that lies, what is found later says nothing any more.
    if (wanted_.lie != PowerDisk::Lie::none && findings() > 0) break;
  }
  const double seconds = std::max(0.001, static_cast<double>((clock_.now() - begun).count()) / 1e3);
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "powerloss: %llu syncs; not synced and gone: %llu sectors, %llu names; %llu cuts "
      "before the storage was open\n",
      number(total_.syncs), number(total_.sectors_lost), number(total_.names_lost),
      number(total_.while_opening));
  std::printf("powerloss: oldest loss at logged %lld ms before the cut, allowed then %lld ms\n",
              static_cast<long long>(total_.oldest_lost.count()),
              static_cast<long long>(total_.interval_at_it.count()));
  const std::uint64_t bad = findings();
  std::printf(
      "powerloss: %llu cuts, %.1f/s, %llu acknowledged, %llu lost, %llu deleted and back, "
      "%llu never asked for, %llu parted, %llu wrong answers, %llu not opened\n",
      number(total_.cuts), static_cast<double>(total_.cuts) / seconds, number(total_.acknowledged),
      number(total_.lost), number(total_.back), number(total_.strange), number(total_.parted),
      number(total_.wrong), number(total_.not_opened));
  if (wanted_.lie != PowerDisk::Lie::none) return bad > 0 ? 0 : 1;
  if (total_.acknowledged < total_.cuts) {
    std::printf("powerloss: next to nothing was done\n");
    return 1;
  }
  return bad > 0 ? 1 : 0;
}

std::optional<Wanted> parse(int count, char** texts) {
  Wanted wanted;
  std::vector<char*> rest{texts[0]};
  for (int i = 1; i < count; ++i) {
    const bool more = i + 1 < count;
    if (std::strcmp(texts[i], "--cuts") == 0 && more) {
      wanted.cuts = std::strtoull(texts[++i], nullptr, 10);
    } else if (std::strcmp(texts[i], "--lie") == 0 && more) {
      ++i;
      wanted.lie =
          std::strcmp(texts[i], "names") == 0 ? PowerDisk::Lie::names : PowerDisk::Lie::bytes;
    } else if (std::strcmp(texts[i], "--keep") == 0 && more) {
      wanted.keep = texts[++i];
    } else if (std::strcmp(texts[i], "--any-order") == 0) {
      wanted.any_order = true;
    } else {
      rest.push_back(texts[i]);
    }
  }
  const auto arguments = proofs::parse_arguments(static_cast<int>(rest.size()), rest.data());
  if (!arguments) return std::nullopt;
  wanted.arguments = *arguments;
  if (wanted.cuts == 0) wanted.cuts = arguments->is_long ? 10'000 : 200;
  return wanted;
}

}  // namespace
}  // namespace semel::faults

int main(int count, char** texts) {
  const auto wanted = semel::faults::parse(count, texts);
  if (!wanted) return 2;
  const std::uint64_t seed = wanted->arguments.seed.value_or(semel::proofs::fresh_seed());
  std::printf("powerloss: seed %llu\n", static_cast<unsigned long long>(seed));
  return semel::faults::Powerloss{*wanted, seed}.run();
}
