// Merges the operands of a batch before it is written. RocksDB merges when it reads a key or writes
// it to a file: it accepts an operand that the operator refuses, and the next open fails. The trial
// does not cover concurrent writers of the key: they may change the value that the operand is
// merged with.
#pragma once

#include <rocksdb/db.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/joint/effect_families.hpp"

namespace semel::storage {

class MergeTrial {
 public:
  using Slice = rocksdb::Slice;
  using Family = EffectFamilies::Family;

  explicit MergeTrial(rocksdb::DB& database) noexcept : database_(database) {}

  // The entries of a batch in order, of families with a merge operator.
  void put(const Family& family, const Slice& key, const Slice& value);
  void erase(const Family& family, const Slice& key);
  void erase_range(const Family& family, const Slice& from, const Slice& to);
  /// Why it cannot be merged; empty: it can.
  [[nodiscard]] std::string merge(const Family& family, const Slice& key, const Slice& operand);

 private:
  using Key = std::pair<std::uint32_t, std::string>;
  using Value = std::optional<std::string>;  // none: there is none
  struct Range {
    std::uint32_t family;
    std::string from;
    std::string to;
  };
  /// What the key holds before its next entry. Errors: why that is not known.
  [[nodiscard]] std::string look(const Family& family, const Slice& key, Value& value) const;

  rocksdb::DB& database_;
  std::map<Key, Value> values_;  // after the entries so far
  std::vector<Range> erased_;    // of keys that are not in values_
};

}  // namespace semel::storage
