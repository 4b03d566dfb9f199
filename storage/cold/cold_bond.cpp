#include "storage/cold/cold_bond.hpp"

#include <array>
#include <cstdlib>
#include <cstring>

#include "storage/archive/rocks_status.hpp"

namespace semel::storage {
namespace {

constexpr const char* bond_key = "storage";
constexpr const char* clock_key = "clock";
/// Of a storage and a store whose wall clocks were 30,000 years apart.
constexpr std::int64_t ahead_ms_max = std::int64_t{1} << 50;

struct ClockBond {
  std::uint64_t storage = 0;
  std::int64_t ahead_ms = 0;  // of the store's durable clock to the storage's
};

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

Result<DurableClock> follow_clock(rocksdb::DB& database, const StorageClock& clock,
                                  const DurableClock& own) {
  std::string bytes;
  rocksdb::Status status = database.Get({}, database.DefaultColumnFamily(), clock_key, &bytes);
  if (!status.ok() && !status.IsNotFound()) return error_of(status, clock_key);
  ClockBond bond;
  if (status.ok()) {
    if (bytes.size() == sizeof bond) std::memcpy(&bond, bytes.data(), sizeof bond);
    if (bytes.size() != sizeof bond || std::abs(bond.ahead_ms) > ahead_ms_max) {
      return Error{ErrorCode::storage_damaged,
                   "the cold store's '" + std::string{clock_key} + "' is invalid"};
    }
    if (bond.storage == clock.storage) return DurableClock{clock.offset_ms + bond.ahead_ms};
  }
  bond = {clock.storage, own.offset_ms() - clock.offset_ms};
  rocksdb::WriteOptions options;
  options.sync = true;
  status = database.Put(options, database.DefaultColumnFamily(), clock_key,
                        rocksdb::Slice{reinterpret_cast<const char*>(&bond), sizeof bond});
  if (!status.ok()) return error_of(status, "cold store");
  return own;
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
