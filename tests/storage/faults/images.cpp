// Images of the disk, taken at random steps of a storage's life as a power cut would leave them,
// are opened one by one and compared with what was acknowledged when they were taken.
//
//   proof_faults --fault images [--long] [--seed N] [--count N] [--must-find]
//                [--lie bytes|names|cold [--every N]]
//
// One life gives many images, so there are more than cuts could make in the time: of opening,
// recovering, working, draining, rewriting, backing up and closing. Some images live on, and give
// images themselves. Half of the storages have a cold store, and spill beside the work. Some
// processes are killed: the next one finds what was not synced yet, and images are taken of that as
// well. Sectors have 512 or 4,096 bytes, are dropped, reordered, and torn in half of the lives. In
// half of the storages some claims are completed together with an effect in a column family of
// the user's (joined commits): neither may be there without the other. Half of these calls have
// effects drawn at random among all that a WriteBatch can hold, some are made inside a section:
// they are refused, and nothing has changed, or done for good. What was acknowledged at
// `synced`, or confirmed, must be there; at `logged` nothing must, but a pair is there or not, and
// nothing is there that was not asked for. With --lie one sync of bytes in 50, of names in 5, or of
// the bytes of cold stores in 5 is left out (or in --every): then the proof must find a
// loss, and its verdict is turned round; so it is with --must-find, for a storage with a planted
// fault (planted.py). Before all that, all
// kinds of starts are interrupted (all_starts.hpp).
#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/storage/faults/all_starts.hpp"
#include "tests/storage/faults/backups.hpp"
#include "tests/storage/faults/findings.hpp"
#include "tests/storage/faults/image_pool.hpp"
#include "tests/storage/faults/power_disk.hpp"
#include "tests/storage/faults/proofs.hpp"
#include "tests/storage/faults/scratch.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t images_short = 2'000;
constexpr std::uint64_t images_long = 50'000;
constexpr unsigned thread_count = 3;
constexpr std::uint64_t bytes_lie_every = 50;
constexpr std::uint64_t cold_lie_every = 5;
constexpr std::uint64_t names_lie_every = 5;  // a name that is not synced mostly arrives anyway
constexpr unsigned lives_max = 12;            // one after the other, of one storage
/// A disk with so much space gets no file `reserve`, which takes longer to copy than all others.
constexpr std::size_t no_reserve = std::size_t{8} << 20;

std::uint64_t lie_every(const Wanted& wanted) {
  const PowerDisk::Lie lie = wanted.lie;
  if (wanted.lie_every != 0) return wanted.lie_every;
  if (lie == PowerDisk::Lie::cold) return cold_lie_every;
  return lie == PowerDisk::Lie::names ? names_lie_every : bytes_lie_every;
}

struct Total {
  std::uint64_t images = 0;
  std::uint64_t starts_interrupted = 0;
  std::uint64_t while_opening = 0;
  std::uint64_t while_closing = 0;
  std::uint64_t lives = 0;  // in which was worked
  std::uint64_t kills = 0;  // of them, ended by one
  std::uint64_t longest = 0;
  std::uint64_t acknowledged = 0;
  JoinsTally joins{};
  std::uint64_t spills = 0;
  std::uint64_t dropped = 0;         // generations
  std::uint64_t while_spilling = 0;  // images
  std::uint64_t sectors_lost = 0;
  std::uint64_t names_lost = 0;
  std::uint64_t backups_sound = 0;
  std::uint64_t backups_incomplete = 0;
};

class Images {
 public:
  explicit Images(const Wanted& wanted)
      : wanted_(wanted), random_(wanted.seed), findings_("images", wanted_) {}
  int run();

 private:
  struct Life;
  enum class Phase { opening, working, closing };

  void live(Image image, std::unique_ptr<PowerDisk> before = {});
  void at_step(Life& life, std::size_t names);
  [[nodiscard]] bool open(Life& life);
  void judge(Life& life, Ledger& ledger, Timestamp horizon);
  void judge_backups(const Life& life);
  static void begin(Life& life, Phase phase);
  void work(Life& life);
  void act(Life& life);
  void spill(Life& life);
  const Wanted wanted_;
  proofs::Random random_;
  Findings findings_;
  const SystemClock clock_;
  const Scratch scratch_;
  ImagePool pool_{scratch_, random_};
  Total total_;
};

struct Images::Life {
  Image image;
  Durability level;
  bool works;
  JumpingClock clock;
  proofs::Random steps;  // of the hook alone
  // Of the hook: called under the mutex of the disk.
  std::vector<Image> taken{};
  std::uint64_t countdown = 0;
  std::mutex mutex{};  // held while an image is taken: no phase begins meanwhile
  std::atomic<Phase> phase{Phase::opening};
  std::optional<Ledger> found{};  // what was judged, and is worked on; set before phase changes
  std::atomic<bool> is_spilling{false};
  std::unique_ptr<PowerDisk> disk{};
  std::optional<World> world{};
};

/// Takes an image now and then. The ledger is copied after the image: an operation that was
/// acknowledged in between rests on a sync before it, for no sync returns meanwhile.
void Images::at_step(Life& life, std::size_t names) {
  if (life.countdown == 0) return;
  // Few steps change a name, the next sync of its directory covers it as well, and most names reach
  // the disk unsynced. So what may rest on one that did not is looked at more often.
  const std::uint64_t passed = names != 0 ? 24 : 1;
  life.countdown -= std::min(life.countdown, passed);
  if (life.countdown != 0) return;
  const std::lock_guard lock{life.mutex};
  // mo: relaxed: set under the mutex.
  const Phase phase = life.phase.load(std::memory_order_relaxed);
  constexpr std::size_t working_max = 24;
  constexpr std::size_t opening_max = 2;
  const std::size_t most = (life.works ? working_max : opening_max) * (names != 0 ? 3 : 1);
  if (life.taken.size() >= most) return;
  life.countdown = life.steps.between(1, phase == Phase::working ? 12 : 60);
  Image image = pool_.child(life.image);
  image.is_urgent = names != 0;
  life.disk->image(image.root);
  if (!std::filesystem::exists(image.root)) return;  // power is gone
  const Ledger& ledger = phase == Phase::opening ? life.image.ledger : *life.found;
  image.unix_ms = life.clock.unix_ms();
  // What is being asked for just now has begun in this image, or never does there.
  for (const auto& [key, history] : ledger) {
    image.ledger.emplace(key, history).first->second.begun_by(image.unix_ms);
  }
  image.lives += phase == Phase::opening ? 0 : 1;
  total_.while_opening += phase == Phase::opening ? 1 : 0;
  // mo: relaxed: a figure
  total_.while_spilling += life.is_spilling.load(std::memory_order_relaxed) ? 1 : 0;
  total_.while_closing += phase == Phase::closing ? 1 : 0;
  life.taken.push_back(std::move(image));
}

void Images::begin(Life& life, Phase phase) {
  const std::lock_guard lock{life.mutex};
  life.phase.store(phase, std::memory_order_relaxed);  // mo: relaxed: read under the mutex
}

bool Images::open(Life& life) {
  StorageOptions options;
  options.directory = life.image.root + "/storage";
  options.sync_every = 10ms;
  options.span = 1'000ms;
  options.disk = &*life.disk;
  options.log_bytes = std::size_t{1} << 20;
  options.garbage_bytes = std::size_t{1} << 20;
  auto world = open_world(options, life.clock, life.level, life.image.joins,
                          life.image.is_tiered ? life.image.root + "/cold" : std::string{});
  if (!world) {
    findings_.not_opened("not opened: " + world.error().message());
    return false;
  }
  life.world = *std::move(world);
  return true;
}

/// What was acknowledged at `logged` up to `horizon` must be there as well.
void Images::judge(Life& life, Ledger& ledger, Timestamp horizon) {
  const auto found = findings_.judge(*life.world, ledger, life.clock,
                                     {.horizon = horizon, .largest_epoch = largest_epoch(ledger)});
  if (!found) findings_.not_opened("not read: " + found.error().message());
}

void Images::judge_backups(const Life& life) {
  const BackupsFound found = look_at_backups(life.image.root);
  total_.backups_sound += found.sound;
  total_.backups_incomplete += found.incomplete;
  if (found.wrong != 0) findings_.wrong("backup " + found.first_wrong);
}

void Images::spill(Life& life) {
  life.is_spilling.store(true, std::memory_order_relaxed);  // mo: relaxed: a figure
  const std::uint64_t before = life.world->cold->stats().generations;
  const Status done = faults::spill(*life.world);
  total_.dropped += before + 1 - std::min(before + 1, life.world->cold->stats().generations);
  life.is_spilling.store(false, std::memory_order_relaxed);  // mo: as above
  ++total_.spills;
  if (!done) findings_.wrong("no spill: " + done.error().message());
}

/// What a program does beside its calls.
void Images::act(Life& life) {
  if (life.world->cold != nullptr && random_.chance(1, 2)) return spill(life);
  switch (random_.below(8)) {
    case 0:
      life.clock.jump(Millis{static_cast<std::int64_t>(random_.between(1, 1'500))});
      return;
    case 1:
      life.world->engine->advance();
      return;
    case 2:
      life.disk->write_back();
      return;
    case 3:
      if (const Status drained = life.world->storage->drain(); !drained) {
        findings_.wrong("not drained: " + drained.error().message());
      }
      return;
    case 4: {
      const std::string to = life.image.root + "/backup" + std::to_string(life.image.number);
      if (!random_.chance(1, 8) || std::filesystem::exists(to)) return;
      if (const auto made = life.world->storage->backup(to); !made) {
        findings_.wrong("no backup: " + made.error().message());
      }
      return;
    }
    default:
      return;
  }
}

void Images::work(Life& life) {
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::thread> threads;
  std::atomic<unsigned> working{thread_count};
  const std::uint64_t steps = random_.between(1, 120);
  for (unsigned t = 0; t < thread_count; ++t) {
    workers.push_back(
        std::make_unique<Worker>(*life.world, *life.found, life.clock,
                                 Worker::Options{.thread = t,
                                                 .level = life.level,
                                                 .seed = random_.bits(),
                                                 .process = std::to_string(life.image.number),
                                                 .all_ends = life.image.all_ends,
                                                 .joins = life.image.joins}));
    threads.emplace_back([&working, steps, worker = workers.back().get()] {
      for (std::uint64_t i = 0; i < steps && worker->step(); ++i) {
      }
      working.fetch_sub(1, std::memory_order_release);  // mo: release [images.working]
    });
  }
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock{mutex};
  while (working.load(std::memory_order_acquire) != 0) {  // mo: acquire [images.working]
    act(life);
    never.wait_for(lock, 1ms);
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& worker : workers) {
    const Tally& tally = worker->tally();
    total_.acknowledged += tally.acknowledged;
    total_.joins += tally.joins;
    findings_.add(tally);
  }
}

/// `before`: the disk of a process that was killed; this one goes on with what it left.
void Images::live(Image image, std::unique_ptr<PowerDisk> before) {
  const bool is_new = !std::filesystem::exists(image.root);
  findings_.look_at("image " + std::to_string(image.number) + " after " +
                    std::to_string(image.lives) + " lives");
  Life life{.image = std::move(image),
            .level = random_.chance(2, 3) ? Durability::synced : Durability::logged,
            .works = is_new || random_.chance(1, 5),
            .clock = JumpingClock{0},
            .steps = proofs::Random{random_.bits()}};
  life.works = (life.works || before != nullptr) && life.image.lives < lives_max;
  life.clock.jump(Millis{life.image.unix_ms});
  if (life.works || random_.chance(1, 8)) life.countdown = random_.between(1, 30);
  constexpr std::array<std::size_t, 2> sectors{512, 4'096};
  const PowerDisk::Options options{
      .root = life.image.root,
      .image = {},
      .boot = before != nullptr ? before->boot_id() : "boot " + std::to_string(life.image.number),
      .seed = random_.bits(),
      .maps = random_.chance(1, 2),
      .sector_bytes = random_.pick(sectors),
      .torn = random_.chance(1, 2),
      .bytes_free = random_.chance(1, 16) ? SIZE_MAX : no_reserve,
      .at_step = [&](std::size_t names) { at_step(life, names); },
      .lie = wanted_.lie,
      .lie_every = lie_every(wanted_)};
  const bool is_restart = before != nullptr;
  life.disk = is_restart ? std::make_unique<PowerDisk>(options, *before)
                         : std::make_unique<PowerDisk>(options);
  before.reset();
  bool is_killed = false;
  if (open(life)) {
    life.found.emplace();
    for (const auto& [key, history] : life.image.ledger) life.found->emplace(key, history);
    judge(life, *life.found, is_restart ? Timestamp::max() : Timestamp::min());
    judge_backups(life);
    if (life.works) {
      ++total_.lives;
      total_.longest = std::max<std::uint64_t>(total_.longest, life.image.lives + 1);
      begin(life, Phase::working);
      work(life);
      begin(life, Phase::closing);
      is_killed = random_.chance(1, 3);
      total_.kills += is_killed ? 1 : 0;
    }
    if (is_killed || random_.chance(1, 2)) life.disk->cut();
    life.world.reset();
  }
  if (!is_new && !is_restart) ++total_.images;
  const PowerDisk::Counts counts = life.disk->counts();
  total_.sectors_lost += counts.sectors_lost;
  total_.names_lost += counts.names_lost;
  pool_.add(std::move(life.taken));
  if (!is_killed) return ImagePool::remove(life.image);
  Image again = pool_.child(life.image);
  ++again.lives;
  again.root = life.image.root;
  again.unix_ms = life.clock.unix_ms();
  for (const auto& [key, history] : *life.found) again.ledger.emplace(key, history);
  live(std::move(again), std::move(life.disk));
}

int Images::run() {
  if (!wanted_.lies()) {
    total_.starts_interrupted = interrupt_all_starts(wanted_, scratch_, random_, findings_);
  }
  const Timestamp begun = clock_.now();
  const std::uint64_t wanted =
      wanted_.count != 0 ? wanted_.count : (wanted_.is_long ? images_long : images_short);
  while (total_.images < wanted && !(wanted_.finds() && findings_.total() > 0)) {
    live(pool_.next(thread_count));
  }
  const double seconds = std::max(0.001, static_cast<double>((clock_.now() - begun).count()) / 1e3);
  const Findings::Counts& found = findings_.counts();
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "images: %llu starts interrupted; %llu lives with work, %llu of them killed, up to %llu in a "
      "row, %llu acknowledged, %llu joined with drawn effects, %llu in sections, %llu of both "
      "refused, "
      "%llu spills, %llu generations dropped; %llu images taken while opening, %llu while "
      "spilling, %llu while closing; not "
      "synced and gone: %llu sectors, %llu names\n",
      number(total_.starts_interrupted), number(total_.lives), number(total_.kills),
      number(total_.longest), number(total_.acknowledged), number(total_.joins.drawn),
      number(total_.joins.in_sections), number(total_.joins.refused), number(total_.spills),
      number(total_.dropped), number(total_.while_opening), number(total_.while_spilling),
      number(total_.while_closing), number(total_.sectors_lost), number(total_.names_lost));
  std::printf(
      "images: %llu images, %.1f/s, %llu lost, %llu never asked for, %llu parted, "
      "%llu wrong answers, %llu not opened; backups: %llu sound, %llu incomplete\n",
      number(total_.images), static_cast<double>(total_.images) / seconds, number(found.lost),
      number(found.strange), number(found.parted), number(found.wrong), number(found.not_opened),
      number(total_.backups_sound), number(total_.backups_incomplete));
  if (wanted_.finds()) return findings_.total() > 0 ? 0 : 1;
  const bool joins = total_.joins.drawn > 0 && total_.joins.in_sections > 0;
  if (total_.acknowledged < total_.images || !joins) {
    std::printf("images: next to nothing was done\n");
    return 1;
  }
  return findings_.total() > 0 ? 1 : 0;
}

}  // namespace

int prove_images(const Wanted& wanted) {
  return Images{wanted}.run();
}

}  // namespace semel::faults
