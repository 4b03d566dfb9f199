// Images of the disk, taken at random steps of an entry log's life as a power cut would leave them,
// are opened and compared with what was synced when they were taken.
//
//   proof_log_images [--long] [--seed N] [--images N] [--lie] [--without-tail]
//
// A life appends, replaces, truncates, syncs, forgets, restarts behind a snapshot, and is killed
// and opened again. Sectors of 512 or 4,096 bytes are dropped, reordered and torn, names may be
// missing. An image holds the state of a moment between the last sync and the cut, and goes on:
// images are taken of its life as well. With --lie one sync in 20 is left out; then the proof must
// find a loss, and its verdict is turned round. Of some images the newest segment is taken away, or
// cut: they hold what was synced all the same, or are refused. With --without-tail nothing says how
// far the log went; then the same must be found.
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replication/log/entry_log.hpp"
#include "tests/proofs/arguments.hpp"
#include "tests/storage/faults/power_disk.hpp"
#include "tests/storage/faults/scratch.hpp"

namespace semel::faults {
namespace {

using namespace replication;

constexpr std::size_t segment_bytes = std::size_t{64} << 10;
constexpr std::size_t pending_max = 32;
constexpr unsigned lives_max = 8;
constexpr std::uint64_t lie_every = 20;
constexpr std::uint64_t shown_max = 8;

/// What a log holds: entries first.. by term and data.
struct Model {
  LogIndex first = 1;
  std::vector<std::pair<Term, std::string>> entries{};
  [[nodiscard]] LogIndex last() const noexcept { return first + entries.size() - 1; }
};

struct Image {
  std::string root{};
  unsigned lives = 0;
  /// Each state since the last sync, which is the first of them.
  std::vector<Model> states{1};
};

struct Wanted {
  proofs::Arguments arguments;
  std::uint64_t images = 0;
  bool lies = false;
  bool without_tail = false;
};

class LogImages {
 public:
  LogImages(const Wanted& wanted, std::uint64_t seed) : wanted_(wanted), random_(seed) {}
  int run();

 private:
  struct Life;
  [[nodiscard]] Image next_image();
  [[nodiscard]] bool harm(const std::string& directory);
  void live(Image image);
  void at_step(Life& life);
  [[nodiscard]] bool judge(Life& life);
  void work(Life& life);
  [[nodiscard]] bool step(Life& life);
  [[nodiscard]] bool append(Life& life, LogIndex from);
  [[nodiscard]] bool sync(Life& life);
  void say(const std::string& what);

  const Wanted wanted_;
  proofs::Random random_;
  const Scratch scratch_;
  std::vector<Image> pending_;
  std::uint64_t numbers_ = 0;
  Term terms_ = 0;
  std::uint64_t images_ = 0;
  std::uint64_t appended_ = 0;
  std::uint64_t synced_ = 0;
  std::uint64_t cut_off_ = 0;  // images that did not hold the newest state
  std::uint64_t lost_ = 0;
  std::uint64_t not_opened_ = 0;
  std::uint64_t harmed_ = 0;
  std::uint64_t refused_ = 0;  // of them
};

struct LogImages::Life {
  Image image;
  std::uint64_t countdown = 0;
  std::vector<Image> taken{};
  std::unique_ptr<PowerDisk> disk{};
  std::unique_ptr<EntryLog> log{};
  [[nodiscard]] Model& now() { return image.states.back(); }
  /// A change that may be lost.
  [[nodiscard]] Model& next() { return image.states.emplace_back(image.states.back()); }
};

void LogImages::say(const std::string& what) {
  if (wanted_.lies || wanted_.without_tail || lost_ + not_opened_ > shown_max) return;
  std::printf("log images: %s\n", what.c_str());
}

Image LogImages::next_image() {
  if (pending_.empty() || random_.chance(1, 16)) {
    return {.root = scratch_ / std::to_string(++numbers_)};
  }
  std::swap(pending_[random_.below(pending_.size())], pending_.back());
  Image image = std::move(pending_.back());
  pending_.pop_back();
  return image;
}

void LogImages::at_step(Life& life) {
  if (life.countdown == 0 || --life.countdown != 0) return;
  life.countdown = random_.between(1, 40);
  if (life.taken.size() >= 12) return;
  Image image{.root = scratch_ / std::to_string(++numbers_),
              .lives = life.image.lives + 1,
              .states = life.image.states};
  life.disk->image(image.root);
  if (std::filesystem::exists(image.root)) life.taken.push_back(std::move(image));
}

/// Takes the newest segment away, or a part of it. False: there is none.
bool LogImages::harm(const std::string& directory) {
  std::vector<std::string> segments;
  std::error_code none;
  for (const auto& each : std::filesystem::directory_iterator{directory + "/log", none}) {
    segments.push_back(each.path().string());
  }
  if (segments.empty()) return false;
  ++harmed_;
  const std::string newest = *std::max_element(segments.begin(), segments.end());
  if (wanted_.without_tail) std::filesystem::remove(directory + "/" + TailFile::name);
  const std::uint64_t size = std::filesystem::file_size(newest);
  switch (random_.below(4)) {
    case 0:
      std::filesystem::remove(newest);
      break;
    case 1:
      std::filesystem::resize_file(newest, random_.below(storage::segment_header_bytes));
      break;
    case 2:
      std::filesystem::resize_file(newest, std::min<std::uint64_t>(size, random_.below(40'000)));
      break;
    default:
      std::filesystem::resize_file(newest, random_.below(2) * storage::segment_header_bytes);
      std::filesystem::resize_file(newest, size);  // zeros
  }
  return true;
}

bool LogImages::judge(Life& life) {
  EntryLog& log = *life.log;
  std::vector<Model>& states = life.image.states;
  std::size_t hit = states.size();
  for (std::size_t i = states.size(); i-- > 0 && hit == states.size();) {
    const Model& model = states[i];
    // What was forgotten may be there.
    bool is_same =
        log.last() == model.last() || (model.entries.empty() && log.last() < model.first);
    is_same = is_same && (model.entries.empty() || log.first() <= model.first);
    for (LogIndex index = model.first; is_same && index <= model.last(); ++index) {
      const auto& [term, data] = model.entries[index - model.first];
      is_same = log.term_of(index) == term;
    }
    if (is_same) hit = i;
  }
  if (hit == states.size()) {
    ++lost_;
    say("entries " + std::to_string(log.first()) + ".." + std::to_string(log.last()) +
        " are of no state since the last sync, " + std::to_string(states.front().first) + ".." +
        std::to_string(states.front().last()) + " then");
    return false;
  }
  Model found = states[hit];
  for (LogIndex index = found.first; index <= found.last(); ++index) {
    const auto data = log.read(index);
    if (data.ok() && *data == found.entries[index - found.first].second) continue;
    ++lost_;
    say("entry " + std::to_string(index) + " has other bytes");
    return false;
  }
  cut_off_ += hit + 1 < states.size() ? 1 : 0;
  states.assign(1, std::move(found));
  // As the consensus does that has a snapshot: its log begins behind it.
  if (log.last() + 1 >= life.now().first) return true;
  life.now() = {.first = life.now().first, .entries = {}};
  return log.restart(life.now().first - 1, 1).ok();
}

bool LogImages::append(Life& life, LogIndex from) {
  const Term term = ++terms_;  // index and term name an entry, as in every log of Raft
  for (std::uint64_t count = random_.between(1, 6); count > 0; --count, ++from) {
    std::string data(random_.below(random_.chance(1, 20) ? 20'000 : 300),
                     static_cast<char>('a' + random_.below(26)));
    // Before it is written: an image may hold it.
    Model& model = life.next();
    model.entries.resize(from - model.first);
    model.entries.emplace_back(term, data);
    const LogEntry entry{.index = from, .term = term, .type = 1, .data = data};
    if (!life.log->append({&entry, 1})) return false;
    ++appended_;
  }
  return true;
}

bool LogImages::sync(Life& life) {
  if (!life.log->sync()) return false;
  ++synced_;
  life.image.states.erase(life.image.states.begin(), life.image.states.end() - 1);
  return true;
}

/// False: the power is gone.
bool LogImages::step(Life& life) {
  const LogIndex first = life.now().first;
  const LogIndex last = life.now().last();
  switch (random_.below(20)) {
    case 0:  // a conflict
      return append(life, first + random_.below(last + 2 - first));
    case 1: {
      const LogIndex index = first + random_.below(last + 2 - first);
      Model& model = life.next();
      model.entries.resize(std::min<std::size_t>(model.entries.size(), index - first));
      return life.log->truncate(index).ok();
    }
    case 2: {
      if (!sync(life)) return false;
      if (life.now().entries.empty()) return true;
      const LogIndex index = first + random_.below(last + 1 - first);
      // What is forgotten may be gone from now on, and is not missed.
      Model& model = life.now();
      model.entries.erase(model.entries.begin(),
                          model.entries.begin() + static_cast<std::ptrdiff_t>(index + 1 - first));
      model.first = index + 1;
      return life.log->forget(index).ok();
    }
    case 3: {
      if (!random_.chance(1, 5)) return true;
      const LogIndex index = last + random_.below(50);
      life.next() = {.first = index + 1, .entries = {}};
      return life.log->restart(index, 5).ok();
    }
    case 4:
      life.disk->write_back();
      return true;
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:
      return sync(life);
    default:
      return append(life, last + 1);
  }
}

void LogImages::work(Life& life) {
  for (std::uint64_t steps = random_.between(1, 150); steps > 0 && step(life); --steps) {
  }
}

void LogImages::live(Image image) {
  const bool is_new = !std::filesystem::exists(image.root);
  Life life{.image = std::move(image)};
  const bool is_harmed = !is_new && random_.chance(1, 8) && harm(life.image.root + "/raft");
  const bool works = !is_harmed && life.image.lives < lives_max && (is_new || random_.chance(1, 3));
  if (works || (!is_harmed && random_.chance(1, 4))) life.countdown = random_.between(1, 20);
  constexpr std::array<std::size_t, 2> sectors{512, 4'096};
  std::filesystem::create_directories(life.image.root);
  life.disk = std::make_unique<PowerDisk>(
      PowerDisk::Options{.root = life.image.root,
                         .image = {},
                         .boot = "boot",
                         .seed = random_.bits(),
                         .maps = random_.chance(1, 2),
                         .sector_bytes = random_.pick(sectors),
                         .torn = random_.chance(1, 2),
                         .at_step = [&](std::size_t) { at_step(life); },
                         .lie = wanted_.lies ? PowerDisk::Lie::bytes : PowerDisk::Lie::none,
                         .lie_every = lie_every});
  auto log = EntryLog::open({.directory = life.image.root + "/raft",
                             .disk = life.disk.get(),
                             .segment_bytes = segment_bytes,
                             .log_id = 9,
                             .accepts_copy = true});
  images_ += is_new ? 0 : 1;
  if (!log.ok() && is_harmed && log.error().code == ErrorCode::storage_damaged) {
    ++refused_;
  } else if (!log.ok()) {
    ++not_opened_;
    say("not opened: " + log.error().message());
  } else {
    life.log = *std::move(log);
    if (judge(life) && works) work(life);
  }
  life.log.reset();
  life.disk->cut();
  life.disk.reset();
  for (Image& taken : life.taken) {
    if (pending_.size() < pending_max) {
      pending_.push_back(std::move(taken));
    } else {
      std::filesystem::remove_all(taken.root);
    }
  }
  std::filesystem::remove_all(life.image.root);
}

int LogImages::run() {
  const auto findings = [&] { return lost_ + not_opened_; };
  const bool must_find = wanted_.lies || wanted_.without_tail;
  while (images_ < wanted_.images && !(must_find && findings() > 0)) live(next_image());
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "log images: %llu images, %llu entries appended, %llu syncs, %llu images without the newest "
      "state, %llu lost, %llu not opened, %llu with a newest segment that is gone or cut, of which "
      "%llu were refused\n",
      number(images_), number(appended_), number(synced_), number(cut_off_), number(lost_),
      number(not_opened_), number(harmed_), number(refused_));
  if (must_find) return findings() > 0 ? 0 : 1;
  return findings() == 0 && refused_ > harmed_ / 2 && cut_off_ > images_ / 20 && appended_ > images_
             ? 0
             : 1;
}

std::optional<Wanted> parse(int count, char** texts) {
  Wanted wanted;
  std::vector<char*> rest{texts[0]};
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(texts[i], "--images") == 0 && i + 1 < count) {
      wanted.images = std::strtoull(texts[++i], nullptr, 10);
    } else if (std::strcmp(texts[i], "--lie") == 0) {
      wanted.lies = true;
    } else if (std::strcmp(texts[i], "--without-tail") == 0) {
      wanted.without_tail = true;
    } else {
      rest.push_back(texts[i]);
    }
  }
  const auto arguments = proofs::parse_arguments(static_cast<int>(rest.size()), rest.data());
  if (!arguments) return std::nullopt;
  wanted.arguments = *arguments;
  if (wanted.images == 0) wanted.images = arguments->is_long ? 50'000 : 3'000;
  return wanted;
}

}  // namespace
}  // namespace semel::faults

int main(int count, char** texts) {
  const auto wanted = semel::faults::parse(count, texts);
  if (!wanted) return 2;
  const std::uint64_t seed = wanted->arguments.seed.value_or(semel::proofs::fresh_seed());
  std::printf("log images: seed %llu\n", static_cast<unsigned long long>(seed));
  return semel::faults::LogImages{*wanted, seed}.run();
}
