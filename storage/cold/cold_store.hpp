// A ColdStore in a column family of RocksDB: docs/decisions/0007-window-larger-than-memory.md,
// docs/disk-format.md.
//
//   key   big-endian u64 part | u8 what | big-endian u32 index
//   part 0            what 0, index 0: format, shard count, seed; index 1: flushed versions
//   part 1 and above  what 0: its facts and counts; 1: a piece of its filter; 2: a bucket
//
// A part is one file, made by SstFileWriter and ingested, synced. Nothing is compacted.
//
// Concurrency
//   [cold_store.catalog]  release store of a new catalog by the spiller, acquire load by lookups.
//                         An old one is kept until reclaim(), which the engine calls when no lookup
//                         uses it.
//   [cold_store.reveal]   release store that makes a part visible, acquire load by find().
//   [cold_store.stamp]    release add after a part is revealed and before its records leave the
//                         table, acquire load by lookups.
//   [cold_store.flushed]  release store of a version that only grows, acquire load for each record.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/sst_file_writer.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "semel/cold.hpp"
#include "storage/archive/kept_tables.hpp"
#include "storage/archive/rocks_guard.hpp"
#include "storage/cold/cold_bucket.hpp"
#include "storage/cold/cold_parts.hpp"
#include "storage/log/disk.hpp"
#include "storage/log/durable_clock.hpp"

namespace semel::storage {

inline constexpr const char* cold_family = "cold";
inline constexpr std::size_t cold_generations_max = 64;  ///< a lookup costs a cache line in each
inline constexpr unsigned cold_filter_bits_default = 15;

/// How the column family must be opened. `cache_bytes`: of blocks in memory.
[[nodiscard]] rocksdb::ColumnFamilyOptions cold_family_options(std::size_t cache_bytes);

struct ColdSettings {
  rocksdb::DB* database;                ///< outlives the store
  rocksdb::ColumnFamilyHandle* family;  ///< opened with cold_family_options()
  DurableClock durable_clock;
  unsigned filter_bits = cold_filter_bits_default;
  std::size_t cache_bytes = 0;   ///< as given to cold_family_options(), to be charged
  KeptTables* tables = nullptr;  ///< of the database's environment, if it has them
  std::string directory{};       ///< of the database
  Disk* disk = nullptr;          ///< asked for space before a part is written; null: not asked
  RocksGuard* guard = nullptr;   ///< of who closes the database; null: its own
  /// Closes the database and opens it again. After an error it can only be read.
  std::function<Status()> reopen{};
  /// What there is after that; null: it cannot even be read.
  std::function<std::pair<rocksdb::DB*, rocksdb::ColumnFamilyHandle*>()> opened{};
  std::shared_ptr<void> owner{};  ///< if not null, closed when the store is gone
};

class RocksColdStore final : public ColdStore {
 public:
  /// Opens the store and reads its filters. Errors: storage_damaged, storage_newer, storage_failed.
  [[nodiscard]] static Result<std::unique_ptr<RocksColdStore>> open(const ColdSettings& settings);

  [[nodiscard]] std::uint64_t hash_seed() const noexcept override { return seed_; }
  [[nodiscard]] ColdMark mark() const noexcept override;
  [[nodiscard]] Status attach(unsigned shard_count, RankOf rank_of) override;
  [[nodiscard]] Version first_version() const noexcept override { return first_version_; }
  [[nodiscard]] ColdBond bond() const override;
  [[nodiscard]] Status bind(const ColdBond& bond) override;
  [[nodiscard]] Status backup(const std::string& directory,
                              const std::function<Status()>& first) override;

  [[nodiscard]] Timestamp may_hold_until(std::uint64_t rank) const noexcept override;
  [[nodiscard]] Result<bool> find(std::uint64_t rank, std::uint8_t db, Bytes key,
                                  ColdRecord& found) override;
  [[nodiscard]] std::uint64_t stamp() const noexcept override {
    return stamp_.load(std::memory_order_acquire);  // mo: acquire [cold_store.stamp]
  }
  void superseded(std::uint64_t rank, std::uint64_t number, std::uint8_t db,
                  Timestamp due) noexcept override;

  [[nodiscard]] Status begin_generation() override;
  void collect(std::uint64_t rank, const Mutation& record) override;
  [[nodiscard]] std::size_t collected_bytes() const noexcept override;
  [[nodiscard]] std::span<const ColdPlace> collected() const noexcept override { return places_; }
  [[nodiscard]] Mutation collected_record(std::size_t index) const override;
  [[nodiscard]] Status write_part(std::uint64_t first, std::uint64_t last) override;
  void reveal() override;
  void end_part() noexcept override;
  void abandon() noexcept override;
  void reclaim() noexcept override;
  [[nodiscard]] Status drop_ended(Timestamp now) override;

  void flush(std::uint8_t db, Version below) noexcept override;
  [[nodiscard]] Status keep_flushes() override;
  [[nodiscard]] std::uint64_t size(std::uint8_t db, Timestamp now) const override;

  [[nodiscard]] std::shared_ptr<const View> view() const override { return catalog(); }
  [[nodiscard]] Result<std::uint64_t> scan(
      const View& view, std::uint64_t rank, std::size_t count,
      const std::function<void(std::uint64_t, const ColdRecord&)>& visit) override;
  [[nodiscard]] std::size_t memory_bytes() const override;
  [[nodiscard]] ColdStats stats() const override;

 private:
  explicit RocksColdStore(const ColdSettings& settings)
      : settings_(settings),
        guard_(settings.guard != nullptr ? *settings.guard : own_guard_),
        database_(settings.database),
        family_(settings.family) {}

  /// Their third parts of a key; docs/disk-format.md.
  enum class StoreFacts : std::uint8_t { description = 0, flushes = 1, generation = 2 };

  struct Collected {
    std::size_t at;  // of its bytes
    std::uint64_t due;
    std::uint32_t key_bytes;
    std::uint32_t value_bytes;
    std::uint8_t head;
  };

  [[nodiscard]] std::shared_ptr<const Catalog> catalog() const {
    const base::MutexLock lock{mutex_};
    return shared_;
  }
  void publish(std::shared_ptr<const Catalog> fresh);
  [[nodiscard]] Status load_parts();
  [[nodiscard]] Status read_store_facts();
  [[nodiscard]] Result<std::shared_ptr<ColdPart>> read_part(rocksdb::Iterator& at,
                                                            std::uint64_t number);
  /// Facts of the store as a whole, synced.
  [[nodiscard]] Status put_store_facts(StoreFacts index, const std::string& bytes)
      SEMEL_REQUIRES(writes_);
  void remove_leftovers() const;
  void compact_facts() const;
  void add_part(Catalog& catalog, std::shared_ptr<ColdPart> part) const;
  [[nodiscard]] PartFacts facts_of(std::uint64_t first, std::uint64_t last) const;
  [[nodiscard]] BucketRecord record_at(std::size_t index) const noexcept;
  /// The collected records by bucket, then version.
  [[nodiscard]] std::vector<std::uint32_t> order_of(const ColdPart& part) const;
  [[nodiscard]] Status write_file(ColdPart& part, const std::string& path) SEMEL_REQUIRES(writes_);
  [[nodiscard]] Status ingest(const std::string& path, const rocksdb::ExternalSstFileInfo& info)
      SEMEL_REQUIRES(writes_);
  /// What a change of the database begins with: so many bytes are free (0: it is not asked), and
  /// after a change that failed the database is opened again. Errors: storage_failed.
  [[nodiscard]] Status be_writable(std::size_t bytes_free) SEMEL_REQUIRES(writes_);
  [[nodiscard]] Status reopen() SEMEL_REQUIRES(writes_);
  /// Parts that are in the database, by a change that failed, and not in the catalog.
  [[nodiscard]] Status delete_strangers() SEMEL_REQUIRES(writes_);
  /// `call` changes the database.
  template <class Call>
  [[nodiscard]] Status change(Call&& call) SEMEL_REQUIRES(writes_) {
    Status status = guard_.run(std::forward<Call>(call));
    if (!status) has_stopped_ = true;
    return status;
  }
  [[nodiscard]] rocksdb::Status write_buckets(rocksdb::SstFileWriter& file, const ColdPart& part);
  [[nodiscard]] Status delete_parts(std::uint64_t first, std::uint64_t last);
  [[nodiscard]] Status delete_dropped();
  [[nodiscard]] rocksdb::Status read_bucket(const ColdPart& part, std::uint64_t bucket,
                                            std::string& bytes);
  /// The part's copy of a key. False: none. Errors: storage_damaged, storage_failed.
  [[nodiscard]] Result<bool> find_in(const ColdPart& part, std::uint64_t rank, std::uint8_t db,
                                     Bytes key, ColdRecord& found);
  /// Whether all records of a part are dead because their databases were flushed.
  [[nodiscard]] bool is_flushed(const PartFacts& part) const noexcept;
  [[nodiscard]] bool is_flushed(const Mutation& record) const noexcept {
    // mo: acquire [cold_store.flushed]
    return record.version < flushed_[record.db].load(std::memory_order_acquire);
  }

  const ColdSettings settings_;
  RocksGuard own_guard_;
  RocksGuard& guard_;
  rocksdb::DB* database_;  // null: it could not be opened again yet
  rocksdb::ColumnFamilyHandle* family_;
  RankOf rank_of_;
  std::uint64_t seed_ = 0;
  std::uint32_t shard_count_ = 0;  // 0: never attached
  std::uint64_t format_ = 0;       // format on disk
  Version first_version_ = 1;
  std::array<std::atomic<Version>, limits::db_count> flushed_{};

  base::Mutex writes_;  // of the disk: a backup keeps them off
  /// A change has failed. RocksDB may take no other, and the disk may have it all the same.
  bool has_stopped_ SEMEL_GUARDED_BY(writes_) = false;
  /// Held shared by those who read the database, exclusively while it is opened again. Writers hold
  /// writes_.
  mutable base::SharedMutex opening_;
  mutable base::Mutex mutex_;
  ColdBond bond_ SEMEL_GUARDED_BY(mutex_);
  std::shared_ptr<const Catalog> shared_ SEMEL_GUARDED_BY(mutex_) = std::make_shared<Catalog>();
  std::uint64_t generation_ SEMEL_GUARDED_BY(mutex_) = 0;  // the newest that was begun
  std::vector<std::shared_ptr<const Catalog>> retired_ SEMEL_GUARDED_BY(mutex_);
  std::shared_ptr<const Catalog> abandoned_ SEMEL_GUARDED_BY(mutex_);  // retired as well
  std::atomic<const Catalog*> current_{shared_.get()};
  std::atomic<std::uint64_t> stamp_{1};

  // Used by the spiller only.
  std::uint64_t next_part_ = 1;
  std::vector<ColdPlace> places_;
  std::vector<Collected> collected_;
  std::string bytes_;
  std::shared_ptr<ColdPart> fresh_;  // written, not yet revealed
  std::shared_ptr<const Catalog> before_fresh_;
  /// Dropped generations whose files could not be deleted yet, oldest first: parts by generation.
  std::map<std::uint64_t, std::vector<std::uint64_t>> undeleted_;

  std::atomic<std::uint64_t> lookups_{0};
  std::atomic<std::uint64_t> found_{0};
  std::atomic<std::uint64_t> buckets_read_{0};
  std::atomic<std::uint64_t> read_errors_{0};
};

/// The third part of a key in the column family.
enum class ColdKey : char { facts = 0, filter = 1, bucket = 2 };
[[nodiscard]] std::string cold_key(std::uint64_t part, ColdKey what, std::uint64_t index);
/// The part of a key; none: it is no key of a cold store.
[[nodiscard]] std::optional<std::uint64_t> cold_part_of(std::string_view key) noexcept;

/// What a cold store records of itself, without its parts. Format 0: it is new.
struct ColdDescription {
  std::uint64_t format = 0;
  std::uint32_t shard_count = 0;
  std::uint64_t seed = 0;
  std::uint64_t generation = 0;  ///< the newest that was begun
};
/// Errors: storage_damaged, storage_newer, storage_failed.
[[nodiscard]] Result<ColdDescription> read_cold_description(rocksdb::DB& database,
                                                            rocksdb::ColumnFamilyHandle* family);
/// The id of a store in its mark. The seed itself stays secret.
[[nodiscard]] std::uint64_t cold_id(std::uint64_t seed) noexcept;

/// A part's facts and counts as bytes, and back.
[[nodiscard]] std::string encode_facts(const ColdPart& part, const DurableClock& durable_clock);
[[nodiscard]] bool decode_facts(Bytes bytes, const DurableClock& durable_clock, PartFacts& facts,
                                Bytes& counts);
[[nodiscard]] bool decode_counts(Bytes counts, ColdPart& part);

}  // namespace semel::storage
