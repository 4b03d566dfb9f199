#include "storage/joint/merge_trial.hpp"

#include <rocksdb/comparator.h>
#include <rocksdb/iterator.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/wide_columns.h>

#include <algorithm>
#include <memory>

namespace semel::storage {
namespace {

bool is_within(const rocksdb::Comparator& order, const rocksdb::Slice& key,
               const rocksdb::Slice& from, const rocksdb::Slice& to) {
  return order.Compare(from, key) <= 0 && order.Compare(key, to) < 0;
}

/// False: the operator does not take it.
bool merge_one(const rocksdb::MergeOperator& merge, const rocksdb::Slice& key,
               const rocksdb::Slice& operand, std::optional<std::string>& value) {
  const rocksdb::Slice before = value ? rocksdb::Slice{*value} : rocksdb::Slice{};
  const std::vector<rocksdb::Slice> operands{operand};
  std::string merged;
  rocksdb::Slice same{nullptr, 0};
  rocksdb::MergeOperator::MergeOperationOutput out{merged, same};
  const rocksdb::MergeOperator::MergeOperationInput in{key, value ? &before : nullptr, operands,
                                                       nullptr};
  if (!merge.FullMergeV2(in, &out)) return false;
  value = same.data() != nullptr ? same.ToString() : merged;
  return true;
}

}  // namespace

void MergeTrial::put(const Family& family, const Slice& key, const Slice& value) {
  values_[{family.handle->GetID(), key.ToString()}] = value.ToString();
}

void MergeTrial::erase(const Family& family, const Slice& key) {
  values_[{family.handle->GetID(), key.ToString()}] = std::nullopt;
}

void MergeTrial::erase_range(const Family& family, const Slice& from, const Slice& to) {
  const std::uint32_t id = family.handle->GetID();
  for (auto& [key, value] : values_) {
    if (key.first == id && is_within(*family.handle->GetComparator(), key.second, from, to)) {
      value.reset();
    }
  }
  erased_.push_back({id, from.ToString(), to.ToString()});
}

std::string MergeTrial::look(const Family& family, const Slice& key, Value& value) const {
  const std::uint32_t id = family.handle->GetID();
  value.reset();
  const bool is_erased = std::any_of(erased_.begin(), erased_.end(), [&](const Range& range) {
    return range.family == id &&
           is_within(*family.handle->GetComparator(), key, range.from, range.to);
  });
  if (is_erased) return {};
  // Not by GetEntity(): in RocksDB 7.8 it ends the process at a key that was merged.
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> at{database_.NewIterator(options, family.handle)};
  at->Seek(key);
  if (!at->status().ok())
    return "what it is merged with cannot be read: " + at->status().ToString();
  if (!at->Valid() || at->key() != key) return {};
  const rocksdb::WideColumns& columns = at->columns();
  if (columns.size() != 1 || columns.front().name() != rocksdb::kDefaultWideColumnName)
    return "the key has wide columns, which cannot be merged";
  value = at->value().ToString();
  return {};
}

std::string MergeTrial::merge(const Family& family, const Slice& key, const Slice& operand) {
  const auto [at, is_new] =
      values_.try_emplace(Key{family.handle->GetID(), key.ToString()}, std::nullopt);
  if (is_new) {
    if (const std::string why = look(family, key, at->second); !why.empty()) return why;
  }
  const std::string name = family.merge_operator->Name();
  try {
    if (merge_one(*family.merge_operator, key, operand, at->second)) return {};
    return "the merge operator " + name + " does not take it";
  } catch (...) {  // it is the user's
    return "the merge operator " + name + " threw an exception";
  }
}

}  // namespace semel::storage
