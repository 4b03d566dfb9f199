#include "storage/archive/family_forms.hpp"

#include <rocksdb/comparator.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "storage/log/disk.hpp"

namespace semel::storage {
namespace {

/// Stands for one that is not here.
class NamedOperator final : public rocksdb::MergeOperator {
 public:
  explicit NamedOperator(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] const char* Name() const override { return name_.c_str(); }
  bool FullMergeV2(const MergeOperationInput& /*in*/,
                   MergeOperationOutput* /*out*/) const override {
    return false;
  }

 private:
  const std::string name_;
};

class NamedComparator final : public rocksdb::Comparator {
 public:
  explicit NamedComparator(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] const char* Name() const override { return name_.c_str(); }
  [[nodiscard]] int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override {
    return a.compare(b);
  }
  void FindShortestSeparator(std::string*, const rocksdb::Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}

 private:
  const std::string name_;
};

const rocksdb::Comparator* known_order(const std::string& name) noexcept {
  for (const rocksdb::Comparator* order :
       {rocksdb::BytewiseComparator(), rocksdb::ReverseBytewiseComparator()}) {
    if (name == order->Name()) return order;
  }
  return nullptr;
}

/// Comparators are named by raw pointers that live as long as the process.
const rocksdb::Comparator* order_of(const std::string& name) {
  if (const rocksdb::Comparator* known = known_order(name)) return known;
  static std::map<std::string, std::unique_ptr<NamedComparator>> made;
  static base::Mutex mutex;
  const base::MutexLock lock{mutex};
  std::unique_ptr<NamedComparator>& own = made[name];
  if (own == nullptr) own = std::make_unique<NamedComparator>(name);
  return own.get();
}

/// Tables of RocksDB's other forms, to be read; null: block-based ones, or of a form of the user's.
rocksdb::TableFactory* other_tables(const std::string& form) {
  if (form == rocksdb::TableFactory::kPlainTableName()) {
    rocksdb::PlainTableOptions scanned;  // the prefixes that they have an index of are not known
    scanned.full_scan_mode = true;
    return rocksdb::NewPlainTableFactory(scanned);
  }
  return form == rocksdb::TableFactory::kCuckooTableName() ? rocksdb::NewCuckooTableFactory()
                                                           : nullptr;
}

/// `name`, `{id=name;more}`, or nullptr.
std::string name_in(std::string value) {
  if (value == "nullptr") return {};
  if (const std::size_t id = value.find("id="); value.starts_with('{') && id != std::string::npos) {
    value = value.substr(id + 3);
    value.resize(std::min(value.find_first_of(";}"), value.size()));
  }
  return value;
}

std::string newest_options(const std::string& path) {
  const auto names = list_directory(path);
  std::string newest;
  for (const std::string& name : names ? *names : std::vector<std::string>{}) {
    const bool is_one = name.starts_with("OPTIONS-") && !name.ends_with(".dbtmp");
    if (is_one && (name.size() > newest.size() || (name.size() == newest.size() && name > newest)))
      newest = name;
  }
  return newest.empty() ? newest : path + "/" + newest;
}

}  // namespace

bool FamilyForm::has_known_order() const noexcept {
  return comparator.empty() || known_order(comparator) != nullptr;
}

bool FamilyForm::has_block_tables() const noexcept {
  return table.empty() || table == rocksdb::TableFactory::kBlockBasedTableName();
}

std::map<std::string, FamilyForm> read_family_forms(const std::string& path) {
  constexpr std::string_view section = "[CFOptions \"";
  std::map<std::string, FamilyForm> forms;
  std::ifstream file{newest_options(path)};
  FamilyForm* form = nullptr;
  for (std::string line; std::getline(file, line);) {
    line.erase(0, std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with('[')) {
      form = nullptr;
      if (line.starts_with(section) && line.ends_with("\"]"))
        form = &forms[line.substr(section.size(), line.size() - section.size() - 2)];
      continue;
    }
    const std::size_t equals = line.find('=');
    if (form == nullptr || equals == std::string::npos) continue;
    const std::string key = line.substr(0, equals);
    if (key == "comparator") form->comparator = name_in(line.substr(equals + 1));
    if (key == "merge_operator") form->merge_operator = name_in(line.substr(equals + 1));
    if (key == "table_factory") form->table = name_in(line.substr(equals + 1));
  }
  return forms;
}

rocksdb::ColumnFamilyOptions options_for(const FamilyForm& form,
                                         rocksdb::ColumnFamilyOptions options) {
  if (!form.comparator.empty()) options.comparator = order_of(form.comparator);
  if (!form.merge_operator.empty())
    options.merge_operator = std::make_shared<NamedOperator>(form.merge_operator);
  if (rocksdb::TableFactory* const tables = other_tables(form.table))
    options.table_factory.reset(tables);
  return options;
}

}  // namespace semel::storage
