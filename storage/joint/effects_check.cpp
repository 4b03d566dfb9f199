#include "storage/joint/effects_check.hpp"

#include <rocksdb/comparator.h>
#include <rocksdb/wide_columns.h>

#include <map>
#include <string>

#include "semel/rocksdb.hpp"
#include "storage/archive/accepting_handler.hpp"
#include "storage/joint/merge_trial.hpp"

namespace semel::storage {
namespace {

/// Whether there is a Merge. WriteBatch::HasMerge() asks a handler that refuses marks.
class MergeSearch final : public AcceptingHandler {
 public:
  [[nodiscard]] bool has_found() const noexcept { return has_found_; }

  RocksStatus MergeCF(std::uint32_t, const Slice&, const Slice&) override {
    has_found_ = true;
    return {};
  }
  bool Continue() override { return !has_found_; }

 private:
  bool has_found_ = false;
};

class EffectsCheck final : public rocksdb::WriteBatch::Handler {
 public:
  using Slice = rocksdb::Slice;
  using RocksStatus = rocksdb::Status;

  EffectsCheck(rocksdb::DB& database, const EffectFamilies& families, bool merges) noexcept
      : families_(families), trial_(database), merges_(merges) {}

  RocksStatus PutCF(std::uint32_t id, const Slice& key, const Slice& value) override {
    const RocksStatus known = begin("Put", id);
    if (known.ok() && tries()) trial_.put(*family_, key, value);
    return known;
  }
  RocksStatus PutEntityCF(std::uint32_t id, const Slice&, const Slice& entity) override {
    const RocksStatus known = begin("PutEntity", id);
    if (!known.ok()) return known;
    if (family_->merge_operator != nullptr)
      return refused("the column family '" + family_->handle->GetName() +
                     "' has a merge operator, and wide columns cannot be merged");
    // RocksDB stores any bytes, and every read of the key would fail.
    rocksdb::PinnableWideColumns columns;
    const RocksStatus read = columns.SetWideColumnValue(entity);
    return read.ok() ? known : refused("its wide columns cannot be read: " + read.ToString());
  }
  RocksStatus DeleteCF(std::uint32_t id, const Slice& key) override {
    const RocksStatus known = begin("Delete", id);
    if (known.ok() && tries()) trial_.erase(*family_, key);
    return known;
  }
  RocksStatus SingleDeleteCF(std::uint32_t id, const Slice& key) override {
    const RocksStatus known = begin("SingleDelete", id);
    if (known.ok() && tries()) trial_.erase(*family_, key);
    return known;
  }
  RocksStatus DeleteRangeCF(std::uint32_t id, const Slice& from, const Slice& to) override {
    const RocksStatus known = begin("DeleteRange", id);
    if (!known.ok()) return known;
    // Of an empty range the replay of the log takes no number, but the write does: as the last
    // entry of the log it would look like a lost end.
    if (family_->handle->GetComparator()->Compare(from, to) >= 0)
      return refused("its end '" + to.ToString() + "' is not after its begin '" + from.ToString() +
                     "'");
    if (tries()) trial_.erase_range(*family_, from, to);
    return known;
  }
  RocksStatus MergeCF(std::uint32_t id, const Slice& key, const Slice& operand) override {
    const RocksStatus known = begin("Merge", id);
    if (!known.ok()) return known;
    if (family_->merge_operator == nullptr)
      return refused("the column family '" + family_->handle->GetName() +
                     "' has no merge operator");
    const std::string why = trial_.merge(*family_, key, operand);
    return why.empty() ? known : refused(why);
  }
  [[nodiscard]] const RocksStatus& marked() const noexcept { return marked_; }
  /// Is in RocksDB's log alone.
  void LogData(const Slice& /*blob*/) override { ++entry_; }

  RocksStatus PutBlobIndexCF(std::uint32_t, const Slice&, const Slice&) override {
    return marks("an index into a blob file");
  }
  RocksStatus MarkBeginPrepare(bool) override { return marks("a mark of a transaction"); }
  RocksStatus MarkEndPrepare(const Slice&) override { return marks("a mark of a transaction"); }
  RocksStatus MarkNoop(bool) override { return marks("a mark of a transaction"); }
  RocksStatus MarkRollback(const Slice&) override { return marks("a mark of a transaction"); }
  RocksStatus MarkCommit(const Slice&) override { return marks("a mark of a transaction"); }
  RocksStatus MarkCommitWithTimestamp(const Slice&, const Slice&) override {
    return marks("a mark of a transaction");
  }

 private:
  [[nodiscard]] bool tries() const noexcept {
    return merges_ && family_->merge_operator != nullptr;
  }
  [[nodiscard]] RocksStatus refused(const std::string& why) const {
    return RocksStatus::InvalidArgument("entry " + std::to_string(entry_) + ", " + what_, why);
  }
  /// RocksDB with assertions ends the process if a handler refuses one of these.
  [[nodiscard]] RocksStatus marks(const char* what) {
    ++entry_;
    what_ = what;
    if (marked_.ok()) marked_ = refused("is no effect");
    return RocksStatus::OK();
  }
  [[nodiscard]] RocksStatus begin(const char* what, std::uint32_t id) {
    ++entry_;
    what_ = what;
    const auto [known, is_new] = seen_.try_emplace(id);
    if (is_new) known->second = families_.find(id);
    family_ = &known->second;
    return family_->refused.empty() ? RocksStatus::OK() : refused(family_->refused);
  }

  const EffectFamilies& families_;
  MergeTrial trial_;
  const bool merges_;
  std::map<std::uint32_t, EffectFamilies::Family> seen_;
  const EffectFamilies::Family* family_ = nullptr;
  std::uint64_t entry_ = 0;  // counts from 1
  const char* what_ = "";
  RocksStatus marked_;
};

}  // namespace

Status check_effects(rocksdb::DB& database, const EffectFamilies& families,
                     const rocksdb::WriteBatch& effects) {
  const auto bad = [](const std::string& what) {
    return Error{ErrorCode::bad_option, "effects: " + what};
  };
  if (effects.GetDataSize() > joined_effects_bytes_max) {
    return bad(std::to_string(effects.GetDataSize()) + " bytes, allowed " +
               std::to_string(joined_effects_bytes_max));
  }
  if (const rocksdb::Status same = effects.VerifyChecksum(); !same.ok()) {
    return bad(same.ToString());
  }
  MergeSearch merges;
  // Its status is that of the check, which reads the same entries.
  static_cast<void>(effects.Iterate(&merges));
  EffectsCheck check{database, families, merges.has_found()};
  rocksdb::Status status = effects.Iterate(&check);
  if (status.ok()) status = check.marked();
  return status.ok() ? Status{Done{}} : bad(status.ToString());
}

}  // namespace semel::storage
