// Column families and batches of every kind, for joined commits.
//
//   plain     bytes in order                       merged    has the operator below
//   turned    bytes in reverse order               stamped   has timestamps in its keys
//   tables    has tables of another form           dropped   is dropped once the storage is open
#pragma once

#include <rocksdb/comparator.h>
#include <rocksdb/db.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <rocksdb/wide_columns.h>
#include <rocksdb/write_batch.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace semel::tests {

/// Appends; does not take the operand "bad", and none on a value of more than 64 bytes.
class PickyAppend final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice& /*key*/, const rocksdb::Slice* value,
             const rocksdb::Slice& operand, std::string* merged,
             rocksdb::Logger* /*logger*/) const override {
    if (operand == "bad" || operand == "worse") return false;
    *merged = (value != nullptr ? value->ToString() : "") + operand.ToString();
    return true;
  }
  [[nodiscard]] const char* Name() const override { return "tests.PickyAppend"; }
};

/// Bytes, and behind each key a timestamp of 8 bytes.
class Stamped final : public rocksdb::Comparator {
 public:
  Stamped() : Comparator(8) {}
  using Slice = rocksdb::Slice;
  [[nodiscard]] const char* Name() const override { return "tests.Stamped"; }
  [[nodiscard]] int Compare(const Slice& a, const Slice& b) const override {
    const int keys = CompareWithoutTimestamp(a, true, b, true);
    return keys != 0 ? keys : -stamp(a).compare(stamp(b));
  }
  [[nodiscard]] int CompareWithoutTimestamp(const Slice& a, bool a_has, const Slice& b,
                                            bool b_has) const override {
    return Slice{a.data(), a.size() - (a_has ? 8 : 0)}.compare(
        Slice{b.data(), b.size() - (b_has ? 8 : 0)});
  }
  [[nodiscard]] int CompareTimestamp(const Slice& a, const Slice& b) const override {
    return a.compare(b);
  }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}

 private:
  static Slice stamp(const Slice& key) { return {key.data() + key.size() - 8, 8}; }
};

[[nodiscard]] inline std::vector<rocksdb::ColumnFamilyDescriptor> families_of_effects() {
  static const Stamped stamped;
  rocksdb::ColumnFamilyOptions merged_options;
  merged_options.merge_operator = std::make_shared<PickyAppend>();
  rocksdb::ColumnFamilyOptions turned_options;
  turned_options.comparator = rocksdb::ReverseBytewiseComparator();
  rocksdb::ColumnFamilyOptions stamped_options;
  stamped_options.comparator = &stamped;
  rocksdb::ColumnFamilyOptions tables_options;
  tables_options.table_factory.reset(rocksdb::NewPlainTableFactory());
  tables_options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(1));
  return {{"plain", {}},
          {"merged", merged_options},
          {"turned", turned_options},
          {"stamped", stamped_options},
          {"tables", tables_options},
          {"dropped", {}}};
}

/// Batches drawn at random among all that a WriteBatch can hold.
class RandomEffects {
 public:
  /// A family by its name.
  using FamilyOf = std::function<rocksdb::ColumnFamilyHandle*(const char*)>;

  /// Now and then a key has `long_key_bytes`.
  explicit RandomEffects(std::uint64_t seed, std::size_t long_key_bytes = 1'000'000)
      : random_(seed), long_key_bytes_(long_key_bytes) {}

  /// Adds to `batch`. Of what is there already only the count may become wrong.
  void fill(const FamilyOf& of, rocksdb::WriteBatch& batch) {
    const std::size_t before = batch.GetDataSize();
    const std::uint32_t entries = 1 + pick(4);
    for (std::uint32_t i = 0; i < entries; ++i) add(of, batch);
    if (pick(6) != 0) return;
    std::string bytes = batch.Data();
    const std::uint32_t flips = 1 + pick(3);
    for (std::uint32_t i = 0; i < flips; ++i) {
      const std::size_t at = before + pick(static_cast<std::uint32_t>(bytes.size() - before) + 1);
      bytes[at < bytes.size() ? at : 8] = static_cast<char>(pick(256));
    }
    batch = rocksdb::WriteBatch{bytes};
  }

 private:
  std::uint32_t pick(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }
  std::string key() {
    static const char* const keys[] = {"", "a", "b", "c", "z", "\xff"};
    return pick(40) == 0 ? std::string(long_key_bytes_, 'k') : keys[pick(6)];
  }
  std::string value() {
    static const char* const values[] = {"", "1", "bad", "worse", "longer than a word"};
    return values[pick(5)];
  }
  /// What cannot even be added is left out.
  void add(const FamilyOf& of, rocksdb::WriteBatch& batch) {
    static const char* const names[] = {"plain",   "merged", "turned",
                                        "stamped", "tables", "dropped"};
    // Mostly those that take most: a refusal of the others shows little.
    rocksdb::ColumnFamilyHandle* const family = of(names[pick(3) != 0 ? pick(3) : pick(6)]);
    rocksdb::Status added;
    switch (pick(10)) {
      case 0:
        added = batch.PutEntity(family, key(), {{"", value()}, {"column", value()}});
        break;
      case 1:
        added = batch.Merge(family, key(), value());
        break;
      case 2:
        added = batch.Delete(family, key());
        break;
      case 3:
        added = batch.SingleDelete(family, key());
        break;
      case 4:
        added = batch.DeleteRange(family, key(), key());
        break;
      case 5:
        added = batch.PutLogData(value());
        break;
      case 6:
        added = batch.Merge(of("merged"), key(), value());
        break;
      default:
        added = batch.Put(family, key(), value());
        break;
    }
    static_cast<void>(added);
  }

  std::mt19937_64 random_;
  const std::size_t long_key_bytes_;
};

}  // namespace semel::tests
