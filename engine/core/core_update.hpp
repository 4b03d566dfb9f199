// The templates of the core: how an update runs, alone, in a section, or among others. Included by
// the sources that call them; core.hpp only declares them.
#pragma once

#include <array>
#include <type_traits>

#include "engine/core/core.hpp"
#include "engine/core/operation.hpp"

namespace semel::engine {

struct NoFastAnswer {
  bool operator()(const Entry&) const noexcept { return false; }
};

template <class Decide>
ErrorCode Core::update(std::uint8_t db, Bytes key, Timestamp& now, Decide&& decide,
                       Version& version) {
  return update_unless(db, key, now, NoFastAnswer{}, decide, version);
}

template <class Answers, class Decide>
ErrorCode Core::update_unless(std::uint8_t db, Bytes key, Timestamp& now, Answers&& answers,
                              Decide&& decide, Version& version) {
  ThreadContext* const found = threads_.try_context();
  if (found == nullptr) [[unlikely]]
    return why_no_context();
  ThreadContext& own = *found;
  ErrorCode result = keys_.check(db, key);
  if (result != ErrorCode::ok) [[unlikely]]
    return result;
  {
    Operation operation{*this, own};
    KeyLocation location = keys_.location_of({db, key});
    if (!operation.admit(location, {db, key})) [[unlikely]]
      return ErrorCode::section_held;
    operation.keep_up(now);
    const Entry* live = nullptr;
    if constexpr (!std::is_same_v<std::remove_cvref_t<Answers>, NoFastAnswer>) {
      live = keys_.probe_with_prefetch(location, key, now);
    }
    if (live != nullptr && answers(*live)) {
      version = live->version();
    } else {
      result = decide_at(operation, location, {db, key}, now, decide, version);
    }
  }
  if (own.drain_due) [[unlikely]]
    drain_own_timers(own);
  return result;
}

template <class KeyAt, class Run>
void Core::group(std::size_t count, Timestamp& now, KeyAt&& key_at, Run&& run) {
  ThreadContext& own = threads_.context();
  std::array<KeyLocation, group_max> locations;
  {
    Operation operation{*this, own};
    for (std::size_t i = 0; i < count; ++i) {
      const KeyRef key = key_at(i);
      locations[i] = keys_.location_of({static_cast<std::uint8_t>(key.db & 15), key.key});
    }
    keys_.prefetch(
        count, [&](std::size_t i) { return locations[i].hash; }, 56);
    for (std::size_t i = 0; i < count; ++i) {
      const KeyRef key = key_at(i);
      if (!operation.admit(locations[i], {static_cast<std::uint8_t>(key.db & 15), key.key})) {
        locations[i].shard = nullptr;
      }
      operation.keep_up(now);
      run(i, operation, locations[i]);
    }
  }
  if (own.drain_due) [[unlikely]]
    drain_own_timers(own);
}

template <class Decide>
ErrorCode Core::update_exclusive(std::uint8_t db, Bytes key, Timestamp now, Decide&& decide,
                                 Version& version, MutationSink& sink) {
  if (const ErrorCode bad = keys_.check(db, key); bad != ErrorCode::ok) [[unlikely]]
    return bad;
  ThreadContext& own = threads_.context();
  // The section keeps others out, but memory is still given back by epochs.
  Operation operation{*this, own};
  const KeyLocation location = keys_.location_of({db, key});
  return decide_at(operation, location, {db, key}, now, decide, version, &sink);
}

template <class Decide>
ErrorCode Core::decide_at(Operation& operation, KeyLocation location, KeyRef key, Timestamp& now,
                          Decide& decide, Version& version, MutationSink* sink) {
  SEMEL_ASSERT(location.shard != nullptr);
  if (sink == nullptr && keys_.is_own(operation.context(), *location.shard)) [[unlikely]] {
    sink = operation.context().section;
  }
  ColdLook beyond;
  for (Room tried = Room::nothing;;) {
    if (sink == nullptr) operation.keep_up(now);
    const TableProbe probe = keys_.find(location, key.key);
    const Entry* const old =
        probe.state == TableProbe::State::found ? &keys_.entry(probe.seen) : nullptr;
    const bool live = old != nullptr && keys_.databases().lives(*old, now);
    if (live && old->pending()) [[unlikely]] {
      wait_for_append(*old);
      operation.note_wait();
      continue;
    }
    Change change{.key = key.key,
                  .now = now,
                  .old = old,
                  .live = live,
                  .floor = old != nullptr ? old->version() : probe.floor,
                  .sink = sink};
    RecordView view;
    if (live) {  // each field by itself: a copy of the whole waits for the stores before it
      view.kind = old->kind();
      view.value = old->value();
      view.due = old->due();
      view.version = change.floor;
      view.raw = old->is_raw();
    }
    if (old == nullptr && options_.cold != nullptr) [[unlikely]] {
      const ColdAnswer answer = ask_cold(operation, location, key, beyond, sink != nullptr);
      if (answer == ColdAnswer::look_again) continue;
      if (answer == ColdAnswer::failed) return beyond.error;
      if (answer == ColdAnswer::present) {
        take_cold(beyond.copy(), change);
        view = beyond.copy().view;
      }
    }
    const NextVersion next{versions_, operation.context(), change.floor};
    const Decision decision = decide(change.live ? &view : nullptr, next);
    if (decision.action == Action::keep || (decision.action == Action::erase && !change.live)) {
      version = change.live ? view.version : 0;
      return ErrorCode::ok;
    }
    const std::optional<ErrorCode> done =
        apply_decision(operation.context(), location, probe, change, decision, version);
    if (!done) [[unlikely]]
      continue;
    if (*done != ErrorCode::memory_full) [[likely]]
      return *done;
    if (!operation.reclaim(tried)) return refuse(operation.context());
    if (sink == nullptr && !operation.admit(location, key)) return ErrorCode::section_held;
  }
}

}  // namespace semel::engine
