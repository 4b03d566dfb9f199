// The calls of the interleavings proof: a tiny truth table in the engine's shape, and the question
// whether a history of calls on one key has an order that explains all its answers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "semel/types.hpp"

namespace semel::proofs {

enum class Call : std::uint8_t { claim, complete, release, expire, grow, lookup };
[[nodiscard]] const char* name_of(Call call) noexcept;

enum class Answer : std::uint8_t {
  granted,
  in_flight,
  replay,
  completed,
  completed_before,
  stale_owner,
  unknown,
  released,
  not_owner,
  ended,    ///< expire: it was dead and is buried
  nothing,  ///< expire: nothing to do; lookup: not there
  held,
  done,
  busy,  ///< no memory for growth; a failure in this proof, for there is enough
};
[[nodiscard]] const char* name_of(Answer answer) noexcept;

/// Immutable once published.
struct SlotRecord {
  std::uint8_t key = 0;
  bool is_done = false;
  Version epoch = 0;    ///< version of the grant
  Version version = 0;  ///< of this record
  std::int64_t lease_until = 0;
  std::int64_t due = 0;  ///< dead from then on

  friend bool operator==(const SlotRecord&, const SlotRecord&) = default;
};

struct SlotDecision {
  enum class Action : std::uint8_t { keep, store, erase };
  Action action = Action::keep;
  Answer answer = Answer::unknown;
  SlotRecord fresh;
};

/// Pure. `live` may be null; `next` is the version that a change would get. Not for expire and
/// grow.
[[nodiscard]] SlotDecision decide(Call call, const SlotRecord* live, std::uint8_t key,
                                  Version epoch, Version next, std::int64_t now) noexcept;

/// A call as it was made and answered.
struct CallRecord {
  Call call = Call::claim;
  std::uint8_t key = 0;
  Version epoch = 0;
  std::int64_t now = 0;
  unsigned invoked = 0;
  unsigned returned = 0;
  Answer answer = Answer::unknown;
  Version version = 0;  ///< of the record written or seen; 0: none
};
[[nodiscard]] std::string text_of(const CallRecord& call);

/// A key as one sequential caller would know it.
struct KeyState {
  std::optional<SlotRecord> record;  ///< dead ones too, until they are buried
  Version last = 0;                  ///< no later change may have this version or a smaller one

  /// False: the call cannot have been answered so in this state.
  [[nodiscard]] bool apply(const CallRecord& call) noexcept;
};

/// What the table says at the end.
struct KeyFound {
  std::optional<SlotRecord> record;
  Version floor = 0;  ///< without a record: the next version will be larger
};

/// True if the calls, all on one key, took place in some order that agrees with real time and with
/// each answer, and ends in `found`.
[[nodiscard]] bool is_explained(KeyState start, std::span<const CallRecord> calls,
                                const KeyFound& found);

}  // namespace semel::proofs
