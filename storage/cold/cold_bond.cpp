#include "storage/cold/cold_bond.hpp"

#include <array>
#include <cstring>

#include "storage/archive/rocks_status.hpp"

namespace semel::storage {
namespace {

constexpr const char* bond_key = "storage";

std::string misfit_of_mark(const ColdMark& needed, const ColdMark& has) {
  if (needed.id == 0 || (has.id == needed.id && has.generation >= needed.generation)) return {};
  std::string text = "records up to generation " + std::to_string(needed.generation) +
                     " were spilled to a cold store, and ";
  if (has.id == 0) {
    text += "there is none";
  } else if (has.id != needed.id) {
    text += "this is another one";
  } else {
    text += "this one is at generation " + std::to_string(has.generation);
  }
  return text;
}

}  // namespace

std::string misfit(const ColdNeeds& needs, const ColdMark& has, const ColdBond& bond) {
  std::string text = misfit_of_mark(needs.mark, has);
  if (!text.empty() || has.id == 0 || bond.storage == 0) return text;
  if (bond.storage != needs.storage_id) return "the cold store belongs to another storage";
  if (needs.token == bond.token || (bond.is_changing && needs.token == bond.before)) return {};
  return "the storage and the cold store were not used together last: one of them is a copy from "
         "another time, or was used with a copy";
}

Result<ColdBond> read_bond(rocksdb::DB& database) {
  std::string bytes;
  const rocksdb::Status status = database.Get({}, database.DefaultColumnFamily(), bond_key, &bytes);
  if (status.IsNotFound()) return ColdBond{};
  if (!status.ok()) return error_of(status, bond_key);
  std::array<std::uint64_t, 4> words{};
  if (bytes.size() != sizeof words) {
    return Error{ErrorCode::storage_damaged, "the cold store's '" + std::string{bond_key} +
                                                 "' has " + std::to_string(bytes.size()) +
                                                 " bytes instead of " +
                                                 std::to_string(sizeof words)};
  }
  std::memcpy(words.data(), bytes.data(), sizeof words);
  return ColdBond{words[0], words[1], words[2], words[3] != 0};
}

Status write_bond(rocksdb::DB& database, const ColdBond& bond) {
  const std::array<std::uint64_t, 4> words{bond.storage, bond.token, bond.before,
                                           bond.is_changing ? std::uint64_t{1} : 0};
  rocksdb::WriteOptions options;
  options.sync = true;
  const rocksdb::Status status =
      database.Put(options, database.DefaultColumnFamily(), bond_key,
                   rocksdb::Slice{reinterpret_cast<const char*>(words.data()), sizeof words});
  return status.ok() ? Status{Done{}} : error_of(status, "cold store");
}

}  // namespace semel::storage
