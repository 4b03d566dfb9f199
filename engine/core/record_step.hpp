// One atomic change of one record: find, decide (a pure function), one compare-and-set, then its
// mutation, timer and counters. If the compare-and-set loses,
// find and decide again.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/core/cold_look.hpp"
#include "engine/core/core.hpp"
#include "engine/core/operation.hpp"
#include "engine/rules/record.hpp"

namespace semel::engine {

struct PlainPlace;

/// On the stack of the call that it serves, inside that call's operation.
class RecordStep {
 public:
  /// `key` has passed KeySpace::check() and its shard was admitted. `sink`: the section that the
  /// change is a part of; null: none. `first`: what a look within the operation has found, which
  /// the step begins with; State::full: it looks itself.
  RecordStep(Core& core, Operation& operation, const KeyLocation& location, KeyRef key,
             MutationSink* sink, const TableProbe& first) noexcept
      : core_(core),
        operation_(operation),
        location_(location),
        key_(key),
        sink_(sink),
        probe_(first) {}

  /// `now` is read again after each wait, before `decide` runs.
  template <class Decide>
  [[nodiscard]] ErrorCode run(Timestamp& now, Decide& decide, Version& version);

 private:
  /// The newest known state of the key. Invariants: live implies old or cold; old and cold are not
  /// both there; floor >= the version of either.
  struct Seen {
    const Entry* old = nullptr;  ///< in the table; null: none
    Entry::Head head;            ///< of it
    bool live = false;           ///< it has not ended
    Version floor = 0;           ///< the next change gets a larger version
    Timestamp now{};
    const ColdRecord* cold = nullptr;  ///< the copy beyond the table, if that has nothing
  };

  /// Of a key for which the table has nothing. ok: `seen_` and `view` have the copy, if there is
  /// one. None: look again.
  [[nodiscard]] std::optional<ErrorCode> look_beyond(RecordView& view);
  /// Stores or erases in the slot that was found. None: the slot has changed, so find and decide
  /// again.
  [[nodiscard]] std::optional<ErrorCode> apply(const Decision& decision, Version& version) {
    if (!core_.is_alone() || sink_ != nullptr || may_be_large(decision.kind)) {
      return apply_any(decision, version);
    }
    return decision.action == Action::erase ? erase_plain(version) : store_plain(decision, version);
  }
  [[nodiscard]] std::optional<ErrorCode> apply_any(const Decision& decision, Version& version);
  /// The same where there is neither journal nor cold store nor group, nor a section that it is a
  /// part of, and for a kind that is never large: the change is complete once it is in the table.
  [[nodiscard]] std::optional<ErrorCode> store_plain(const Decision& decision, Version& version);
  [[nodiscard]] std::optional<ErrorCode> erase_plain(Version& version);
  [[nodiscard, gnu::always_inline]] PlainPlace place() const noexcept;
  /// Whether the slot suits them; makes room for timer and retired record.
  [[nodiscard, gnu::always_inline]] bool takes_plain_change() noexcept;
  /// Makes sure of all that the change needs once it is visible, while it can still be refused.
  /// Errors: refused, memory_full, value_too_long.
  [[nodiscard]] ErrorCode prepare(const Decision& decision);
  /// Whether journal and group let the change in.
  [[nodiscard]] bool is_accepted(const Decision& decision) const noexcept;
  /// Makes room for the mutation, and its bytes where those are not the record's.
  void prepare_mutation(const Decision& decision);
  /// Whether the change is one of an object that is long enough for the journal to keep its trail.
  [[nodiscard]] bool follows_on_old(const Decision& decision) const noexcept;
  /// Whether the journal keeps it, so that the bytes of the whole object are not needed.
  [[nodiscard]] bool is_kept_as_trail(const Decision& decision) const noexcept;
  /// Errors: memory_full.
  [[nodiscard]] ErrorCode make_fresh(const Decision& decision, Version version,
                                     const Entry*& fresh);
  /// Whether an erase leaves a delete marker, although no older copy has to be kept away.
  [[nodiscard]] bool leaves_marker() const noexcept {
    constexpr unsigned far_from_home = 4;  // where random keys rarely lie
    return slot::distance(probe_.prefix) >= far_from_home;
  }
  /// The same of an erase. Leaves `remains` null where a tombstone is enough.
  [[nodiscard]] ErrorCode make_remains(Version version, const Entry*& remains);
  /// Publishes `fresh`; a tombstone if it is null. False: the slot has changed, or a large object
  /// has a newer version.
  [[nodiscard]] bool publish(const Decision& decision, const Entry* fresh,
                             Version version) noexcept;
  /// After that: frees `fresh`, unless it is 0. Find and decide again.
  [[nodiscard, gnu::cold]] std::optional<ErrorCode> lose_race(Handle fresh) noexcept;
  [[nodiscard]] bool swap_in(Handle handle) noexcept {
    return location_.shard->table.publish(probe_, handle);
  }
  /// swap_in() with what else becomes visible with the record.
  [[nodiscard]] bool publish_object(const Decision& decision, Handle handle) noexcept;
  /// Gives the change to the journal, or to the section that it is a part of.
  void append_mutation(const Decision& decision, const Entry* fresh, Version version) noexcept;
  void check_invariants() const noexcept {
    SEMEL_ASSERT_SLOW(!seen_.live || seen_.old != nullptr || seen_.cold != nullptr);
    SEMEL_ASSERT_SLOW(seen_.old == nullptr || seen_.cold == nullptr);
    SEMEL_ASSERT_SLOW(seen_.old == nullptr || seen_.floor == seen_.old->version());
    SEMEL_ASSERT_SLOW((probe_.state == TableProbe::State::found) == (seen_.old != nullptr));
  }

  Core& core_;
  Operation& operation_;
  KeyLocation location_;
  const KeyRef key_;
  MutationSink* const sink_;
  TableProbe probe_;
  Seen seen_;
  std::optional<ColdLook> beyond_;  // most engines have nothing there
  Room tried_ = Room::nothing;
};

template <class Decide>
ErrorCode RecordStep::run(Timestamp& now, Decide& decide, Version& version) {
  for (bool is_first = true;; is_first = false) {
    if (sink_ == nullptr) operation_.keep_up(now);
    if (!is_first || probe_.state == TableProbe::State::full) {
      probe_ = core_.keys().find(location_, key_.key);
    }
    const Entry* const old =
        probe_.state == TableProbe::State::found ? &core_.keys().entry(probe_.seen) : nullptr;
    const Entry::Head head = old != nullptr ? Entry::Head{*old} : Entry::Head{};
    const bool live = old != nullptr && core_.databases().lives(head, now);
    if (live && old->pending()) [[unlikely]] {
      wait_for_append(*old);
      operation_.note_wait();
      continue;
    }
    seen_ = {.old = old,
             .head = head,
             .live = live,
             .floor = old != nullptr ? head.version() : probe_.floor,
             .now = now,
             .cold = nullptr};
    RecordView view;
    if (live) {  // each field by itself: a copy of the whole waits for the stores before it
      view.kind = head.kind();
      view.value = head.value();
      view.due = head.due();
      view.version = seen_.floor;
      view.raw = head.is_raw();
    }
    if (old == nullptr && core_.cold() != nullptr) [[unlikely]] {
      const std::optional<ErrorCode> looked = look_beyond(view);
      if (!looked) continue;
      if (*looked != ErrorCode::ok) return *looked;
    }
    check_invariants();
    const NextVersion next{core_.versions(), operation_.context(), seen_.floor};
    const Decision decision = decide(seen_.live ? &view : nullptr, next);
    if (decision.action == Action::keep || (decision.action == Action::erase && !seen_.live)) {
      version = seen_.live ? view.version : 0;
      if (seen_.live && !decision.only_looks) {
        const bool only_looks = operation_.context().only_looks;
        core_.uses().note_read(only_looks, key_.db, location_.hash, now);
      }
      return ErrorCode::ok;
    }
    const std::optional<ErrorCode> done =
        decision.no_memory ? std::optional{ErrorCode::memory_full} : apply(decision, version);
    if (!done) [[unlikely]]
      continue;
    if (*done != ErrorCode::memory_full) [[likely]]
      return *done;
    if (!operation_.reclaim(tried_)) return operation_.refuse();
    if (sink_ == nullptr && !operation_.admit(location_, key_)) return ErrorCode::section_held;
  }
}

}  // namespace semel::engine
