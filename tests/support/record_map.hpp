// The truth table over a std::map: what the store would do if there were no table, no threads and
// no memory limit. Shared by the tests of the truth table.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "engine/rules/string_rules.hpp"
#include "semel/limits.hpp"

namespace semel::tests {

class RecordMap {
 public:
  struct Held {
    Kind kind = Kind::string;
    std::string value{};
    Timestamp due = no_end;
    Version version = 0;
  };

  explicit RecordMap(std::size_t value_bytes_max = limits::value_bytes_default)
      : value_bytes_max_(value_bytes_max) {}

  /// Validates, decides and carries out, as an engine does. Keys may be empty.
  StoreOutcome apply(const StoreOp& op, Timestamp now) {
    StoreOutcome outcome;
    outcome.error = engine::validate(op, limits::key_bytes_max, value_bytes_max_);
    if (outcome.error != ErrorCode::ok) return outcome;
    const std::string key{op.key};
    const Held* const held = find(key, now);
    engine::RecordView view;
    if (held != nullptr) view = {held->kind, held->value, held->due, held->version};
    const engine::Decision decision = engine::decide(held != nullptr ? &view : nullptr, op, now,
                                                     value_bytes_max_, outcome, scratch_);
    action = decision.action;
    if (decision.action == engine::Action::erase) records_.erase(key);
    if (decision.action == engine::Action::store) {
      Held fresh{decision.kind, std::string{decision.value}, decision.due, ++version_};
      records_[key] = std::move(fresh);
    }
    return outcome;
  }

  /// The live record or null.
  [[nodiscard]] const Held* find(const std::string& key, Timestamp now) const {
    const auto at = records_.find(key);
    return at != records_.end() && at->second.due > now ? &at->second : nullptr;
  }
  void put(const std::string& key, Held held) { records_[key] = std::move(held); }
  void erase(const std::string& key) { records_.erase(key); }

  // Of the last decision.
  engine::Action action = engine::Action::keep;

 private:
  std::map<std::string, Held> records_;
  std::size_t value_bytes_max_;
  Version version_ = 0;
  std::string scratch_;
};

}  // namespace semel::tests
