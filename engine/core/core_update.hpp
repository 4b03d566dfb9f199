// Updates of one key, alone, in a section, or among others.
#pragma once

#include <array>
#include <type_traits>

#include "engine/core/record_step.hpp"

namespace semel::engine {

/// Inside an operation, of a key that was admitted: see RecordStep. `sink`: the section that the
/// change is a part of, if that is not the thread's own. `now` is read again after each wait,
/// before `decide` runs. `first`: what a look within this operation has found, or State::full.
template <class Decide>
[[nodiscard]] ErrorCode decide_at(Core& core, Operation& operation, const KeyLocation& location,
                                  KeyRef key, Timestamp& now, Decide& decide, Version& version,
                                  MutationSink* sink = nullptr, const TableProbe& first = {}) {
  SEMEL_ASSERT_SLOW(location.shard != nullptr);
  if (sink == nullptr && core.keys().is_own(operation.context(), *location.shard)) [[unlikely]] {
    sink = operation.context().section;
  }
  return RecordStep{core, operation, location, key, sink, first}.run(now, decide, version);
}

/// A decision of any type, so that the calls which are made seldom share one body. Points to it.
class DecideRef {
 public:
  template <class Decide>
  requires(!std::is_same_v<std::remove_cvref_t<Decide>, DecideRef>) DecideRef(Decide&& decide)
  noexcept  // implicit: any decision is one
      : decide_(const_cast<void*>(static_cast<const void*>(&decide))),
        run_([](void* of, const RecordView* live, const NextVersion& next) -> Decision {
          return (*static_cast<std::remove_reference_t<Decide>*>(of))(live, next);
        }) {}

  [[nodiscard]] Decision operator()(const RecordView* live, const NextVersion& next) const {
    return run_(decide_, live, next);
  }

 private:
  void* decide_;
  Decision (*run_)(void* of, const RecordView* live, const NextVersion& next);
};

/// The same as decide_at(), out of line.
[[nodiscard]] ErrorCode decide_any_at(Core& core, Operation& operation, const KeyLocation& location,
                                      KeyRef key, Timestamp& now, DecideRef decide,
                                      Version& version, MutationSink* sink = nullptr,
                                      const TableProbe& first = {});

struct NoFastAnswer {
  bool operator()(const Entry&) const noexcept { return false; }
};

/// The part of update_unless() inside of its operation, after the look at the home line.
template <class Answers, class Decide>
ErrorCode decide_unless(Core& core, Operation& operation, const KeyLocation& location, KeyRef key,
                        Timestamp& now, const HomeLook& first, Answers&& answers, Decide&& decide,
                        Version& version) {
  const Entry* live = nullptr;
  if constexpr (!std::is_same_v<std::remove_cvref_t<Answers>, NoFastAnswer>) {
    live = core.keys().live_of(first, now);
  }
  if (live == nullptr || !answers(*live)) {
    return decide_at(core, operation, location, key, now, decide, version, nullptr,
                     first.probe(location.hash));
  }
  version = live->version();
  core.uses().note_read(operation.context().only_looks, key.db, location.hash, now);
  return ErrorCode::ok;
}

struct NotLocated {
  void operator()(const KeyLocation&, std::uint64_t) const noexcept {}
};

/// As update(), but `answers(const Entry&)` is asked first about a live record that is found at
/// once: true ends the call without looking again, and without a version being taken.
/// `located(const KeyLocation&, std::uint64_t hash)`: called before the key is looked up.
template <class Answers, class Decide, class Located = NotLocated>
ErrorCode update_unless(Core& core, KeyRef key, Timestamp& now, Answers&& answers, Decide&& decide,
                        Version& version, Located&& located = {}) {
  ThreadContext* const found = core.threads().try_context();
  if (found == nullptr) [[unlikely]]
    return core.why_no_context();
  ThreadContext& own = *found;
  ErrorCode result = core.keys().check(key.db, key.key);
  if (result != ErrorCode::ok) [[unlikely]]
    return result;
  {
    Operation operation{core, own};
    std::uint64_t hash = 0;
    KeyLocation location = core.keys().location_of(key, core.databases().map(), &hash);
    located(location, hash);
    if (!operation.admit(location, key)) [[unlikely]]
      return ErrorCode::section_held;
    operation.keep_up(now);
    const HomeLook first = core.keys().look_home_with_prefetch(location, key.key);
    result = decide_unless(core, operation, location, key, now, first, answers, decide, version);
  }
  if (own.drain_due) [[unlikely]]
    core.upkeep().drain_own_timers(own);
  return result;
}

/// `decide(const RecordView* live, const NextVersion&) -> Decision` may run several times.
/// `version` becomes that of the record written, or seen if kept. `now` moves on if the call had
/// to wait, before `decide` runs: a lease or ttl is never counted from before a wait. Errors:
/// key_empty, key_too_long, db_out_of_range, value_too_long, memory_full, refused.
ErrorCode update(Core& core, KeyRef key, Timestamp& now, DecideRef decide, Version& version);

/// The same where the calls are many: with a body of its own.
template <class Decide>
ErrorCode update_inline(Core& core, KeyRef key, Timestamp& now, Decide&& decide, Version& version) {
  return update_unless(core, key, now, NoFastAnswer{}, decide, version);
}

/// update() inside a section that covers the key.
ErrorCode update_exclusive(Core& core, KeyRef key, Timestamp now, DecideRef decide,
                           Version& version, MutationSink& sink);

/// Up to Core::group_max keys as one operation. The cache misses of the whole group are waited for
/// together, in two rounds: first the slots, then the records they point to.
/// `key_at(i) -> KeyRef`; `run(i, operation, location)`: as after admit(), of a key that was not
/// checked; location.shard is null if that was false. `now` is read again after each wait, before
/// `run`.
template <class KeyAt, class Run>
void for_group(Core& core, std::size_t count, Timestamp& now, KeyAt&& key_at, Run&& run) {
  SEMEL_ASSERT(count <= Core::group_max);
  ThreadContext& own = core.context();
  std::array<KeyLocation, Core::group_max> locations;
  {
    Operation operation{core, own};
    for (std::size_t i = 0; i < count; ++i) {
      const KeyRef key = key_at(i);
      locations[i] = core.keys().location_of({static_cast<std::uint8_t>(key.db & 15), key.key});
    }
    core.keys().prefetch(
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
    core.upkeep().drain_own_timers(own);
}

}  // namespace semel::engine
