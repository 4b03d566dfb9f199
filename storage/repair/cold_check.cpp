#include "storage/repair/cold_check.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "storage/cold/cold_database.hpp"
#include "storage/cold/cold_format.hpp"
#include "storage/cold/cold_store.hpp"

namespace semel::storage {
namespace {

/// The file of one part, entry by entry.
class PartReader {
 public:
  void add(std::string_view key, std::string_view value) {
    constexpr std::size_t what_at = sizeof(std::uint64_t);
    const std::optional<std::uint64_t> part = cold_part_of(key);
    if (!part) return fail("a key is invalid");
    if (*part == 0) return;  // of the store as a whole
    const auto what = static_cast<ColdKey>(key[what_at]);
    if (what == ColdKey::facts) {
      Bytes counts;
      if (!decode_facts(value, DurableClock{0}, facts_, counts) || facts_.number != *part) {
        return fail("its facts cannot be read");
      }
      has_facts_ = true;
    } else if (!has_facts_ || facts_.number != *part) {
      fail("it has no facts");
    } else if (what == ColdKey::filter) {
      filter_bytes_ += value.size();
    } else {
      add_bucket(value);
    }
  }
  [[nodiscard]] bool is_part() const noexcept { return has_facts_ || !error_.empty(); }
  [[nodiscard]] const PartFacts& facts() const noexcept { return facts_; }
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  /// Empty: it is whole.
  [[nodiscard]] std::string error() const {
    if (!error_.empty() || !has_facts_) return error_;
    if (filter_bytes_ != facts_.filter_lines * ColdFilter::line_bytes) {
      return "its filter has " + std::to_string(filter_bytes_) + " bytes instead of " +
             std::to_string(facts_.filter_lines * ColdFilter::line_bytes);
    }
    if (records_ == facts_.records) return {};
    return std::to_string(records_) + " of " + std::to_string(facts_.records) +
           " records can be read";
  }

 private:
  void fail(const char* what) {
    if (error_.empty()) error_ = what;
  }
  void add_bucket(Bytes value) {
    BucketReader bucket{value};
    BucketRecord record;
    Mutation mutation;
    while (bucket.next(record)) {
      if (!decode_record(record, DurableClock{0}, mutation)) return fail("a record is invalid");
      ++records_;
    }
    if (bucket.damaged()) fail("a bucket is invalid");
  }

  PartFacts facts_;
  bool has_facts_ = false;
  std::uint64_t filter_bytes_ = 0;
  std::uint64_t records_ = 0;
  std::string error_;
};

void read_file(TableFile table, ColdReading& reading) {
  PartReader part;
  const TableReading read = read_table(
      table, [&](std::string_view key, std::string_view value) { part.add(key, value); });
  reading.bytes += table.bytes;
  reading.records += part.records();
  if (!read.status) {
    const std::uint64_t known = part.facts().records;
    StorageFinding finding{table.path, read.offset, read.status.error().detail};
    if (known != 0) finding.records_lost = known - std::min(known, part.records());
    reading.findings.push_back(std::move(finding));
  } else if (std::string error = part.error(); !error.empty()) {
    reading.findings.push_back({table.path, {}, std::move(error)});
  } else if (!check_file(table.path, table.checksum)) {
    reading.findings.push_back(
        {table.path, {}, "its bytes have another checksum than the manifest", 0, 0});
  }
}

/// The facts of parts alone, by the key of each.
void list_parts(rocksdb::DB& database, rocksdb::ColumnFamilyHandle* family,
                const std::map<std::uint64_t, TableFile>& files, ColdReading& reading) {
  for (const auto& [number, file] : files) {
    std::string bytes;
    PartFacts facts;
    Bytes counts;
    const rocksdb::Status status =
        database.Get({}, family, cold_key(number, ColdKey::facts, 0), &bytes);
    if (!status.ok() || !decode_facts(bytes, DurableClock{0}, facts, counts)) continue;
    reading.mark.generation = std::max(reading.mark.generation, facts.generation);
    reading.parts.push_back({number, facts.generation, facts.records, file.bytes, file.path});
  }
}

Status read_database(rocksdb::DB& database, rocksdb::ColumnFamilyHandle* family,
                     const std::string& path, bool is_thorough, ColdReading& reading) {
  const auto note = [&](const Error& error) {
    reading.findings.push_back({named_in(error.detail, path), {}, error.detail});
  };
  const Result<ColdDescription> is = read_cold_description(database, family);
  if (!is && is.error().code == ErrorCode::storage_newer) return is.error();
  if (!is) note(is.error());
  if (is && is->format != 0) reading.mark = {cold_id(is->seed), is->generation};
  const Result<ColdBond> bond = read_bond(database);
  if (bond) {
    reading.bond = *bond;
  } else {
    note(bond.error());
  }
  std::vector<rocksdb::LiveFileMetaData> live;
  database.GetLiveFilesMetaData(&live);
  std::map<std::uint64_t, TableFile> parts;
  for (const rocksdb::LiveFileMetaData& file : live) {
    if (file.column_family_name != cold_family) continue;
    TableFile table{path + file.name, file.column_family_name, file.size, file.num_entries, {}, {}};
    table.checksum = {file.file_checksum_func_name, file.file_checksum};
    table.is_cold = true;
    const std::uint64_t number = cold_part_of(file.smallestkey).value_or(0);
    if (number != 0) parts[number] = table;
    if (is_thorough) read_file(std::move(table), reading);
  }
  list_parts(database, family, parts, reading);
  return Done{};
}

}  // namespace

std::optional<std::string> find_cold(const std::string& directory, const std::string& named) {
  std::string path = named.empty() ? directory + "/cold" : named;
  std::error_code code;
  if (!std::filesystem::is_directory(cold_database_path(path), code)) return std::nullopt;
  return path;
}

Result<ColdReading> read_cold(const std::string& directory, bool is_thorough) {
  SEMEL_TRY(lock, DirectoryLock::acquire(directory, DirectoryLock::Missing::accept));
  ColdReading reading;
  const std::string path = cold_database_path(directory);
  const auto opened =
      ReadOnlyDatabase::open(path, rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords);
  if (!opened) {
    const std::string& what = opened.error().detail;
    reading.findings.push_back({named_in(what, path), {}, what});
    return reading;
  }
  for (rocksdb::ColumnFamilyHandle* family : (*opened)->families()) {
    if (family->GetName() != cold_family) continue;
    SEMEL_CHECK(read_database((*opened)->database(), family, path, is_thorough, reading));
    return reading;
  }
  reading.findings.push_back({path, {}, "is not the database of a cold store"});
  return reading;
}

ColdNeeds needs_of(const StorageView& view) {
  return {view.storage_id(), view.description.cold, view.description.cold_token};
}

Status check_cold(const StorageView& view, const std::string& named, ColdCheck& check,
                  const TellProgress& progress) {
  const std::optional<std::string> found = find_cold(view.directory, named);
  const ColdNeeds needs = needs_of(view);
  if (!found && named.empty() && needs.mark.id == 0) return Done{};
  check.directory = found.value_or(named.empty() ? view.directory + "/cold" : named);
  ColdReading reading;
  if (found) {
    SEMEL_TRY(read, read_cold(*found, true));
    reading = std::move(read);
  }
  check.id = reading.mark.id;
  check.generation = reading.mark.generation;
  check.parts = reading.parts.size();
  check.records = reading.records;
  check.bytes = reading.bytes;
  if (progress) progress({view.bytes_total + reading.bytes, view.bytes_total + reading.bytes});
  check.findings = std::move(reading.findings);
  // Unreadable parts are reported already.
  if (view.description.format == 0 || (found && !check.findings.empty() && check.id == 0)) {
    return Done{};
  }
  std::string why = misfit(needs, reading.mark, reading.bond);
  if (!found && why.empty()) why = "there is no cold store";
  if (!found && named.empty()) why += " here: name its directory (--cold)";
  if (!why.empty()) check.findings.push_back({check.directory, {}, std::move(why)});
  return Done{};
}

}  // namespace semel::storage
