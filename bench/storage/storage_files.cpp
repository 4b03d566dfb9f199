// Question: would drained records be cheaper as keys of RocksDB than as groups in files by span?
// Method:   one thread sets random keys (16 bytes, values of 8, one ttl) ten times as often as
//           there are keys, at `logged`; all is closed and recovered, and once more when all has
//           ended.
// Compare:  the same mutations in the same order, drained in batches of the same size into RocksDB
//           as one key each: sorted, ingested, compacted, dropped at their end by its filter. Both
//           sides leave out what a later mutation has replaced by the time of draining.
// Report:   CPU of draining (ours: all threads but the caller's) and of removing what has ended;
//           bytes of all files for a live record; records read a second.
#include <rocksdb/compaction_filter.h>
#include <rocksdb/db.h>
#include <rocksdb/sst_file_writer.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "bench/storage/storage_ours.hpp"
#include "bench/storage/storage_place.hpp"
#include "bench/storage/storage_work.hpp"

namespace semel::bench {

namespace {

constexpr std::size_t key_bytes = 16;
constexpr std::uint64_t generations = 10;
constexpr std::uint64_t log_mutation_bytes = 64;
// As storage does it: four segments of 8 MiB at once, when ten more are complete.
constexpr std::uint64_t batch_mutations = (std::uint64_t{32} << 20) / log_mutation_bytes;
constexpr std::uint64_t ahead_mutations = (std::uint64_t{80} << 20) / log_mutation_bytes;
constexpr Millis file_ttl{600'000};

struct FileFigures {
  double drain_ns = 0;   ///< CPU of a mutation, everything behind the caller
  double kept = 0;       ///< bytes of all files for a live record
  double read = 0;       ///< live records a second, from a closed directory
  double remove_ns = 0;  ///< CPU of a live record, to be rid of it when it has ended
  double left = 0;       ///< bytes of all files for a record that has ended, afterwards
};

std::uint64_t key_number(std::uint64_t at, std::uint64_t keys) {
  std::uint64_t x = at * 0x9e3779b97f4a7c15;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93;
  return (x ^ (x >> 32)) % keys;
}

std::string file_key(std::uint64_t number) {
  const Key key = key_of(number);
  return std::string{bytes_of(key).substr(0, key_bytes)};
}

double thread_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double seconds_since(std::uint64_t begin) {
  return static_cast<double>(__rdtsc() - begin) / ticks_per_ns() * 1e-9;
}

/// The newest mutation of each key among the first ones: `none` if it has none.
class Newest {
 public:
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  explicit Newest(std::uint64_t keys) : of_(keys, none) {}
  void advance(std::uint64_t end) {
    for (; next_ < end; ++next_) of_[key_number(next_, of_.size())] = next_;
  }
  [[nodiscard]] std::uint64_t of(std::uint64_t number) const { return of_[number]; }
  [[nodiscard]] std::uint64_t live() const {
    return of_.size() - static_cast<std::uint64_t>(std::count(of_.begin(), of_.end(), none));
  }

 private:
  std::vector<std::uint64_t> of_;
  std::uint64_t next_ = 0;
};

// --- ours ---------------------------------------------------------------------------------------

/// A storage and an engine whose clock is moved by hand, so that all can end at once.
struct Kept {
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;
  RecoveryReport report;

  Kept(const std::string& directory, ManualClock& clock, std::uint64_t keys) {
    auto opened = Storage::open({.directory = directory + "/storage"}, clock);
    if (!opened) fail(opened.error().message().c_str());
    storage = *std::move(opened);
    auto made = Engine::open({.clock = &clock,
                              .journal = storage.get(),
                              .durability = Durability::logged,
                              .memory_bytes = keys * 512 + (std::size_t{512} << 20),
                              .first_version = storage->first_version()});
    if (!made) fail(made.error().message().c_str());
    engine = *std::move(made);
    auto recovered = storage->recover(*engine);
    if (!recovered) fail(recovered.error().message().c_str());
    report = *recovered;
  }
};

FileFigures measure_own_files(const std::string& directory, std::uint64_t keys) {
  FileFigures figures;
  ManualClock clock;
  Newest newest{keys};
  newest.advance(keys * generations);
  const auto live = static_cast<double>(newest.live());
  const double cpu = process_cpu_ns();
  const double caller = thread_cpu_ns();
  {
    Kept kept{directory, clock, keys};
    Store store = kept.engine->store();
    for (std::uint64_t at = 0; at < keys * generations; ++at) {
      const std::string key = file_key(key_number(at, keys));
      const std::uint64_t value = value_of(at);
      until_taken([&] {
        const auto set = store.set(key, bytes_of(value), {.expiry = Expiry::in(file_ttl)});
        require(set.ok() || set.error().code == ErrorCode::refused, "a SET: an error");
        return set.ok();
      });
    }
    require(bool{kept.engine->confirm(Durability::synced)}, "what was set could not be synced");
  }
  figures.drain_ns = (process_cpu_ns() - cpu - (thread_cpu_ns() - caller)) /
                     static_cast<double>(keys * generations);
  figures.kept = disk_use(directory).all / live;
  {
    const std::uint64_t begin = __rdtsc();
    Kept kept{directory, clock, keys};
    figures.read = live / seconds_since(begin);
    require(static_cast<double>(kept.engine->size(0)) == live, "another number of records");
    for (std::uint64_t i = 0; i < keys; i += 997) {
      if (newest.of(i) == Newest::none) continue;
      const auto found = kept.engine->store().get(file_key(i));
      require(found.ok() && *found && number_of(**found) == value_of(newest.of(i)),
              "recovery brought back another value");
    }
  }
  clock.advance(file_ttl * 4);
  const double removing = process_cpu_ns();
  {
    Kept kept{directory, clock, keys};
    require(kept.engine->size(0) == 0, "a record is there after its end");
  }
  figures.remove_ns = (process_cpu_ns() - removing) / live;
  figures.left = disk_use(directory).all / live;
  return figures;
}

// --- as keys of RocksDB -------------------------------------------------------------------------

/// What a mutation of a string needs beside its key: version, end, value.
struct KeyedRecord {
  std::uint64_t version;
  std::int64_t due_ms;
  std::uint64_t value;
};

class EndedFilter final : public rocksdb::CompactionFilter {
 public:
  explicit EndedFilter(const ManualClock& clock) : clock_(clock) {}
  [[nodiscard]] const char* Name() const override { return "ended"; }
  bool Filter(int, const rocksdb::Slice&, const rocksdb::Slice& value, std::string*,
              bool*) const override {
    KeyedRecord record{};
    require(value.size() == sizeof record, "RocksDB: a value of another size");
    std::memcpy(&record, value.data(), sizeof record);
    return Timestamp{Millis{record.due_ms}} <= clock_.now();
  }

 private:
  const ManualClock& clock_;
};

rocksdb::Options keyed_options(const EndedFilter& filter) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compaction_filter = &filter;
  options.compression = rocksdb::kNoCompression;  // as our files
  options.write_buffer_size = std::size_t{1} << 20;
  return options;
}

std::unique_ptr<rocksdb::DB> open_keyed(const std::string& directory,
                                        const rocksdb::Options& options) {
  rocksdb::DB* opened = nullptr;
  require(rocksdb::DB::Open(options, directory + "/rocksdb", &opened).ok(), "RocksDB: no open");
  return std::unique_ptr<rocksdb::DB>{opened};
}

void until_compacted(rocksdb::DB& database) {
  for (const char* name : {"rocksdb.compaction-pending", "rocksdb.num-running-compactions"}) {
    std::uint64_t count = 1;
    while (count != 0) {
      require(database.GetIntProperty(name, &count), "RocksDB: no such property");
      if (count != 0) pause_ns(1'000'000);
    }
  }
}

/// Mutations [begin, end) as one file, sorted by key, the newest of each.
void drain_keyed(rocksdb::DB& database, const std::string& path, const Newest& newest,
                 std::uint64_t begin, std::uint64_t end, std::uint64_t keys, Timestamp due) {
  std::vector<std::pair<std::string, std::uint64_t>> batch;
  for (std::uint64_t at = begin; at < end; ++at) {
    const std::uint64_t number = key_number(at, keys);
    if (newest.of(number) == at) batch.emplace_back(file_key(number), at);
  }
  if (batch.empty()) return;
  std::sort(batch.begin(), batch.end());
  rocksdb::SstFileWriter writer{{}, database.GetOptions()};
  require(writer.Open(path).ok(), "RocksDB: no file");
  for (const auto& [key, at] : batch) {
    const KeyedRecord record{at, due.time_since_epoch().count(), value_of(at)};
    const Bytes bytes{reinterpret_cast<const char*>(&record), sizeof record};
    require(writer.Put(key, bytes).ok(), "RocksDB: no Put");
  }
  require(writer.Finish().ok(), "RocksDB: a file cannot be finished");
  rocksdb::IngestExternalFileOptions moved;
  moved.move_files = true;
  require(database.IngestExternalFile({path}, moved).ok(), "RocksDB: no ingestion");
}

FileFigures measure_keyed_files(const std::string& directory, std::uint64_t keys) {
  FileFigures figures;
  ManualClock clock;
  const EndedFilter filter{clock};
  const rocksdb::Options options = keyed_options(filter);
  const std::uint64_t all = keys * generations;
  Newest newest{keys};
  double cpu = process_cpu_ns();
  {
    const auto database = open_keyed(directory, options);
    for (std::uint64_t at = 0; at < all; at += batch_mutations) {
      const std::uint64_t end = std::min(all, at + batch_mutations);
      const double calls = process_cpu_ns();
      newest.advance(std::min(all, end + ahead_mutations));  // the callers' part
      cpu += process_cpu_ns() - calls;
      drain_keyed(*database, directory + "/next.sst", newest, at, end, keys,
                  clock.now() + file_ttl);
    }
    until_compacted(*database);
    require(database->Close().ok(), "RocksDB: no close");
  }
  const auto live = static_cast<double>(newest.live());
  figures.drain_ns = (process_cpu_ns() - cpu) / static_cast<double>(all);
  figures.kept = disk_use(directory).all / live;
  {
    const std::uint64_t begin = __rdtsc();
    const auto database = open_keyed(directory, options);
    const std::unique_ptr<rocksdb::Iterator> at{database->NewIterator({})};
    double found = 0;
    for (at->SeekToFirst(); at->Valid(); at->Next()) ++found;
    figures.read = live / seconds_since(begin);
    require(at->status().ok() && found == live, "RocksDB: another number of records");
  }
  clock.advance(file_ttl * 4);
  const double removing = process_cpu_ns();
  {
    const auto database = open_keyed(directory, options);
    rocksdb::CompactRangeOptions whole;
    whole.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    require(database->CompactRange(whole, nullptr, nullptr).ok(), "RocksDB: no compaction");
    const std::unique_ptr<rocksdb::Iterator> at{database->NewIterator({})};
    at->SeekToFirst();
    require(!at->Valid(), "RocksDB: a record is there after its end");
  }
  figures.remove_ns = (process_cpu_ns() - removing) / live;
  figures.left = disk_use(directory).all / live;
  return figures;
}

}  // namespace

void files_group(Work& work) {
  Context& context = work.context;
  const std::uint64_t keys = std::max<std::uint64_t>(context.options.records / generations, 1'000);
  std::vector<FileFigures> ours;
  std::vector<FileFigures> peer;
  for (context.round = 0; context.round < context.options.rounds; ++context.round) {
    const auto own = work.measured("files by span", [&](const std::string& directory) {
      return measure_own_files(directory, keys);
    });
    const auto keyed = work.measured("keys of RocksDB", [&](const std::string& directory) {
      return measure_keyed_files(directory, keys);
    });
    if (!own || !keyed) continue;
    ours.push_back(*own);
    peer.push_back(*keyed);
  }
  struct Question {
    const char* name;
    double FileFigures::*figure;
    double scale;
    bool less;  ///< is better
  };
  const std::array<Question, 4> questions{{
      {"files: CPU of draining (ns a mutation)", &FileFigures::drain_ns, 1, true},
      {"files: bytes of a live record", &FileFigures::kept, 1, true},
      {"files: open and read (M records/s)", &FileFigures::read, 1e6, false},
      {"files: CPU of removing what has ended (ns a record)", &FileFigures::remove_ns, 1, true},
  }};
  for (const Question& question : questions) {
    const auto of = [&](const std::vector<FileFigures>& rounds) {
      return each(rounds,
                  [&](const FileFigures& f) { return f.*question.figure / question.scale; });
    };
    work.report().rows.push_back(row_of(question.name, {.ours = of(ours), .peer = of(peer)},
                                        "as keys of RocksDB",
                                        question.less ? ratio_at_most(1) : ratio_at_least(1)));
  }
  const auto left = [](const std::vector<FileFigures>& rounds) {
    return figure(median(each(rounds, [](const FileFigures& f) { return f.left; })));
  };
  work.note("files: bytes left of an ended record, here; as keys", left(ours) + "; " + left(peer));
}

}  // namespace semel::bench
