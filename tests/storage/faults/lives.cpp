// The lives of one storage, one after the other, under a schedule of faults.
//
//   proof_faults --fault powerloss|diskfull|kill|clock|syncerror|slowdisk|restore|damage|
//                upgrade[,..] [--long] [--seed N] [--count N] [--lie bytes|names] [--any-order]
//                [--keep DIR]
//                [--must-find]
//
// While threads work, and write down what they are told, each life meets what the schedule has:
//   powerloss  power goes at a random moment or step; the next boot finds an image (power_disk.hpp)
//   kill       the process ends there; the next one finds all that was written
//   diskfull   the file system, of 48 MiB, fills up, and gets space back in this life or the next
//   clock      the wall clock steps by up to a day, within lives, between them and while the
//              machine is off; hours pass, in half of the storages by steps of the proof alone
//   syncerror  a sync fails, one of the log's or of RocksDB's files; the next one says that all is
//              well and has not written what failed; then the life is closed, or power goes
//   slowdisk   syncs, and writes of RocksDB, last longer by 10 ms, 1 s or 30 s for a while
//   restore    the storage is backed up beside the work; between lives it is copied, backups are
//              restored, and directories change places; two thirds have a cold store, and spill;
//              years pass; starts end before they have recovered; with kill
//   damage     between lives, copies of the storage have a file that is changed, cut or removed
//   upgrade    it begins as a directory that an earlier release has left (tests/storage/golden)
// A life that meets no end of these is closed.
//
// What must hold after each: whatever was acknowledged is there, by the true time exactly until its
// time is over, and after a boot that met such a clock at least as long; after a loss of power,
// what was acknowledged at `synced`, and at `logged` what was so one interval before the cut, plus
// the time a sync took and the time by which this machine wakes threads late. On the full disk each
// call is refused at once, the statistics say why, lookups go on, and a start opens the storage;
// when there is space again, new work is accepted within 5 s without anybody doing anything. After
// a failed sync of the log nothing is acknowledged any more, new work is refused within 100 ms (2 s
// in the short form, which runs among other tests), the statistics say why, and at `memory` all is
// read as before; a sync of RocksDB's may be done again from the log, and work may go on. On the
// slow disk lookups go on as before (p99 within twice of that; judged at five times), what waits is
// bounded, a wait ends with outcome_unknown when confirm_within is over, and memory does not grow.
// A copy or a restored backup has what was acknowledged when it was made, and no epoch is given
// twice over all of them. What a remote owner holds is held after any number of starts, however
// long no process ran. A backup is not opened, nor a storage with the cold store of another time.
// A damaged copy has all of that, or says in which file it is damaged and where; only what a kill
// has left behind the mark may go as if the kill had come earlier.
// With --lie the disk says that it synced and does not: then the proof must find losses, and its
// verdict is turned round, as with --must-find, for a storage with a planted fault (planted.py).
// --keep: what the last boots before each finding found goes to DIR, for a look at it. Ends with 77
// where it may not mount: skipped.
#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/storage/faults/crew.hpp"
#include "tests/storage/faults/damages.hpp"
#include "tests/storage/faults/earlier_release.hpp"
#include "tests/storage/faults/findings.hpp"
#include "tests/storage/faults/kept_boots.hpp"
#include "tests/storage/faults/machine_time.hpp"
#include "tests/storage/faults/met_faults.hpp"
#include "tests/storage/faults/places.hpp"
#include "tests/storage/faults/power_disk.hpp"
#include "tests/storage/faults/proofs.hpp"
#include "tests/storage/faults/scratch.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {
namespace {

using namespace std::chrono_literals;

constexpr unsigned thread_count = 6;  // more than processors: some stop in the middle of a call
constexpr std::uint64_t lives_of_a_storage = 25;  // then it starts again with nothing
constexpr std::uint64_t lives_if_upgraded = 4;    // the first ones matter
constexpr Millis slack = 100ms;                   // threads are woken late on a busy machine
constexpr std::uint64_t day_ms = 86'400'000;
constexpr std::uint64_t year_ms = 365 * day_ms;

enum class End { close, kill, power };

struct Total {
  std::uint64_t lives = 0;
  std::array<std::uint64_t, 3> by_end{};
  std::uint64_t while_opening = 0;
  std::uint64_t clock_steps = 0;
  std::uint64_t boots = 0;
  std::uint64_t looks = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t sectors_lost = 0;
  std::uint64_t names_lost = 0;
  std::uint64_t syncs = 0;
};

/// One process.
struct Process {
  std::uint64_t number = 0;
  End end = End::close;
  Durability level = Durability::logged;
  Millis interval{0};
  std::unique_ptr<PowerDisk> disk{};
  std::optional<World> world{};
  bool has_worked = false;
  Millis late{0};  // by how much a thread of ours was woken too late, at most
};

class Lives {
 public:
  Lives(const Wanted& wanted, Schedule schedule)
      : wanted_(wanted),
        schedule_(std::move(schedule)),
        random_(wanted.seed),
        findings_(schedule_.name, wanted_),
        kept_boots_(wanted.keep),
        met_(schedule_, wanted_.is_long, [this](const std::string& what) { findings_.say(what); }) {
    if (schedule_.loses_power) ends_.push_back(End::power);
    if (schedule_.is_killed) ends_.push_back(End::kill);
    if (schedule_.is_closed()) ends_.push_back(End::close);
  }
  int run();

 private:
  void one_life(std::uint64_t number);
  void start_again();
  [[nodiscard]] Durability draw_level();
  void make_disk(Process& process);
  [[nodiscard]] bool open(Process& process);
  void judge(Process& process);
  void work(Process& process);
  void wait_for_end(Process& process, Crew& crew);
  void live_by_the_clock(Worker& worker, const PowerDisk& disk);
  void jump(std::uint64_t most_ms) {
    time_.clock().jump(Millis{static_cast<std::int64_t>(random_.between(1, most_ms))});
  }
  void boot();
  void between_lives();
  void end_work(Process& process, Crew& crew);
  void step_clock();
  void remember(const Process& process);
  [[nodiscard]] std::uint64_t findings() const noexcept {
    return findings_.total() + met_.findings();
  }
  [[nodiscard]] int report(double seconds) const;

  const Wanted wanted_;
  const Schedule schedule_;
  proofs::Random random_;
  Findings findings_;
  KeptBoots kept_boots_;
  const SystemClock system_;
  const Scratch scratch_;
  MetFaults met_;
  std::vector<End> ends_;  // one is drawn for each life
  Damages damages_{scratch_, random_, findings_};
  Places places_{scratch_, random_, findings_, schedule_.fills_up};
  Place place_;                        // what the next process finds
  std::set<Epoch> epochs_;             // that were given, in all places of this storage
  std::unique_ptr<PowerDisk> before_;  // of the last process, unless power went
  MachineTime time_;
  bool is_useless_ = true;  // it was refused, or there is none yet
  std::uint64_t number_ = 0;
  Total total_;
};

void Lives::start_again() {
  std::error_code code;
  before_.reset();
  if (met_.full) met_.full->give_space();
  if (!place_.root.empty()) std::filesystem::remove_all(place_.root, code);
  places_.clear();
  epochs_.clear();
  place_.root =
      (met_.full ? met_.full->path() : scratch_.path()) + "/start" + std::to_string(number_);
  place_.stamp = 0;
  place_.is_tiered = (schedule_.is_copied || schedule_.is_damaged) && random_.chance(2, 3);
  place_.promise.begin(thread_count + 1, schedule_.is_copied || schedule_.is_damaged);
  time_.stand_still(schedule_.steps_clock && random_.chance(1, 2));
  if (!schedule_.is_upgraded) return;
  if (const Status begun = begin_as_earlier(place_.storage(), random_); !begun) {
    findings_.not_opened(begun.error().message());
  }
}

/// A clock that was set forward just before power went cannot be known to the next boot, nor to a
/// copy from before that, so where there are these it is set back only.
void Lives::step_clock() {
  ++total_.clock_steps;
  const Millis by{static_cast<std::int64_t>(random_.between(1, day_ms))};
  const bool is_back =
      schedule_.loses_power || schedule_.is_copied || schedule_.is_damaged || random_.chance(1, 2);
  time_.step(is_back ? -by : by);
}

Durability Lives::draw_level() {
  // What can be read after a failure is read at `memory`.
  if (schedule_.fails_syncs && random_.chance(1, 4)) return Durability::memory;
  return random_.chance(1, 2) ? Durability::synced : Durability::logged;
}

/// The clock may have been set back while the machine was off. That it was set forward could not be
/// known.
void Lives::boot() {
  ++total_.boots;
  if (!schedule_.steps_clock) return time_.boot();
  time_.boot(Millis{static_cast<std::int64_t>(random_.between(1, 2'000'000))},
             Millis{static_cast<std::int64_t>(random_.below(20'000))});
  if (random_.chance(1, 2)) time_.step(-Millis{static_cast<std::int64_t>(random_.below(day_ms))});
  place_.promise.outlive_boot();
  places_.outlive_boot();
}

/// What is written reaches the disk, and what one may do with a directory that no process uses is
/// done. Bytes whose sync failed would reach it never.
void Lives::between_lives() {
  if (schedule_.is_damaged) {
    damages_.meet(place_, time_);
  }
  if (!schedule_.is_copied || (before_ && before_->has_failed()) || random_.chance(1, 3)) return;
  before_.reset();
  if (met_.full) met_.full->give_space();
  place_.promise.settled();
  places_.meet(place_, time_.wall(), time_.boot_id());
}

/// Up to an hour passes at a time, the wall clock steps, and the records of this thread end as they
/// should.
void Lives::live_by_the_clock(Worker& worker, const PowerDisk& disk) {
  for (int i = 0; i < 8 && !disk.is_broken(); ++i) {
    if (random_.chance(1, 3)) step_clock();
    if (random_.chance(1, 3)) time_.clock().jump(Millis{random_.duration(4'000'000)});
    static_cast<void>(worker.step());
    worker.look_at_own();
  }
}

void Lives::make_disk(Process& process) {
  const bool by_step = process.end != End::close && random_.chance(1, 2);
  PowerDisk::Options options{
      .root = place_.root,
      .image = process.end == End::power ? scratch_ / ("boot" + std::to_string(number_)) : "",
      .boot = time_.boot_id(),
      .seed = random_.bits(),
      .cut_at = by_step ? random_.between(1, 300) : 0,
      .any_order = wanted_.any_order,
      .maps = random_.chance(1, 2),
      .ends_quietly = schedule_.fills_up,
      .lie = wanted_.lie};
  if (met_.failed_syncs) met_.failed_syncs->choose(options, random_);
  process.disk = before_ != nullptr ? std::make_unique<PowerDisk>(options, *before_)
                                    : std::make_unique<PowerDisk>(options);
  before_.reset();
}

bool Lives::open(Process& process) {
  StorageOptions options = options_of(place_, *process.disk);
  options.sync_every = process.interval;
  if (met_.slow) options.confirm_within = SlowDisk::confirm_within;
  if (met_.slow && random_.chance(1, 4)) process.disk->set_delay(SlowDisk::start_delay);
  auto world = open_world(options, time_.wall(), process.level, Joins::no, place_.cold());
  if (world) {
    process.world = *std::move(world);
    places_.opened(place_);
  } else if (!process.disk->is_broken()) {
    is_useless_ = true;
    findings_.not_opened("not opened: " + world.error().message());
  }
  return process.world.has_value();
}

void Lives::judge(Process& process) {
  const auto seen = findings_.judge(*process.world, place_.promise.ledger, time_.clock(),
                                    {.horizon = place_.promise.horizon(),
                                     .largest_epoch = place_.promise.largest_epoch(),
                                     .slack = time_.slack()});
  if (seen && schedule_.is_upgraded) {
    const auto lost = lost_of_earlier(*process.world->engine, schedule_.steps_clock);
    // After a failed sync reads are refused, and the next process is asked.
    if (process.disk->is_broken()) return place_.promise.note(*seen);
    for (const std::string& what : lost) findings_.lost("of an earlier release: " + what);
  }
  if (seen) return place_.promise.note(*seen);
  if (!process.disk->is_broken()) findings_.not_opened("not read: " + seen.error().message());
}

/// Time passes for the storage: the clock jumps, so that spans end; pages are written.
void Lives::wait_for_end(Process& process, Crew& crew) {
  std::mutex mutex;
  std::condition_variable never;
  // Long enough that `logged` has something to keep.
  const std::uint64_t longest = process.level == Durability::logged ? 400 : 90;
  const Timestamp begun = system_.now();
  const Timestamp end = begun + Millis{static_cast<std::int64_t>(random_.between(1, longest))};
  std::unique_lock lock{mutex};
  Timestamp before = begun;
  const auto goes_on = [&] {
    return before < end || (met_.failed_syncs && !met_.slow && !met_.full &&
                            met_.failed_syncs->is_awaited(*process.disk, begun));
  };
  while (!process.disk->is_cut() && goes_on()) {
    never.wait_for(lock, 1ms);
    const Timestamp now = system_.now();
    process.late = std::max(process.late, now - before - 1ms);
    before = now;
    if (met_.failed_syncs) met_.failed_syncs->look(*process.world, *process.disk);
    if (random_.chance(1, 4)) process.disk->write_back();
    if (random_.chance(1, 12)) jump(1'500);
    if (schedule_.steps_clock) live_by_the_clock(crew.own(), *process.disk);
    if (random_.chance(1, 8)) process.world->engine->advance();
    if (schedule_.is_copied && !process.disk->is_broken()) {
      places_.act(*process.world, place_, process.level, time_.clock(), *process.disk);
      before = system_.now();
    }
  }
}

void Lives::work(Process& process) {
  Crew crew{*process.world,
            place_.promise.ledger,
            time_.clock(),
            *process.disk,
            random_,
            {.threads = thread_count,
             .work = {.level = process.level,
                      .process = std::to_string(process.number),
                      .all_ttls = schedule_.steps_clock,
                      .slack = time_.slack()},
             .goes_on = schedule_.fills_up || schedule_.is_slow || schedule_.fails_syncs,
             .failed_syncs = met_.failed_syncs ? &*met_.failed_syncs : nullptr}};
  wait_for_end(process, crew);
  met_.meet(*process.world, place_.promise.ledger, crew, *process.disk, random_, process.late,
            process.end == End::close);
  end_work(process, crew);
}

void Lives::end_work(Process& process, Crew& crew) {
  crew.stop();
  process.has_worked = true;
  if (process.end != End::close) process.disk->cut();
  crew.join();
  if (process.level == Durability::synced) crew.hand_over(place_.promise.ledger);
  for (const auto& worker : crew.workers()) {
    const Tally& tally = worker->tally();
    total_.acknowledged += tally.acknowledged;
    total_.looks += tally.looks;
    for (const Epoch epoch : tally.epochs) {
      place_.promise.handed_out(epoch);
      if (!epochs_.insert(epoch).second) {
        findings_.wrong("epoch " + std::to_string(epoch) + " is given twice");
      }
    }
    findings_.add(tally);
  }
}

/// What the next process finds, and what it must find.
void Lives::remember(const Process& process) {
  // A process that was not opened has promised nothing: what was acknowledged was so before.
  const PowerDisk& disk = *process.disk;
  if (process.has_worked && process.end == End::close && !disk.has_failed())
    place_.promise.closed();
  if (process.has_worked && (process.end != End::close || disk.has_failed())) {
    place_.promise.ended(disk.has_failed() ? disk.fail_time() : disk.cut_time(),
                         process.interval + 2 * (disk.longest_sync() + process.late) + slack,
                         process.level);
  }
  if (process.end != End::power) return;
  place_.promise.lost_power();
  std::error_code code;
  std::filesystem::remove_all(place_.root, code);
  const std::string image = scratch_ / ("boot" + std::to_string(number_));
  if (!met_.full) {
    place_.root = image;
    return;
  }
  met_.full->give_space();
  place_.root = met_.full->path() + "/boot" + std::to_string(number_);
  std::filesystem::copy(image, place_.root, std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(image, code);
}

void Lives::one_life(std::uint64_t number) {
  number_ = number;
  findings_.look_at("process " + std::to_string(number));
  const bool is_new =
      std::exchange(is_useless_, false) ||
      number % (schedule_.is_upgraded ? lives_if_upgraded : lives_of_a_storage) == 0;
  if (is_new) start_again();
  const bool boots = before_ == nullptr;
  // Beyond all leases, which no owner could renew.
  if (schedule_.is_copied && total_.boots > 0 && random_.chance(1, 3)) jump(2 * year_ms);
  if (boots) {
    boot();
  } else if (schedule_.steps_clock) {
    if (random_.chance(1, 2)) step_clock();
    jump(20'000);
  }
  if (!is_new) between_lives();
  constexpr std::array<Millis, 4> intervals{10ms, 20ms, 30ms, 40ms};
  Process process{.number = number,
                  .end = ends_[random_.below(ends_.size())],
                  .level = draw_level(),
                  .interval = random_.pick(intervals)};
  if (met_.full) met_.full->leave_room();
  make_disk(process);
  const std::uint64_t before = findings();
  kept_boots_.add(place_.root, number);
  const bool is_open = open(process);
  if (is_open) judge(process);
  if (findings() != before) kept_boots_.keep(number);
  if (is_open && !process.disk->is_broken()) {
    work(process);
  } else {
    ++total_.while_opening;
  }
  if (process.end != End::close) process.disk->cut();
  process.world.reset();
  if (met_.failed_syncs) met_.failed_syncs->count(*process.disk);
  remember(process);
  const PowerDisk::Counts counts = process.disk->counts();
  ++total_.lives;
  ++total_.by_end[static_cast<std::size_t>(process.end)];
  total_.sectors_lost += counts.sectors_lost;
  total_.names_lost += counts.names_lost;
  total_.syncs += counts.syncs;
  // Where the machine is shut down, all is written.
  const bool shuts_down = schedule_.steps_clock && process.end == End::close &&
                          process.has_worked && !process.disk->has_failed();
  if (process.end == End::power || (shuts_down && random_.chance(1, 2))) return;
  before_ = std::move(process.disk);
}

int Lives::run() {
  if (!met_.can_be_played()) {
    std::printf("%s: skipped, a file system cannot be mounted here\n", schedule_.name.c_str());
    return skipped;
  }
  const std::uint64_t usual = schedule_.takes_long() ? 40 : 200;
  const std::uint64_t count =
      wanted_.count != 0 ? wanted_.count : usual * (wanted_.is_long ? 50 : 1);
  const Timestamp begun = system_.now();
  for (std::uint64_t number = 0; number < count; ++number) {
    one_life(number);
    // With a disk that lies, what is found later says nothing any more.
    if (wanted_.finds() && findings() > 0) break;
  }
  return report(std::max(0.001, static_cast<double>((system_.now() - begun).count()) / 1e3));
}

int Lives::report(double seconds) const {
  const char* const name = schedule_.name.c_str();
  const Findings::Counts& found = findings_.counts();
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  const auto ms = [](Millis value) { return static_cast<long long>(value.count()); };
  std::printf(
      "%s: %llu closed, %llu killed, %llu lost power, %llu of these before they were open; %llu "
      "syncs; not synced and gone: %llu sectors, %llu names\n",
      name, number(total_.by_end[0]), number(total_.by_end[1]), number(total_.by_end[2]),
      number(total_.while_opening), number(total_.syncs), number(total_.sectors_lost),
      number(total_.names_lost));
  if (schedule_.loses_power) {
    std::printf("%s: oldest loss at logged %lld ms before the cut, allowed then %lld ms\n", name,
                ms(place_.promise.oldest_lost()), ms(place_.promise.interval_at_it()));
  }
  if (schedule_.is_copied) std::printf("%s: %s\n", name, places_.report().c_str());
  if (schedule_.is_damaged) damages_.print(schedule_.name);
  met_.report(schedule_.name);
  if (schedule_.steps_clock) {
    std::printf("%s: %llu steps of the clock, %llu boots, %llu looks\n", name,
                number(total_.clock_steps), number(total_.boots), number(total_.looks));
  }
  std::printf(
      "%s: %llu lives, %.1f/s, %llu acknowledged, %llu lost, %llu deleted and back, %llu never "
      "asked for, %llu parted, %llu wrong answers, %llu not opened, %llu wrong while a fault was "
      "there\n",
      name, number(total_.lives), static_cast<double>(total_.lives) / seconds,
      number(total_.acknowledged), number(found.lost), number(found.back), number(found.strange),
      number(found.parted), number(found.wrong), number(found.not_opened), number(met_.findings()));
  if (wanted_.finds()) return findings() > 0 ? 0 : 1;
  if (total_.acknowledged < total_.lives || !met_.came_about(total_.lives) ||
      (schedule_.is_damaged && damages_.refused() < total_.lives / 2)) {
    std::printf("%s: next to nothing was done, or met\n", name);
    return 1;
  }
  return findings() > 0 ? 1 : 0;
}

}  // namespace

int prove_lives(const Wanted& wanted, const Schedule& schedule) {
  Schedule all = schedule;
  // Starts that are ended before they have recovered end nothing that is held.
  all.is_killed = all.is_killed || all.is_copied;
  // What a failed sync has not written is missed when power goes.
  all.loses_power = all.loses_power || all.fails_syncs;
  return Lives{wanted, all}.run();
}

}  // namespace semel::faults
