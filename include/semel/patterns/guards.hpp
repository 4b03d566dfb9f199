// Changes that are made only if the state still is what the caller thinks: each one call, one step.
// compare_and_set is a member of Store.
//
//   auto paid = decrement_if_at_least(store, "balance:7", 300);   // no if there are less than 300
//   auto sent = transition(store, "order:7:state", "paid", "sent");
//
// Source: docs/patterns.md#guarded-changes
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "semel/store.hpp"

namespace semel {

struct DecrementResult {
  using is_answer = void;  // `if (decrement_if_at_least(..))` does not compile: ask taken
  bool taken = false;
  std::int64_t left = 0;  ///< the number now
};

/// Takes `amount` (1..2^63-1) from the number at `key` if at least that much is left above `floor`.
/// No number: 0. The ttl stays. Errors: bad_option (amount), not_an_integer, wrong_type, and those
/// of Store.
[[nodiscard]] Result<DecrementResult> decrement_if_at_least(Store store, Bytes key,
                                                            std::int64_t amount,
                                                            std::int64_t floor = 0);

struct TransitionResult {
  using is_answer = void;  // ask moved
  bool moved = false;
  std::string state;  ///< what it is now; empty: there is none
};

/// Moves the state at `key` from `from` to `to`. An empty `from`: there must be none yet.
/// The ttl is `expiry`'s. Errors: bad_option (`to` is empty), and those of Store.
[[nodiscard]] Result<TransitionResult> transition(Store store, Bytes key, Bytes from, Bytes to,
                                                  Expiry expiry = Expiry::keep());

/// A set of recently seen keys: a table with a unique index that does not grow for ever. With
/// Options::cold its window may be larger than memory.
class SeenBefore {
 public:
  /// Keys are stored as "name|field|field"; the name is copied.
  SeenBefore(Store store, Bytes name, Duration window);

  /// True for the first of any number of callers with these fields within the window. Errors:
  /// key_empty (no field), those of Store; the caller knows nothing then.
  [[nodiscard]] Result<bool> is_first(std::span<const Bytes> fields);
  [[nodiscard]] Result<bool> is_first(std::initializer_list<Bytes> fields) {
    return is_first(std::span{fields.begin(), fields.size()});
  }
  /// The same for any number of ids of one field, in one call: for each what is_first() would say,
  /// in order. An error of one (a key too long, no room) is that one's alone.
  [[nodiscard]] std::vector<Result<bool>> are_first(Engine& engine, std::span<const Bytes> ids);
  /// Forgets it: the next is the first.
  [[nodiscard]] Result<bool> forget(std::span<const Bytes> fields);

 private:
  [[nodiscard]] std::string key_of(std::span<const Bytes> fields) const;

  Store store_;
  std::string name_;
  Millis window_;
};

}  // namespace semel
