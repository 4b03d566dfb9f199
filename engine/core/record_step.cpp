#include "engine/core/record_step.hpp"

#include <algorithm>

#include "engine/core/cold_side.hpp"
#include "engine/core/committed.hpp"
#include "engine/keys/records.hpp"

namespace semel::engine {

namespace {

[[nodiscard]] bool is_long_object(const Entry& entry) noexcept {
  return entry.kind() > Kind::claim &&
         whole_size(entry.kind(), entry.value()) >= limits::trail_record_bytes_min;
}

}  // namespace

std::optional<ErrorCode> RecordStep::look_beyond(RecordView& view) {
  SEMEL_ASSERT(seen_.old == nullptr && !seen_.live);
  ColdLook& beyond = beyond_ ? *beyond_ : beyond_.emplace();
  const ColdAnswer answer = core_.cold_side().ask(location_, key_.key, beyond);
  if (answer == ColdAnswer::absent) return ErrorCode::ok;
  if (answer == ColdAnswer::unknown) {
    ErrorCode error = ErrorCode::ok;
    operation_.outside([&] { error = core_.cold_side().read(key_.key, beyond); });
    if (error != ErrorCode::ok) return error;
    if (sink_ == nullptr && !operation_.admit(location_, key_)) return ErrorCode::section_held;
    return std::nullopt;
  }
  const Mutation& record = beyond.copy().record.record;
  seen_.cold = &beyond.copy().record;
  seen_.floor = std::max(seen_.floor, record.version);
  // By the clock as well: what kept the copy from coming back may have gone since `now` was read.
  seen_.live = record.due > seen_.now && record.due > now_of(core_.clock());
  view = beyond.copy().view;
  return ErrorCode::ok;
}

bool RecordStep::follows_on_old(const Decision& decision) const noexcept {
  // Not of a copy in the cold store, of which there may be no other trace in the journal.
  return seen_.live && seen_.old != nullptr && !decision.keeps_version &&
         is_long_object(*seen_.old);
}

bool RecordStep::is_kept_as_trail(const Decision& decision) const noexcept {
  if (decision.action != Action::store || decision.trail.empty() || !follows_on_old(decision)) {
    return false;
  }
  Mutation delta;
  delta.kind = decision.kind;
  delta.db = location_.stored_db;
  delta.due = decision.due;
  delta.key = key_.key;
  delta.base = seen_.old->version();
  delta.trail = decision.trail;
  return core_.journal()->keeps_trail(delta);
}

bool RecordStep::is_accepted(const Decision& decision) const noexcept {
  const bool is_replica = core_.options().replicated;
  if (is_replica && operation_.context().decision == nullptr && !decision.keeps_version)
      [[unlikely]] {
    return false;
  }
  if (core_.journal() == nullptr) return true;
  const bool frees = decision.frees();
  return sink_ != nullptr ? sink_->accepts(frees) : core_.guarded_journal().accepts(frees);
}

void RecordStep::prepare_mutation(const Decision& decision) {
  std::string& whole = operation_.context().whole;
  const bool is_large = large_object_of(decision.kind, decision.value) != nullptr;
  if (is_large && core_.journal() != nullptr) [[unlikely]] {
    whole.clear();
    if (!is_kept_as_trail(decision)) {  // while it can still be refused
      static_cast<void>(whole_bytes(decision.kind, decision.value, whole));
    }
  }
  if (sink_ != nullptr) [[unlikely]] {
    const std::size_t value = is_large ? whole.size() : decision.value.size();
    sink_->make_room(key_.key.size() + value + decision.trail.size(), 1);
  }
}

inline ErrorCode RecordStep::prepare(const Decision& decision) {
  ThreadContext& context = operation_.context();
  if (!is_accepted(decision)) [[unlikely]]
    return ErrorCode::refused;
  // The timer of a live record must not be lost.
  if (!context.timers.is_ready()) [[unlikely]]
    return ErrorCode::memory_full;
  if (!context.retired.reserve()) [[unlikely]]
    return operation_.refuse();
  prepare_mutation(decision);
  return ErrorCode::ok;
}

inline ErrorCode RecordStep::make_fresh(const Decision& decision, Version version,
                                        const Entry*& fresh) {
  if (decision.value.size() > core_.options().value_bytes_max + value_overhead_max) [[unlikely]]
    return ErrorCode::value_too_long;
  // A live record can be replaced out of the reserve: an owner must be able to finish.
  const bool precious = seen_.live || sink_ != nullptr;
  // Other threads cannot see a change inside a section before its group has been appended.
  const bool pending = core_.journal() != nullptr && sink_ == nullptr;
  if (!precious && core_.region().is_over()) [[unlikely]]
    return ErrorCode::memory_full;
  fresh =
      make_entry(core_.region(), operation_.context(),
                 {decision.kind, location_.stored_db, decision.due, version, pending, decision.raw},
                 key_.key, decision.value, precious ? Region::Use::structure : Region::Use::record);
  return fresh != nullptr ? ErrorCode::ok : ErrorCode::memory_full;
}

ErrorCode RecordStep::make_remains(Version version, const Entry*& remains) {
  ThreadContext& context = operation_.context();
  const Timestamp beyond = core_.cold_side().end_of(context, location_.stored_db, key_.key);
  if (beyond > seen_.now || seen_.old == nullptr) [[unlikely]] {
    // An older copy must not come back.
    remains =
        make_delete_marker(core_.region(), context, location_.stored_db, key_.key, version,
                           std::max(beyond, seen_.now + delete_marker_ttl), Region::Use::structure);
    return remains != nullptr ? ErrorCode::ok : ErrorCode::memory_full;
  }
  if (leaves_marker()) [[unlikely]] {
    remains = make_delete_marker(core_.region(), context, location_.stored_db, key_.key, version,
                                 seen_.now + delete_marker_ttl);
  }
  return ErrorCode::ok;
}

bool RecordStep::publish_object(const Decision& decision, Handle handle) noexcept {
  Publication* const publication = decision.publication;
  // One that is stored as it was, with another end or under another name, is shared.
  LargeObject* const large = publication == nullptr && decision.action == Action::store
                                 ? large_object_of(decision.kind, decision.value)
                                 : nullptr;
  if (large != nullptr) [[unlikely]]
    share(*large);
  const bool may = publication == nullptr || publication->begin();
  const bool won = may && swap_in(handle);
  if (publication != nullptr && may) publication->end(won);
  if (!won && large != nullptr) {
    core_.large_records().release_large(operation_.context(), handle);
  }
  return won;
}

inline bool RecordStep::publish(const Decision& decision, const Entry* fresh,
                                Version version) noexcept {
  if (fresh == nullptr) return location_.shard->table.bury(probe_, version);
  return publish_object(decision, core_.region().handle_of(fresh));
}

std::optional<ErrorCode> RecordStep::lose_race(Handle fresh) noexcept {
  engine::lose_race(operation_.context(), location_, probe_, fresh);
  return std::nullopt;
}

std::optional<ErrorCode> RecordStep::apply_any(const Decision& decision, Version& version) {
  ThreadContext& context = operation_.context();
  if (const ErrorCode no = prepare(decision); no != ErrorCode::ok) [[unlikely]]
    return no;
  ShardTable& table = location_.shard->table;
  const bool erases = decision.action == Action::erase;
  const bool keeps = decision.keeps_version;
  const Version fresh_version =
      keeps ? seen_.floor : core_.versions().candidate(context, seen_.floor);
  SEMEL_ASSERT(keeps || fresh_version > seen_.floor);
  if (fresh_version > Entry::version_max) [[unlikely]]
    return ErrorCode::versions_exhausted;
  if (probe_.state == TableProbe::State::full) [[unlikely]] {
    if (!table.grow(location_.hash, probe_.segment)) return ErrorCode::memory_full;
    return std::nullopt;
  }
  const Entry* fresh = nullptr;
  const ErrorCode made =
      erases ? make_remains(fresh_version, fresh) : make_fresh(decision, fresh_version, fresh);
  if (made != ErrorCode::ok) [[unlikely]]
    return made;
  const Timestamp wake = fresh == nullptr ? no_end : wake_of(*fresh);
  const Timestamp old_wake = seen_.old == nullptr ? no_end : wake_of(seen_.head);
  bool keeps_timer = !erases && seen_.live && wake != no_end && serves(old_wake, wake, seen_.now);
  if (keeps_timer && (old_wake != wake || seen_.head.has_early_timer())) {
    fresh->note_early_timer(true);
  }
  const Entry::Head is = fresh != nullptr ? fresh->head() : Entry::Head{};
  if (!publish(decision, fresh, fresh_version)) [[unlikely]]
    return lose_race(fresh != nullptr ? core_.region().handle_of(fresh) : 0);
  version = keeps ? fresh_version : context.version_next++;
  if (!keeps) context.bump(Count::changes);
  verify_change(core_, location_, probe_, fresh, version);
  if (core_.journal() != nullptr) append_mutation(decision, fresh, version);
  // The clock may have gone on since `now`, and so may the wheel.
  keeps_timer = keeps_timer && !core_.firing().has_reached(old_wake);
  core_.committed(context, {.hash = location_.hash,
                            .old = seen_.old,
                            .was = seen_.head,
                            .old_wake = old_wake,
                            .was_live = seen_.live,
                            .fresh = fresh,
                            .is = is,
                            .wake = wake,
                            .keeps_timer = keeps_timer});
  if (seen_.cold != nullptr) [[unlikely]] {
    core_.cold()->superseded(core_.keys().rank_of(location_.stored_db, key_.key), seen_.cold->part,
                             location_.stored_db, seen_.cold->record.due);
  }
  return ErrorCode::ok;
}

void RecordStep::append_mutation(const Decision& decision, const Entry* fresh,
                                 Version version) noexcept {
  const bool erases = decision.action == Action::erase;
  SEMEL_ASSERT(erases || fresh != nullptr);
  const Entry* const old = seen_.old;
  Mutation mutation;
  const Entry& shown = erases && old != nullptr ? *old : *fresh;
  const bool is_large = large_object_of(shown) != nullptr;
  // Of one that is erased the value does not count.
  std::string& whole = operation_.context().whole;
  fill_mutation_with(mutation, shown, is_large ? Bytes{whole} : shown.value());
  mutation.version = version;
  if (old != nullptr && !old->is_delete_marker()) {
    mutation.keep_until = std::max(mutation.due, old->due());
  } else if (seen_.cold != nullptr) {
    const Mutation& copy = seen_.cold->record;
    mutation.keep_until = std::max(mutation.due, copy.due);
    if (erases) mutation.kind = copy.kind;
  }
  if (erases) {
    mutation.type = Mutation::Type::erase;
    mutation.value = {};
    mutation.claim.reset();
    mutation.due = no_end;
    // As long as there is a copy that it keeps away.
    if (fresh != nullptr) mutation.keep_until = std::max(mutation.keep_until, wake_of(*fresh));
  }
  if (follows_on_old(decision)) {
    mutation.base = old->version();
    mutation.trail = decision.trail;
  }
  SEMEL_ASSERT(erases || !is_large || !whole.empty() || is_delta(mutation));
  SEMEL_ASSERT(mutation.trail.empty() ||
               (old->kind() == mutation.kind && old->due() == mutation.due));
  if (sink_ != nullptr) {
    sink_->add(mutation);
  } else {
    operation_.context().ticket = core_.guarded_journal().append({&mutation, 1});
    if (!erases) fresh->set_journalled();
  }
  constexpr std::size_t kept_bytes = std::size_t{64} << 10;
  if (whole.capacity() > kept_bytes) [[unlikely]]
    std::string{}.swap(whole);
}

}  // namespace semel::engine
