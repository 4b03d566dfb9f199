#include "storage/archive/description.hpp"

#include <rocksdb/write_batch.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>

#include "base/random.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/archive/storage_keys.hpp"

namespace semel::storage {
namespace {

constexpr const char* format_key = "format";
constexpr const char* storage_key = "storage";
constexpr const char* versions_key = "versions";
constexpr const char* floor_key = "floor";
constexpr const char* anchor_key = "anchor";
constexpr const char* boot_first_key = "boot_first";
constexpr const char* incarnation_key = "incarnation";
constexpr const char* cold_mark_key = "cold";
constexpr const char* namespaces_key = "namespaces";
constexpr const char* memos_key = "memos";
constexpr std::size_t anchor_bytes_min = 24;

std::string words(std::initializer_list<std::uint64_t> values) {
  std::string bytes(values.size() * 8, '\0');
  char* to = bytes.data();
  for (const std::uint64_t value : values) {
    put_big_endian(value, to);
    to += 8;
  }
  return bytes;
}

/// `value` has at least anchor_bytes_min bytes.
Anchor anchor_of(std::string_view value) {
  return {static_cast<std::int64_t>(get_big_endian(value.data())),
          static_cast<std::int64_t>(get_big_endian(value.data() + 8)),
          static_cast<std::int64_t>(get_big_endian(value.data() + 16)),
          std::string{value.substr(anchor_bytes_min)}};
}

}  // namespace

Error unknown_format(const std::string& directory, std::uint64_t format) {
  return {format > format_version ? ErrorCode::storage_newer : ErrorCode::storage_failed,
          directory + ": format " + std::to_string(format) + ", this release knows " +
              std::to_string(format_version)};
}

Version random_version_jump() {
  constexpr Version least = Version{1} << 48;
  return least + base::random_number() % least;
}

std::uint64_t random_id() {
  std::uint64_t number = 0;
  while (number == 0) number = base::random_number();
  return number;
}

Result<Description> read_description(rocksdb::DB& database, rocksdb::ColumnFamilyHandle* family,
                                     const std::string& directory) {
  Description is;
  // Empty: the storage is new, so it has no description.
  const auto get = [&](const char* key, std::size_t bytes_min) -> Result<std::string> {
    std::string value;
    const rocksdb::Status status = database.Get({}, family, key, &value);
    if (!status.ok() && !status.IsNotFound()) return error_of(status, key);
    if (status.ok() ? value.size() >= bytes_min : is.format == 0) return value;
    return Error{ErrorCode::storage_damaged,
                 directory + "/rocksdb: the description has no valid '" + key + "'"};
  };
  SEMEL_TRY(format, get(format_key, 8));
  if (format.empty()) return is;
  is.format = get_big_endian(format.data());
  if (is.format < format_oldest || is.format > format_version) {
    return unknown_format(directory, is.format);
  }
  SEMEL_TRY(storage_id, get(storage_key, 8));
  is.storage_id = get_big_endian(storage_id.data());
  SEMEL_TRY(versions, get(versions_key, 8));
  is.versions = get_big_endian(versions.data());
  SEMEL_TRY(floor, get(floor_key, 8));
  is.floor = get_big_endian(floor.data());
  SEMEL_TRY(anchor, get(anchor_key, anchor_bytes_min));
  is.anchor = anchor_of(anchor);
  // Directories of earlier releases do not have it.
  std::string value;
  const rocksdb::Status first = database.Get({}, family, boot_first_key, &value);
  if (!first.ok() && !first.IsNotFound()) return error_of(first, boot_first_key);
  is.boot_first = first.ok() && value.size() >= 8 ? get_big_endian(value.data())
                                                  : std::numeric_limits<std::uint64_t>::max();
  const rocksdb::Status namespaces = database.Get({}, family, namespaces_key, &value);
  if (!namespaces.ok() && !namespaces.IsNotFound()) return error_of(namespaces, namespaces_key);
  is.knows_namespaces = namespaces.ok() && value.size() >= 8 && get_big_endian(value.data()) == 1;
  const rocksdb::Status memos = database.Get({}, family, memos_key, &value);
  if (!memos.ok() && !memos.IsNotFound()) return error_of(memos, memos_key);
  is.has_folded_memos = memos.ok() && value.size() >= 8 && get_big_endian(value.data()) == 1;
  if (is.format >= format_with_incarnation) {
    SEMEL_TRY(incarnation, get(incarnation_key, 8));
    is.incarnation = get_big_endian(incarnation.data());
    SEMEL_TRY(cold, get(cold_mark_key, 16));
    is.cold = {get_big_endian(cold.data()), get_big_endian(cold.data() + 8)};
    if (cold.size() >= 24) is.cold_token = get_big_endian(cold.data() + 16);
  }
  return is;
}

Status write_description(rocksdb::DB& database, rocksdb::ColumnFamilyHandle* family,
                         const std::string& path, const Description& description) {
  // Each entry has a checksum in memory until it is written.
  rocksdb::WriteBatch batch{0, 0, 8, 0};
  std::string anchor = words({static_cast<std::uint64_t>(description.anchor.line_ms),
                              static_cast<std::uint64_t>(description.anchor.engine_ms),
                              static_cast<std::uint64_t>(description.anchor.unix_ms)});
  anchor += description.anchor.boot_id;
  const std::pair<const char*, std::string> entries[] = {
      {format_key, words({format_version})},
      {storage_key, words({description.storage_id})},
      {versions_key, words({description.versions})},
      {floor_key, words({description.floor})},
      {anchor_key, anchor},
      {boot_first_key, words({description.boot_first})},
      {incarnation_key, words({description.incarnation})},
      {cold_mark_key,
       words({description.cold.id, description.cold.generation, description.cold_token})},
      {namespaces_key, words({description.knows_namespaces ? std::uint64_t{1} : 0})},
      {memos_key, words({description.has_folded_memos ? std::uint64_t{1} : 0})}};
  rocksdb::Status status;
  for (const auto& [key, value] : entries) {
    if (status.ok()) status = batch.Put(family, key, value);
  }
  rocksdb::WriteOptions options;
  options.sync = true;
  if (status.ok()) status = database.Write(options, &batch);
  return status.ok() ? Status{Done{}} : error_of(status, path);
}

void merge_description_entry(std::string_view key, std::string_view value,
                             Description& description) {
  if (value.size() < 8) return;
  const std::uint64_t word = get_big_endian(value.data());
  if (key == format_key) description.format = word;
  if (key == storage_key) description.storage_id = word;
  if (key == versions_key) description.versions = std::max(description.versions, word);
  if (key == floor_key) description.floor = std::max(description.floor, word);
  if (key == boot_first_key) description.boot_first = std::max(description.boot_first, word);
  if (key == incarnation_key) description.incarnation = word;
  if (key == namespaces_key) description.knows_namespaces = word == 1;
  if (key == memos_key) description.has_folded_memos = word == 1;
  if (key == cold_mark_key && value.size() >= 16) {
    description.cold = {word,
                        std::max(description.cold.generation, get_big_endian(value.data() + 8))};
    if (value.size() >= 24) description.cold_token = get_big_endian(value.data() + 16);
  }
  if (key == anchor_key && value.size() >= anchor_bytes_min &&
      static_cast<std::int64_t>(word) >= description.anchor.line_ms) {
    description.anchor = anchor_of(value);
  }
}

}  // namespace semel::storage
