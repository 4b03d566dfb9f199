#include "storage/archive/rocks_log.hpp"

#include <rocksdb/comparator.h>
#include <rocksdb/table.h>

#include <utility>

#include "storage/archive/accepting_handler.hpp"

namespace semel::storage {
namespace {

/// Finds what RocksDB refuses in a batch of its log. Families that are gone are skipped.
class RecordCheck final : public AcceptingHandler {
 public:
  using Families = std::map<std::uint32_t, LogCheck::Family>;

  RecordCheck(const Families& families, std::uint64_t log) noexcept
      : families_(families), log_(log) {}

  RocksStatus MergeCF(std::uint32_t id, const Slice&, const Slice&) override {
    const LogCheck::Family* const family = find(id);
    if (family != nullptr && !family->merges)
      refuse(*family, "Merge: the column family '" + family->name + "' has no merge operator");
    return RocksStatus::OK();
  }
  RocksStatus DeleteRangeCF(std::uint32_t id, const Slice& from, const Slice& to) override {
    const LogCheck::Family* const family = find(id);
    if (family == nullptr) return RocksStatus::OK();
    if (!family->has_ranges)
      refuse(*family,
             "DeleteRange: the tables of the column family '" + family->name + "' have no ranges");
    if (family->order != nullptr &&
        family->order->CompareWithoutTimestamp(from, false, to, false) > 0)
      refuse(*family, "DeleteRange in the column family '" + family->name +
                          "': its end is before its begin");
    return RocksStatus::OK();
  }

  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  [[nodiscard]] const std::string& family() const noexcept { return family_; }

 private:
  [[nodiscard]] const LogCheck::Family* find(std::uint32_t id) const {
    const auto found = families_.find(id);
    return found == families_.end() || log_ < found->second.log ? nullptr : &found->second;
  }
  void refuse(const LogCheck::Family& family, std::string why) {
    if (!why_.empty()) return;
    why_ = std::move(why);
    family_ = family.name;
  }

  const Families& families_;
  const std::uint64_t log_;
  std::string why_;
  std::string family_;
};

std::uint64_t sequence_of(const std::string& batch) noexcept {
  std::uint64_t sequence = 0;
  for (std::size_t i = 8; i-- > 0;) sequence = sequence << 8 | static_cast<unsigned char>(batch[i]);
  return sequence;
}

}  // namespace

std::string RefusedRecord::text() const {
  return "a record is refused by RocksDB (numbers " + std::to_string(first) + " to " +
         std::to_string(first + (count == 0 ? 0 : count - 1)) + "): " + why;
}

LogCheck::LogCheck(Refused refused, const std::vector<rocksdb::ColumnFamilyDescriptor>& families,
                   const std::map<std::string, FamilyForm>& forms)
    : mode_(refused) {
  for (const rocksdb::ColumnFamilyDescriptor& family : families) {
    const auto form = forms.find(family.name);
    const bool is_known = form == forms.end() || form->second.has_known_order();
    families_.push_back({family.name, family.options.merge_operator != nullptr,
                         family.options.table_factory->IsDeleteRangeSupported(),
                         is_known ? family.options.comparator : nullptr, 0});
  }
}

void LogCheck::ColumnFamilyLogNumberMap(const std::map<std::uint32_t, std::uint64_t>& logs,
                                        const std::map<std::string, std::uint32_t>& ids) {
  for (const Family& family : families_) {
    const auto id = ids.find(family.name);
    if (id == ids.end()) continue;
    const auto log = logs.find(id->second);
    Family& known = by_id_[id->second] = family;
    known.log = log == logs.end() ? 0 : log->second;
  }
}

rocksdb::WalFilter::WalProcessingOption LogCheck::LogRecordFound(unsigned long long log,
                                                                 const std::string& file,
                                                                 const rocksdb::WriteBatch& batch,
                                                                 rocksdb::WriteBatch* /*changed*/,
                                                                 bool* /*is_changed*/) {
  RecordCheck check{by_id_, log};
  const rocksdb::Status read = batch.Iterate(&check);
  if (read.ok() && check.why().empty()) return WalProcessingOption::kContinueProcessing;
  if (records_.size() < refused_max) {
    records_.push_back({file, sequence_of(batch.Data()), batch.Count(), batch.GetDataSize(),
                        read.ok() ? check.why() : read.ToString(), check.family()});
  }
  return mode_ == Refused::left_out ? WalProcessingOption::kIgnoreCurrentRecord
                                    : WalProcessingOption::kContinueProcessing;
}

}  // namespace semel::storage
