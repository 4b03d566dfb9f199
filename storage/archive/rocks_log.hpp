// RocksDB's own log, as RocksDB reads it when it is opened.
//
// RocksDB writes a record to its log first. What it refuses then stays there: a merge in a family
// without a merge operator, a range whose end is before its begin. Each open would fail at it, so
// it is found, named, and left out by a repair.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/wal_filter.h>
#include <rocksdb/write_batch.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "storage/archive/family_forms.hpp"

namespace semel::storage {

/// A record that RocksDB refuses when it reads it.
struct RefusedRecord {
  std::string file;
  std::uint64_t first = 0;  ///< RocksDB's number of its first change
  std::uint64_t count = 0;  ///< of its changes
  std::uint64_t bytes = 0;
  std::string why;
  std::string family;  ///< whose entry it is about; empty: that of none
  [[nodiscard]] std::string text() const;
};

/// Called by RocksDB while it reads its log. One thread.
class LogCheck final : public rocksdb::WalFilter {
 public:
  static constexpr std::size_t refused_max = 1'000;
  enum class Refused : std::uint8_t { stays, left_out };

  /// `families`: as the database is opened. Of a comparator that is not here (`forms`) the order is
  /// not known.
  LogCheck(Refused refused, const std::vector<rocksdb::ColumnFamilyDescriptor>& families,
           const std::map<std::string, FamilyForm>& forms = {});
  /// At most refused_max.
  [[nodiscard]] const std::vector<RefusedRecord>& refused() const noexcept { return records_; }

  void ColumnFamilyLogNumberMap(const std::map<std::uint32_t, std::uint64_t>& logs,
                                const std::map<std::string, std::uint32_t>& ids) override;
  WalProcessingOption LogRecordFound(unsigned long long log, const std::string& file,
                                     const rocksdb::WriteBatch& batch, rocksdb::WriteBatch* changed,
                                     bool* is_changed) override;
  [[nodiscard]] const char* Name() const override { return "Semel"; }

  struct Family {
    std::string name;
    bool merges = false;
    bool has_ranges = true;
    const rocksdb::Comparator* order = nullptr;  ///< null: not known
    std::uint64_t log = 0;                       ///< what older logs have is in files
  };

 private:
  const Refused mode_;
  std::vector<Family> families_;
  std::map<std::uint32_t, Family> by_id_;
  std::vector<RefusedRecord> records_;
};

}  // namespace semel::storage
