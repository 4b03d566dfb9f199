// A cold store in a directory, and engines on it.
#pragma once

#include <rocksdb/db.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/engine_host.hpp"
#include "semel/semel.hpp"
#include "storage/cold/cold_format.hpp"
#include "storage/cold/cold_store.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {

/// In memory, for thousands of spills sync several times each.
inline constexpr auto cold_medium = Directory::Medium::memory;

/// A database with a cold store in it, opened by the test itself.
struct ColdDatabase {
  explicit ColdDatabase(const Directory& directory, rocksdb::Env* env = nullptr,
                        unsigned filter_bits = storage::cold_filter_bits_default) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    options.write_buffer_size = std::size_t{1} << 20;  // the log is allocated ahead by its size
    if (env != nullptr) options.env = env;
    constexpr std::size_t cache_bytes = std::size_t{64} << 10;
    const std::vector<rocksdb::ColumnFamilyDescriptor> wanted{
        {rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions{options}},
        {storage::cold_family, storage::cold_family_options(cache_bytes)}};
    rocksdb::DB* raw = nullptr;
    const auto status =
        rocksdb::DB::Open(options, directory.path() + "/db", wanted, &families, &raw);
    if (!status.ok()) FAIL(status.ToString());
    database.reset(raw);
    auto opened = storage::RocksColdStore::open({.database = raw,
                                                 .family = families[1],
                                                 .durable_clock = storage::DurableClock{0},
                                                 .filter_bits = filter_bits,
                                                 .cache_bytes = cache_bytes,
                                                 .directory = raw->GetName()});
    if (!opened) FAIL(opened.error().message());
    store = *std::move(opened);
  }
  ~ColdDatabase() {
    store.reset();
    for (rocksdb::ColumnFamilyHandle* family : families) {
      static_cast<void>(
          database->DestroyColumnFamilyHandle(family));  // cannot fail for an open one
    }
  }
  ColdDatabase(const ColdDatabase&) = delete;
  ColdDatabase& operator=(const ColdDatabase&) = delete;

  std::unique_ptr<rocksdb::DB> database;
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  std::unique_ptr<ColdStore> store;
};

/// A journal that forgets what a spill lets it forget.
class TrimmedJournal final : public Journal {
 public:
  [[nodiscard]] Ticket append(std::span<const Mutation> group) override {
    return kept_.append(group);
  }
  [[nodiscard]] Status wait(Ticket, Durability) override { return Done{}; }
  [[nodiscard]] Ticket newest() const override { return kept_.newest(); }
  [[nodiscard]] bool wants_spills() const noexcept override { return true; }
  void spilled(Ticket cut, Ticket, const ColdMark&) override { cut_ = cut; }

  [[nodiscard]] Ticket cut() const noexcept { return cut_; }
  void replay(const std::function<void(const Mutation&)>& visit) const {
    kept_.replay([&](Ticket ticket, const Mutation& mutation) {
      if (ticket > cut_ || mutation.type == Mutation::Type::db_map) visit(mutation);
    });
  }

 private:
  MemoryJournal kept_;
  Ticket cut_ = 0;
};

/// One process of an engine with a cold store and a journal in memory.
struct ColdLife {
  ColdLife(const Directory& directory, ManualClock& clock, Journal* journal = nullptr,
           Options options = {}, rocksdb::Env* env = nullptr,
           unsigned filter_bits = storage::cold_filter_bits_default)
      : cold(directory, env, filter_bits) {
    options.clock = &clock;
    options.journal = journal;
    options.cold = cold.store.get();
    options.spill_ttl_min = Millis{0};
    options.memory_bytes = std::size_t{16} << 20;
    auto opened = Engine::open(options);
    if (!opened) FAIL(opened.error().message());
    engine = *std::move(opened);
  }
  SpillReport spill() {
    auto done = engine->host().spill();
    if (!done) FAIL(done.error().message());
    return *done;
  }
  [[nodiscard]] std::string read(Bytes key, std::uint8_t db = 0) {
    return engine->store(db).get(key).value().value_or("<none>");
  }
  [[nodiscard]] std::string broken() {
    std::string all;
    for (const std::string& rule : engine->host().check_invariants()) all.append(rule).append("\n");
    return all;
  }

  ColdDatabase cold;
  std::unique_ptr<Engine> engine;  // ends first
};

}  // namespace semel::tests
