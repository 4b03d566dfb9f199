// See semel/patterns/guards.hpp.
#include "semel/patterns/guards.hpp"

#include <algorithm>
#include <limits>

#include "semel/engine.hpp"
#include "semel/engine_host.hpp"
#include "semel/patterns/keys.hpp"

namespace semel {

Result<DecrementResult> decrement_if_at_least(Store store, Bytes key, std::int64_t amount,
                                              std::int64_t floor) {
  if (amount < 1) {
    return Error{ErrorCode::bad_option,
                 "amount must be 1..9223372036854775807, not " + std::to_string(amount)};
  }
  SEMEL_TRY(outcome, store.increx(key, IncrexOptions{.by = -amount, .lower = floor}));
  return DecrementResult{.taken = outcome.applied != 0, .left = outcome.value};
}

Result<TransitionResult> transition(Store store, Bytes key, Bytes from, Bytes to, Expiry expiry) {
  if (to.empty()) return Error{ErrorCode::bad_option, "the state to move to is empty"};
  const SetOptions options{.condition = from.empty() ? Condition::if_absent : Condition::if_equal,
                           .operand = from,
                           .expiry = expiry,
                           .get = true};
  std::string moved_to{to};  // before it is there: without memory for the answer nothing moves
  SEMEL_TRY(outcome, store.set(key, to, options));
  return TransitionResult{
      .moved = outcome.stored,
      .state = outcome.stored ? std::move(moved_to) : std::move(outcome.previous).value_or("")};
}

SeenBefore::SeenBefore(Store store, Bytes name, Duration window)
    : store_(store), name_(name), window_(window) {}

std::string SeenBefore::key_of(std::span<const Bytes> fields) const {
  std::vector<Bytes> all{name_};
  all.insert(all.end(), fields.begin(), fields.end());
  return composite_key(all);
}

Result<bool> SeenBefore::is_first(std::span<const Bytes> fields) {
  if (fields.empty()) return Error{ErrorCode::key_empty, "no field of '" + name_ + "'"};
  SEMEL_TRY(outcome,
            store_.set(key_of(fields), "1",
                       {.condition = Condition::if_absent, .expiry = Expiry::in(window_)}));
  return outcome.stored;
}

std::vector<Result<bool>> SeenBefore::are_first(Engine& engine, std::span<const Bytes> ids) {
  std::vector<Result<bool>> first;
  first.reserve(ids.size());
  std::vector<std::string> keys;
  std::vector<StoreOp> ops;
  std::vector<StoreOutcome> outcomes;
  for (std::size_t begin = 0; begin < ids.size(); begin += limits::batch_max) {
    const auto part = ids.subspan(begin, std::min(limits::batch_max, ids.size() - begin));
    keys.clear();
    ops.clear();
    for (const Bytes& id : part) keys.push_back(key_of({&id, 1}));
    for (const std::string& key : keys) {
      ops.push_back({.verb = Verb::set,
                     .db = store_.db(),
                     .condition = Condition::if_absent,
                     .expiry = Expiry::in(window_),
                     .key = key,
                     .value = "1"});
    }
    outcomes.resize(ops.size());
    engine.host().apply(ops, outcomes);
    for (const StoreOutcome& outcome : outcomes) {
      if (outcome.error == ErrorCode::ok) {
        first.emplace_back(outcome.applied);
      } else {
        first.emplace_back(Error{outcome.error, "id " + std::to_string(first.size()) + " of " +
                                                    std::to_string(ids.size())});
      }
    }
  }
  return first;
}

Result<bool> SeenBefore::forget(std::span<const Bytes> fields) {
  return store_.del(key_of(fields));
}

}  // namespace semel
