// The column families of a database, as the effects of joined commits see them.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/merge_operator.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.hpp"

namespace semel::storage {

/// Thread-safe.
class EffectFamilies {
 public:
  struct Family {
    rocksdb::ColumnFamilyHandle* handle = nullptr;  ///< null: not known
    std::string refused;                            ///< why nothing may be written; empty: it may
    std::shared_ptr<const rocksdb::MergeOperator> merge_operator{};  ///< null: none
    bool is_own = false;                                             ///< of Semel
  };

  void add(rocksdb::ColumnFamilyHandle& family, bool is_own);
  /// From now on nothing may be written to it.
  void set_dropped(std::uint32_t id);
  [[nodiscard]] bool is_own(std::uint32_t id) const { return find(id).is_own; }
  [[nodiscard]] Family find(std::uint32_t id) const;

 private:
  mutable base::Mutex mutex_;
  std::map<std::uint32_t, Family> families_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::storage
