// Whole databases: flush, swap, and both as a recovery puts them back.
//
// A flush is one store: the floor of the database rises inside a section over everything, and every
// record with a smaller version has ended from then on. The removal takes time per record and runs
// beside operations: the compactor's walk takes the records out, in the call itself or, for a flush
// that does not wait, in advance(). A key that is used again before replaces its
// flushed record, as it would of one whose ttl has ended.
#include "engine/api/databases.hpp"

#include <new>
#include <utility>

#include "engine/api/engine_impl.hpp"
#include "engine/core/section.hpp"
#include "engine/kinds/kinds.hpp"
#include "engine/logged/call_log.hpp"

namespace semel {

namespace engine {

void visit_db_map(Core& core, Version version, const std::function<void(const Mutation&)>& visit) {
  std::string map;
  for (std::uint8_t db = 0; db < limits::db_count; ++db) {
    map.push_back(static_cast<char>(core.databases().stored(db)));
  }
  Mutation mutation;
  mutation.type = Mutation::Type::db_map;
  mutation.version = version;
  mutation.value = map;
  visit(mutation);
}

}  // namespace engine

namespace {

using engine::Core;
using engine::Entry;

/// Calls `visit(Word&, SlotWord)` for each record of a shard. Inside an operation or section.
template <class Visit>
void for_each_record(engine::Shard& shard, Visit&& visit) {
  shard.table.for_each_segment([&](engine::ShardTable::Segment& segment) {
    const std::uint32_t count = shard.table.line_count() * engine::slots_per_line;
    for (std::uint32_t i = 0; i < count; ++i) {
      // mo: acquire [table.publish]: the record is read next.
      const engine::SlotWord word = segment.slots()[i].load(std::memory_order_acquire);
      if (engine::slot::is_record(word & ~engine::slot::frozen)) visit(segment.slots()[i], word);
    }
  });
}

}  // namespace

Status Engine::Impl::restore_database(const Mutation& mutation) {
  engine::Core& core = core_;
  if (mutation.type == Mutation::Type::db_map) {
    if (mutation.value.size() != limits::db_count) {
      return Error{ErrorCode::bad_option,
                   "database map of " + std::to_string(mutation.value.size()) + " bytes"};
    }
    if (mutation.version < db_map_version) return Done{};
    std::uint64_t map = 0;
    for (unsigned db = 0; db < limits::db_count; ++db) {
      map |= (static_cast<std::uint64_t>(mutation.value[db]) & 15) << (db * 4);
    }
    Section::Impl all{core, wait_queue_, engine::mask_of_all(core.keys().shards())};
    db_map_version = mutation.version;
    core.databases().set_map(map);
    return Done{};
  }
  const std::uint8_t stored = mutation.db & 15;
  Section::Impl all{core, wait_queue_, engine::mask_of_all(core.keys().shards())};
  if (!core.context().retired.reserve()) return Error{ErrorCode::memory_full, {}};
  if (core.cold() != nullptr) core.cold()->flush(stored, mutation.version);
  erase_database(stored, mutation.version, all);
  // Not earlier: records below the floor count as flushed already.
  core.databases().raise_floor(stored, mutation.version);
  return Done{};
}

void Engine::Impl::erase_database(std::uint8_t stored, Version below, Section::Impl& all) {
  for (engine::Shard& shard : core_.keys().shards()) {
    for_each_record(shard, [&](engine::ShardTable::Word& word, engine::SlotWord seen) {
      const Entry& entry = core_.keys().entry(seen);
      if (entry.db() != stored || entry.version() >= below) return;
      if (entry.kind() == Kind::claim)
        all.note_change({core_.databases().shown(stored), entry.key()});
      restorer_.erase_exclusive(word, seen);
    });
  }
}

Result<std::uint64_t> Engine::flush(std::optional<std::uint8_t> db, FlushMode mode) {
  if (db && *db >= limits::db_count) {
    return Error{ErrorCode::db_out_of_range, std::to_string(*db)};
  }
  Core& core = impl_->core();
  if (const ErrorCode no = core.begin_call(); no != ErrorCode::ok) return Error{no, {}};
  if (const engine::LoggedCall log = impl_->log_for_call()) {
    using replication::DatabaseCommand;
    const auto what = db ? DatabaseCommand::What::flush : DatabaseCommand::What::flush_all;
    // The number of records differs between replicas by those that have ended and are not swept
    // yet.
    SEMEL_CHECK(
        engine::decided(*log, {DatabaseCommand{what, db.value_or(0)}}, engine::Repeat::never));
    return 0;
  }
  if (!impl_->accepts_changes()) return Error{ErrorCode::refused, {}};
  // Expired keys do not count. Do not wait for the advancing thread: it may wait for our section.
  if (mode == FlushMode::sync) {
    impl_->upkeep().advance(impl_->now(), ~std::size_t{0}, core.context().section == nullptr);
  }
  std::uint64_t ended = 0;
  {
    SEMEL_TRY(all, section({}));
    Section::Impl& section = engine::impl_of(all);
    if (const ErrorCode no = section.reserve_to_erase(0, limits::db_count); no != ErrorCode::ok) {
      return Error{no, {}};
    }
    const Version version = core.versions().fence(core.threads(), core.context());
    if (version > limits::version_max) return Error{ErrorCode::versions_exhausted, {}};
    section.note_all_changed();
    for (std::uint8_t each = 0; each < limits::db_count; ++each) {
      if (db && *db != each) continue;
      const std::uint8_t stored = core.databases().stored(each);
      if (core.cold() != nullptr) {
        ended += core.cold()->size(stored, section.now());
        core.cold()->flush(stored, version);
      }
      ended += impl_->upkeep().flush_database(stored, version);
      Mutation mutation;
      mutation.type = Mutation::Type::flush;
      mutation.db = stored;
      mutation.version = version;
      if (core.journal() != nullptr) section.add(mutation);
    }
    if (const Status status = all.commit(); !status) return status.error();
  }
  // After the journal, and when others may go on: it waits for the disk and for backups. If it
  // fails, the journal has the flush, and the next spill tries again before it writes.
  try {
    if (core.cold() != nullptr) static_cast<void>(core.cold()->keep_flushes());
  } catch (const std::bad_alloc&) {
  }
  // Not inside a section of this thread: all other threads would wait for the sweep.
  if (mode == FlushMode::sync && core.context().section == nullptr) impl_->upkeep().sweep_flushed();
  return ended;
}

Status Engine::swap_db(std::uint8_t one, std::uint8_t other) {
  if (one >= limits::db_count || other >= limits::db_count) {
    return Error{ErrorCode::db_out_of_range, std::to_string(std::max(one, other))};
  }
  Core& core = impl_->core();
  if (const ErrorCode no = core.begin_call(); no != ErrorCode::ok) return Error{no, {}};
  if (const engine::LoggedCall log = impl_->log_for_call()) {
    using replication::DatabaseCommand;
    SEMEL_CHECK(engine::decided(*log, {DatabaseCommand{DatabaseCommand::What::swap, one, other}},
                                engine::Repeat::never));
    return Done{};
  }
  if (!impl_->accepts_changes()) return Error{ErrorCode::refused, {}};
  {
    auto all = section({});
    if (!all) return all.error();
    if (!engine::impl_of(*all).accepts(false)) return Error{ErrorCode::refused, {}};
    if (core.versions().next() > limits::version_max) {
      return Error{ErrorCode::versions_exhausted, {}};
    }
    engine::impl_of(*all).note_all_changed();
    if (core.journal() != nullptr) engine::impl_of(*all).make_room(limits::db_count, 1);
    const std::uint64_t map = core.databases().map();
    const std::uint64_t different = ((map >> (one * 4)) ^ (map >> (other * 4))) & 15;
    core.databases().set_map(map ^ (different << (one * 4)) ^ (different << (other * 4)));
    const Version version = core.versions().fence(core.threads(), core.context());
    impl_->db_map_version = version;
    if (core.journal() != nullptr) {
      engine::visit_db_map(core, version,
                           [&](const Mutation& mutation) { engine::impl_of(*all).add(mutation); });
    }
  }
  const ErrorCode unknown = impl_->confirm();
  return unknown == ErrorCode::ok ? Status{Done{}} : Error{unknown, {}};
}

}  // namespace semel
