// Question: what does the disk get for each mutation, and what does it keep for each live record?
// Method:   one thread sets the same keys (16 bytes, values of 8) in ten generations at `logged`;
//           then the storage is closed, opened and recovered.
// Compare:  RocksDB alone with its log, the same keys, values and generations.
// Report:   bytes that the process brought to the disk, as the kernel counts them, for a mutation;
//           bytes of all files for a live record; mutations that recovery reads.
#include <rocksdb/db.h>
#include <rocksdb/statistics.h>

#include <fstream>
#include <memory>
#include <string>

#include "bench/storage/storage_ours.hpp"
#include "bench/storage/storage_place.hpp"
#include "bench/storage/storage_work.hpp"

namespace semel::bench {

namespace {

constexpr std::size_t key_bytes = 16;
constexpr std::uint64_t generations = 10;

struct ByteFigures {
  double written = 0;     ///< bytes a mutation, files included
  double log = 0;         ///< of them, the log as it counts itself
  double kept = 0;        ///< bytes a live record when all is closed
  double superseded = 0;  ///< share of the mutations, that no file got
  double recovered = 0;   ///< mutations that the next open reads, for a live record
};

/// Bytes that this process has made dirty or written, in pages.
double bytes_written() {
  std::ifstream io{"/proc/self/io"};
  std::string name;
  for (double bytes = 0; io >> name >> bytes;) {
    if (name == "write_bytes:") return bytes;
  }
  fail("/proc/self/io has no write_bytes");
}

Bytes short_key(const Key& key) {
  return bytes_of(key).substr(0, key_bytes);
}

ByteFigures measure_bytes(const std::string& directory, std::uint64_t keys) {
  const auto mutations = static_cast<double>(keys * generations);
  ByteFigures figures;
  const double before = bytes_written();
  {
    Ground ground{directory, Durability::logged, keys};
    ground.recover();  // nothing; from here on the storage knows the engine
    Store store = ground.engine().store();
    for (std::uint64_t at = 0; at < keys * generations; ++at) {
      const Key key = key_of(at % keys);
      const std::uint64_t value = value_of(at);
      until_taken([&] {
        const auto set =
            store.set(short_key(key), bytes_of(value), {.expiry = Expiry::in(long_ttl)});
        require(set.ok() || set.error().code == ErrorCode::refused, "a SET: an error");
        return set.ok();
      });
    }
    require(bool{ground.engine().confirm(Durability::synced)}, "what was set could not be synced");
    const StorageStats stats = ground.storage().stats();
    figures.log = static_cast<double>(stats.bytes) / mutations;
    figures.superseded = static_cast<double>(stats.mutations_superseded) / mutations;
    static_cast<void>(ground.close());
  }
  figures.written = (bytes_written() - before) / mutations;
  figures.kept = disk_use(directory).all / static_cast<double>(keys);
  Ground again{directory, Durability::memory, keys};
  figures.recovered = static_cast<double>(again.recover().mutations) / static_cast<double>(keys);
  require(again.engine().size(0) == keys, "recovery brought back another number of records");
  for (std::uint64_t i = 0; i < keys; i += 997) {
    const auto found = again.engine().store().get(short_key(key_of(i)));
    require(found.ok() && *found && number_of(**found) == value_of(keys * (generations - 1) + i),
            "recovery brought back another value");
  }
  return figures;
}

ByteFigures measure_rocksdb_bytes(const std::string& directory, std::uint64_t keys) {
  const auto mutations = static_cast<double>(keys * generations);
  ByteFigures figures;
  const double before = bytes_written();
  rocksdb::Options options;
  options.create_if_missing = true;
  options.statistics = rocksdb::CreateDBStatistics();
  rocksdb::DB* opened = nullptr;
  require(rocksdb::DB::Open(options, directory + "/rocksdb", &opened).ok(), "RocksDB: no open");
  std::unique_ptr<rocksdb::DB> database{opened};
  for (std::uint64_t at = 0; at < keys * generations; ++at) {
    const Key key = key_of(at % keys);
    const std::uint64_t value = value_of(at);
    require(database->Put({}, short_key(key), bytes_of(value)).ok(), "RocksDB: no Put");
  }
  require(database->SyncWAL().ok(), "RocksDB: no sync");
  figures.log =
      static_cast<double>(options.statistics->getTickerCount(rocksdb::WAL_FILE_BYTES)) / mutations;
  require(database->Close().ok(), "RocksDB: no close");
  database.reset();
  figures.written = (bytes_written() - before) / mutations;
  figures.kept = disk_use(directory).all / static_cast<double>(keys);
  return figures;
}

}  // namespace

void bytes_group(Work& work) {
  Context& context = work.context;
  const std::uint64_t keys = std::min<std::uint64_t>(context.options.records / 20, 500'000);
  std::vector<ByteFigures> ours;
  std::vector<ByteFigures> peer;
  for (context.round = 0; context.round < context.options.rounds; ++context.round) {
    const auto semel = work.measured("ten generations", [&](const std::string& directory) {
      return measure_bytes(directory, keys);
    });
    const auto rocks = work.measured("RocksDB, ten generations", [&](const std::string& directory) {
      return measure_rocksdb_bytes(directory, keys);
    });
    if (!semel || !rocks) continue;
    ours.push_back(*semel);
    peer.push_back(*rocks);
  }
  const auto of = [](const std::vector<ByteFigures>& rounds, double ByteFigures::*figures) {
    return each(rounds, [&](const ByteFigures& f) { return f.*figures; });
  };
  work.report().rows.push_back(
      row_of("written, a mutation of ten generations (bytes)",
             {.ours = of(ours, &ByteFigures::written), .peer = of(peer, &ByteFigures::log)},
             "RocksDB's log", ratio_at_most(1.3)));
  work.report().rows.push_back(
      row_of("disk, a live record after ten generations (bytes)",
             {.ours = of(ours, &ByteFigures::kept), .peer = of(peer, &ByteFigures::kept)},
             "RocksDB alone", ratio_at_most(1.5)));
  work.note("ten generations: log; RocksDB with its files (bytes a mutation)",
            figure(median(of(ours, &ByteFigures::log))) + "; " +
                figure(median(of(peer, &ByteFigures::written))));
  work.note("ten generations: mutations that reached no file (share)",
            figure(median(of(ours, &ByteFigures::superseded))));
  work.note("ten generations: mutations recovered for a live record",
            figure(median(of(ours, &ByteFigures::recovered))));
}

}  // namespace semel::bench
