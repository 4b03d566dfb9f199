// Snapshots: a consistent cut of all records, while writers go on.
//
// A cut: inside a section over everything all version blocks are thrown away, so every change made
// later carries a version not below the cut. From then on a writer that replaces a record of the
// cut hands it over instead of freeing it. The walk visits the records it meets below the cut,
// then those handed over. A record replaced after the walk has passed it is visited twice with
// equal contents. Last come the copies of the cold store, as it was at the cut, except for those
// that a record of the table had replaced by then.
#include "engine/api/snapshot.hpp"

#include <algorithm>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <unordered_set>

#include "engine/api/databases.hpp"
#include "engine/api/engine_impl.hpp"
#include "engine/core/section.hpp"
#include "engine/hashes/hash_trim.hpp"
#include "engine/keys/records.hpp"
#include "engine/rules/claim_rules.hpp"
#include "semel/engine_host.hpp"

namespace semel {

namespace {

using engine::Core;
using engine::Entry;
using engine::Handle;

/// The records of one stretch of the table below the cut; advances `index`.
void collect(Core& core, engine::Shard& shard, std::uint32_t& index, Version cut,
             std::vector<Handle>& found) {
  engine::Operation operation{core, core.context()};
  operation.admit(shard);
  // Indexes are walked in reversed-bit order, see scan.cpp; here the segment is taken as a whole.
  std::uint32_t reversed = 0;
  for (unsigned bit = 0; bit < engine::depth_max; ++bit) {
    reversed |= ((index >> bit) & 1U) << (engine::depth_max - 1 - bit);
  }
  engine::ShardTable::Segment& segment = *shard.table.locate({reversed});
  const std::uint32_t count = shard.table.line_count() * engine::slots_per_line;
  for (std::uint32_t i = 0; i < count; ++i) {
    // mo: acquire [table.publish]: the record is read next.
    const engine::SlotWord word = segment.slots()[i].load(std::memory_order_acquire);
    if (!engine::slot::is_record(word & ~engine::slot::frozen)) continue;
    if (core.keys().entry(word).version() < cut) found.push_back(engine::slot::handle(word));
  }
  const std::uint32_t width = 1U << (engine::depth_max - segment.depth);
  index = (index & ~(width - 1)) + width;
}

/// Names a key among others.
std::string name_of(std::uint8_t stored_db, Bytes key) {
  return std::string(1, static_cast<char>(stored_db)).append(key);
}

/// Two replicas take ended parts out of a record at different times. `bytes`: of the mutation,
/// then.
void take_out_ended(Mutation& mutation, Timestamp now, std::string& bytes) {
  if (mutation.claim) engine::trim(*mutation.claim, now);
  if (mutation.kind != Kind::hash) return;
  const engine::RecordView live{mutation.kind, mutation.value, mutation.due, mutation.version};
  const engine::Decision decision = engine::trim_hash(live, now, bytes);
  if (decision.action != engine::Action::store) return;
  mutation.value = bytes;
  mutation.due = decision.due;
}

/// The user's visitor, up to the first exception.
class Visitor {
 public:
  Visitor(Core& core, const Function<void(const Mutation&)>& visit) : core_(core), visit_(visit) {}

  void operator()(const Mutation& mutation) {
    if (has_failed()) return;
    if (!core_.callbacks().run(Callback::visitor, [&] { visit_(mutation); })) {
      failed_ = ErrorCode::callback_threw;
    }
  }
  /// `walk` may throw std::bad_alloc.
  template <class Walk>
  void run(Walk&& walk) noexcept {
    if (has_failed()) return;
    try {
      walk();
    } catch (const std::bad_alloc&) {
      failed_ = ErrorCode::memory_full;
    }
  }
  [[nodiscard]] bool has_failed() const noexcept { return failed_ != ErrorCode::ok; }
  [[nodiscard]] Error error() const { return {failed_, {}}; }

 private:
  Core& core_;
  const Function<void(const Mutation&)>& visit_;
  ErrorCode failed_ = ErrorCode::ok;
};

/// Records that were kept for the snapshot.
void give_back(Core& core, const std::vector<Handle>& handles) {
  const engine::Operation operation{core, core.context()};
  for (const Handle handle : handles) {
    core.large_records().retire(core.context(), core.keys().entry(handle));
  }
}

/// Objects that no engine restores, of one that keeps them in memory alone: see
/// limits::object_bytes_max.
class TooLong {
 public:
  explicit TooLong(const Options& options) noexcept
      : bytes_max_(options.value_bytes_max + engine::value_overhead_max) {}

  void look(const Mutation& shown) noexcept { longest_ = std::max(longest_, shown.value.size()); }
  [[nodiscard]] Status status() const {
    if (longest_ <= bytes_max_) return Done{};
    return Error{ErrorCode::value_too_long, "an object of " + std::to_string(longest_) +
                                                " bytes, limit " + std::to_string(bytes_max_) +
                                                ": it was visited, and no engine restores it"};
  }

 private:
  const std::size_t bytes_max_;
  std::size_t longest_ = 0;
};

/// What a snapshot sees beyond the table.
class ColdCut {
 public:
  ColdCut(Core& core, Version cut, Timestamp now)
      : core_(core), cut_(cut), now_(now), view_(core.cold()->view()) {}

  /// A delete marker of the cut that has been replaced or removed since.
  void note_delete_marker(const Entry& marker) {
    delete_markers_.insert(name_of(marker.db(), marker.key()));
  }

  [[nodiscard]] Status show(const Function<void(const Mutation&)>& visit) {
    constexpr std::size_t at_once = 1'024;
    std::uint64_t rank = 0;
    do {
      SEMEL_TRY(next, core_.cold()->scan(*view_, rank, at_once,
                                         [&](std::uint64_t, const ColdRecord& copy) {
                                           if (is_of_cut(copy.record)) visit(copy.record);
                                         }));
      rank = next;
    } while (rank != 0);
    return Done{};
  }

 private:
  [[nodiscard]] bool is_of_cut(const Mutation& record) {
    if (record.version >= cut_ || record.due <= now_) return false;
    if (delete_markers_.contains(name_of(record.db, record.key))) return false;
    const engine::HashBits hash = core_.keys().hash_of(record.db, record.key);
    engine::Shard& shard = core_.keys().shard_of(hash);
    engine::Operation operation{core_, core_.context()};
    operation.admit(shard);
    const engine::TableProbe probe =
        shard.table.find(hash, engine::Match{core_.region(), record.db, record.key});
    if (probe.state != engine::TableProbe::State::found) return true;
    const Version version = core_.keys().entry(probe.seen).version();
    // Of the same version: it has been shown, or it is a delete marker (Spill::bar_changed).
    return version < record.version || version >= cut_;
  }

  Core& core_;
  const Version cut_;
  const Timestamp now_;
  const std::shared_ptr<const ColdStore::View> view_;
  std::unordered_set<std::string> delete_markers_;
};

}  // namespace

Status EngineHost::snapshot(const Function<void(const Mutation&)>& visit) {
  return engine::snapshot_at(
      *engine_, [] {}, visit);
}

Status engine::snapshot_at(Engine& engine, const Function<void()>& at_cut,
                           const Function<void(const Mutation&)>& visit) {
  Engine::Impl& impl = impl_of(engine);
  Core& core = impl.core();
  if (const ErrorCode no = core.begin_call(); no != ErrorCode::ok) return Error{no, {}};
  base::MutexLock running{impl.snapshot_mutex, std::defer_lock};
  if (!running.try_lock()) return Error{ErrorCode::snapshot_running, {}};
  Timestamp now;
  Version cut = 0;
  engine::DatabaseMap::Floors floors{};
  std::optional<ColdCut> beyond;
  Visitor visitor{core, visit};
  {
    // A replica is cut between two entries, whose versions come before and after the cut.
    const base::MutexLock applying{impl.decision_mutex};
    auto all = engine.section({});
    if (!all) return all.error();
    now = all->now();
    cut = core.options().replicated ? core.versions().next()
                                    : core.versions().fence(core.threads(), core.context());
    floors = core.databases().floors();
    if (core.cold() != nullptr) beyond.emplace(core, cut, now);
    core.snapshot_cut().begin(cut);
    at_cut();
  }
  std::string whole;  // of a large object
  TooLong too_long{core.options()};
  const auto show = [&](Handle handle) {
    const Entry& entry = core.keys().entry(handle);
    if (entry.due() <= now || entry.version() < floors[entry.db()] || visitor.has_failed()) return;
    Mutation mutation;
    engine::fill_mutation(mutation, entry, whole);
    std::string trimmed;
    if (core.options().replicated) take_out_ended(mutation, now, trimmed);
    visitor(mutation);
    too_long.look(mutation);
  };
  // The cut always ends and its preserved records are freed, whatever the visitor does, and also
  // without memory.
  visitor.run([&] {
    engine::visit_db_map(core, cut, std::ref(visitor));
    impl.namespaces().for_each_mutation(std::ref(visitor));
    std::vector<Handle> found;
    for (engine::Shard& shard : core.keys().shards()) {
      for (std::uint32_t index = 0; index < (1U << engine::depth_max) && !visitor.has_failed();) {
        found.clear();
        collect(core, shard, index, cut, found);
        for (const Handle handle : found) show(handle);  // the cut keeps them from being freed
      }
    }
  });
  core.snapshot_cut().end();
  core.threads().wait_for_others(core.context());
  const engine::SnapshotCut::Preserved preserved = core.snapshot_cut().take();
  visitor.run([&] {
    for (const Handle handle : preserved.handles) {
      show(handle);
      const Entry& entry = core.keys().entry(handle);
      if (beyond && entry.is_delete_marker()) beyond->note_delete_marker(entry);
    }
  });
  give_back(core, preserved.handles);
  // Frees what this thread has retired: it may be much, and its next operation may be far off.
  engine.host().quiesce();
  Status shown{Done{}};
  if (beyond) visitor.run([&] { shown = beyond->show(std::ref(visitor)); });
  if (visitor.has_failed()) return visitor.error();
  if (!preserved.is_complete) return Error{ErrorCode::memory_full, {}};
  return shown ? too_long.status() : shown;
}

}  // namespace semel
