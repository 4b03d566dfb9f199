// A recorded history: the calls of each thread, their answers, and when they began and ended.
//
// Words: an *object* is a group of keys that are checked together (one key, or the keys that
// sections touch together); a *step* is one operation on one key of an object with the outcome
// seen; a *call* is a list of steps that happened at one instant (a section), or just one.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tests/proofs/model/oracle.hpp"

namespace semel::proofs {

/// A store operation that owns its bytes.
struct StoreCall {
  StoreOp op;
  std::string key;
  std::string value;
  std::string operand;
  Arithmetic arithmetic;
  bool has_arithmetic = false;

  /// The operation with its views pointing here; valid as long as this is not moved or changed.
  [[nodiscard]] StoreOp view() const {
    StoreOp op_here = op;
    op_here.key = key;
    op_here.value = value;
    op_here.operand = operand;
    op_here.arithmetic = has_arithmetic ? &arithmetic : nullptr;
    return op_here;
  }
};

/// A claim request that owns its bytes.
struct ClaimCall {
  ClaimRequest request;
  std::string key;
  std::string owner;
  std::uint32_t session = 0;  ///< its small number

  [[nodiscard]] ClaimRequest view() const {
    ClaimRequest here = request;
    here.key = key;
    here.owner = owner;
    return here;
  }
};

struct OwnedOwnerCall {
  OwnerVerb verb = OwnerVerb::complete;
  OwnerCall call;
  std::string key;
  std::string payload;

  [[nodiscard]] OwnerCall view() const {
    OwnerCall here = call;
    here.key = key;
    here.payload = payload;
    return here;
  }
};

struct StoreStep {
  StoreCall call;
  StoreOutcome seen;
};
struct ClaimStep {
  ClaimCall call;
  ClaimOutcome seen;
};
struct OwnerStep {
  OwnedOwnerCall call;
  OwnerOutcome seen;
};
/// A session was closed: every key may look different from now on.
struct CloseSession {
  std::uint32_t session = 0;
};
/// A snapshot showed the key like this, or did not show it.
struct Shown {
  bool present = false;
  Kind kind = Kind::string;
  Ms due = never;
  Version version = 0;
  std::string value;
};

struct Step {
  std::uint32_t key = 0;  ///< within the object
  std::variant<StoreStep, ClaimStep, OwnerStep, CloseSession, Shown> what;
};

inline constexpr std::size_t no_call = static_cast<std::size_t>(-1);

struct Call {
  std::uint64_t invoked = 0;  ///< moments are drawn from one counter: no two are equal
  std::uint64_t returned = 0;
  Ms clock_before = 0;  ///< read before the call was invoked and after it returned; the call's own
  Ms clock_after = 0;   ///< reading is some value the clock had between
  std::size_t after = no_call;  ///< index of a call of the same object that must come first (the
                                ///< earlier operation of one batch)
  std::uint32_t thread = 0;
  std::vector<Step> steps;
};

/// All calls on one object.
struct History {
  std::uint32_t key_count = 1;
  Policy policy{};               ///< of the claims among the keys
  std::int64_t unix_zero = 0;    ///< wall clock minus engine clock
  std::vector<Ms> clock_values;  ///< every value the clock had, ascending
  std::vector<Call> calls;       ///< in any order
};

/// One line for people.
[[nodiscard]] std::string describe(const Step& step);
[[nodiscard]] std::string describe(const Call& call);

}  // namespace semel::proofs
