#include "storage/cold/cold_identity.hpp"

#include <cstring>
#include <string>

#include "base/coding.hpp"
#include "base/random.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/cold/cold_bond.hpp"
#include "storage/cold/cold_format.hpp"

namespace semel::storage {

Status ColdIdentity::read(rocksdb::DB& database, FlushMarks& flushes) {
  SEMEL_TRY(bond, read_bond(database));
  SEMEL_TRY(is, read_cold_description(files_.database(), files_.family()));
  {
    const base::MutexLock lock{mutex_};
    bond_ = bond;
    generation_ = is.generation;
  }
  seed_ = is.format == 0 ? base::random_number() : is.seed;
  if (is.format == 0) return Done{};
  format_ = is.format;
  shard_count_ = is.shard_count;
  std::string bytes;
  const rocksdb::Status status = files_.get(store_facts_key(StoreFacts::flushes), bytes);
  if (status.IsNotFound()) return Done{};
  if (!status.ok()) return error_of(status, "cold store");
  if (!flushes.decode(bytes)) {
    return Error{ErrorCode::storage_damaged, "the cold store's flushes are not complete"};
  }
  note_version(flushes.largest());
  return Done{};
}

Status ColdIdentity::attach(unsigned shard_count) {
  if (shard_count_ != 0 && shard_count_ != shard_count) {
    return Error{ErrorCode::bad_option, "shard_count = " + std::to_string(shard_count) +
                                            ", the cold store was made with " +
                                            std::to_string(shard_count_)};
  }
  if (shard_count_ == shard_count && format_ == cold_format_version) return Done{};
  shard_count_ = shard_count;
  format_ = cold_format_version;
  std::string bytes;
  for (const std::uint64_t word : {cold_format_version, std::uint64_t{shard_count_}, seed_}) {
    base::put_fixed(bytes, word);
  }
  const base::MutexLock lock{files_.writes};
  return files_.put(store_facts_key(StoreFacts::description), bytes);
}

ColdMark ColdIdentity::mark() const noexcept {
  const base::MutexLock lock{mutex_};
  return {cold_id(seed_), generation_};
}

void ColdIdentity::note_generation(std::uint64_t number) noexcept {
  const base::MutexLock lock{mutex_};
  generation_ = std::max(generation_, number);
}

/// Its parts may all be dropped some day. The number stays, so that a store that has lost files can
/// be distinguished from one that has dropped them.
Result<std::uint64_t> ColdIdentity::begin_generation() {
  const std::uint64_t number = mark().generation + 1;
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  const base::MutexLock writes{files_.writes};
  SEMEL_CHECK(files_.put(store_facts_key(StoreFacts::generation), bytes));
  return number;
}

ColdBond ColdIdentity::bond() const {
  const base::MutexLock lock{mutex_};
  return bond_;
}

Status ColdIdentity::bind(const ColdBond& bond) {
  const base::MutexLock writes{files_.writes};
  SEMEL_CHECK(files_.be_writable(0));
  SEMEL_CHECK(files_.change([&](rocksdb::DB& database) { return write_bond(database, bond); }));
  const base::MutexLock lock{mutex_};
  bond_ = bond;
  return Done{};
}

}  // namespace semel::storage
