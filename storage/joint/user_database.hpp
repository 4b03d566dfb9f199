// The database as its user has it: RocksDB's, and it notes which families he drops. RocksDB does
// not tell that of a family: a write to it goes to RocksDB's log, and is refused then.
#pragma once

#include <rocksdb/stats_history.h>
#include <rocksdb/utilities/stackable_db.h>

#include <memory>
#include <vector>

#include "storage/joint/effect_families.hpp"
#include "storage/joint/joined_gate.hpp"

namespace semel::storage {

class UserDatabase final : public rocksdb::StackableDB {
 public:
  /// All three outlive it.
  UserDatabase(rocksdb::DB& database, EffectFamilies& families, JoinedGate& gate)
      : StackableDB(std::shared_ptr<rocksdb::DB>{&database, [](rocksdb::DB*) {}}),
        families_(families),
        gate_(gate) {}

  rocksdb::Status DropColumnFamily(rocksdb::ColumnFamilyHandle* family) override {
    return DropColumnFamilies({family});
  }
  /// Blocks for joined commits under way.
  rocksdb::Status DropColumnFamilies(
      const std::vector<rocksdb::ColumnFamilyHandle*>& families) override {
    const JoinedGate::Closed closed{gate_};
    for (const rocksdb::ColumnFamilyHandle* family : families) {
      if (families_.is_own(family->GetID()))
        return rocksdb::Status::InvalidArgument(family->GetName(), "belongs to Semel");
    }
    // On an error some may be dropped: then they are not written to before the next open.
    for (const rocksdb::ColumnFamilyHandle* family : families) {
      families_.set_dropped(family->GetID());
    }
    return StackableDB::DropColumnFamilies(families);
  }

  // RocksDB 7.8 does not pass these on.
  void GetAllColumnFamilyMetaData(std::vector<rocksdb::ColumnFamilyMetaData>* metadata) override {
    db_->GetAllColumnFamilyMetaData(metadata);
  }
  rocksdb::Status GetStatsHistory(
      std::uint64_t from, std::uint64_t to,
      std::unique_ptr<rocksdb::StatsHistoryIterator>* iterator) override {
    return db_->GetStatsHistory(from, to, iterator);
  }
  rocksdb::Status Resume() override { return db_->Resume(); }

 private:
  EffectFamilies& families_;
  JoinedGate& gate_;
};

}  // namespace semel::storage
