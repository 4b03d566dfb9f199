#include "storage/cold/cold_spill.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "storage/cold/cold_format.hpp"

namespace semel::storage {

namespace {

constexpr std::size_t filter_piece_bytes = std::size_t{256} << 10;

std::string path_of(const std::string& directory, std::uint64_t part) {
  return directory + "/cold-" + std::to_string(part) + ".part";
}

}  // namespace

Status ColdSpill::begin_generation() {
  // Generations that are still on disk count: the next open finds them again.
  if (catalogs_.now()->generations.size() + undeleted_.size() >= cold_generations_max) {
    return Error{ErrorCode::storage_failed,
                 std::to_string(cold_generations_max) + " generations, and none has ended"};
  }
  check_invariants();
  SEMEL_ASSERT(collected_.places().empty() && fresh_ == nullptr);
  SEMEL_TRY(number, identity_.begin_generation());
  auto fresh = std::make_shared<Catalog>(*catalogs_.now());
  fresh->generations.emplace(fresh->generations.begin(), number);
  identity_.note_generation(number);
  catalogs_.publish(std::move(fresh));
  return Done{};
}

Status ColdSpill::write_file(ColdPart& part, const std::string& path) {
  SEMEL_TRY(bytes, files_.write_part(path, [&](rocksdb::SstFileWriter& file) {
    const std::uint64_t number = part.facts.number;
    rocksdb::Status status =
        file.Put(cold_key(number, ColdKey::facts, 0), encode_facts(part, clock_.current()));
    const Bytes filter = part.filter.view();
    for (std::size_t at = 0; status.ok() && at < filter.size(); at += filter_piece_bytes) {
      const Bytes piece = filter.substr(at, filter_piece_bytes);
      status = file.Put(cold_key(number, ColdKey::filter, at / filter_piece_bytes),
                        rocksdb::Slice{piece.data(), piece.size()});
    }
    return status.ok() ? collected_.write_buckets(file, part) : status;
  }));
  part.disk_bytes = bytes;
  return Done{};
}

Status ColdSpill::write_part(std::uint64_t first, std::uint64_t last) {
  PartFacts facts = collected_.facts_of(first, last, settings_.filter_bits);
  facts.number = next_part_;
  facts.generation = identity_.mark().generation;
  auto part = std::make_shared<ColdPart>(facts);
  const std::string path = path_of(settings_.directory, part->facts.number);
  if (!part->filter.ok()) return Error{ErrorCode::memory_full, "filter of " + path};
  // All that is needed once it is on disk: abandon() must find a catalog without it.
  std::shared_ptr<const Catalog> before = catalogs_.now();
  auto fresh = std::make_shared<Catalog>(*before);
  fresh->add(part);
  collected_.fill(*part);
  {
    const base::MutexLock lock{files_.writes};
    // If the disk filled up during RocksDB's own bookkeeping, it would stop.
    constexpr std::size_t margin = std::size_t{4} << 20;
    const std::size_t bytes = collected_.bytes() + part->filter.bytes();
    SEMEL_CHECK(files_.be_writable(bytes + bytes / 8 + margin));
    ++next_part_;  // a number is not used again, whatever became of its file
    SEMEL_CHECK(write_file(*part, path));
    SEMEL_ASSERT(fresh_ == nullptr);
    identity_.note_version(part->facts.largest_version);
    fresh_ = std::move(part);
    before_fresh_ = std::move(before);
    // Publish before another thread may reopen the database: reopening deletes parts that are in no
    // catalog.
    catalogs_.publish(std::move(fresh));
  }
  return Done{};
}

void ColdSpill::reveal() noexcept {
  // mo: release [cold_store.reveal]
  if (fresh_) fresh_->revealed.store(true, std::memory_order_release);
}

void ColdSpill::end_part() noexcept {
  fresh_.reset();
  before_fresh_.reset();
  collected_.clear();
}

void ColdSpill::abandon() noexcept {
  if (fresh_) {
    // It was never revealed, and the table still has all its records. If it comes back after a
    // crash, its copies are no newer than those of the journal.
    const std::uint64_t number = fresh_->facts.number;
    catalogs_.take_back(std::move(before_fresh_));
    try {
      static_cast<void>(delete_part(number));  // a part that stays is harmless, see above
    } catch (...) {
    }
  }
  end_part();
}

Status ColdSpill::delete_part(std::uint64_t number) {
  const base::MutexLock lock{files_.writes};
  return files_.delete_part(number);
}

Status ColdSpill::drop_ended(Timestamp now) {
  auto fresh = std::make_shared<Catalog>(*catalogs_.now());
  const auto is_dead = [&](const Generation& generation) {
    for (const auto& part : generation.parts()) {
      if (part->facts.latest_end > now && !flushes_.is_flushed(part->facts)) return false;
    }
    return true;
  };
  // Oldest first, and stop at the first live one: a newer generation may hold a successor that ends
  // earlier than the copy it replaced, and dropping it first would bring that copy back.
  std::erase_if(fresh->generations, [](const Generation& each) { return each.parts().empty(); });
  std::map<std::uint64_t, std::vector<std::uint64_t>> dropped;
  while (!fresh->generations.empty() && is_dead(fresh->generations.back())) {
    std::vector<std::uint64_t>& parts = dropped[fresh->generations.back().number()];
    for (const auto& part : fresh->generations.back().parts()) parts.push_back(part->facts.number);
    fresh->generations.pop_back();
  }
  if (fresh->generations.size() != catalogs_.now()->generations.size())
    catalogs_.publish(std::move(fresh));
  undeleted_.merge(dropped);  // needs no memory
  return delete_dropped();
}

/// After an error the rest is tried again with the next call. Oldest first, as above: after a crash
/// they are generations again.
Status ColdSpill::delete_dropped() {
  while (!undeleted_.empty()) {
    std::vector<std::uint64_t>& parts = undeleted_.begin()->second;
    while (!parts.empty()) {
      SEMEL_CHECK(delete_part(parts.back()));
      parts.pop_back();
    }
    undeleted_.erase(undeleted_.begin());
  }
  return Done{};
}

void ColdSpill::check_invariants() const noexcept {
  SEMEL_ASSERT((fresh_ == nullptr) == (before_fresh_ == nullptr));
}

}  // namespace semel::storage
