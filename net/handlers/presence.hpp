// Which keys of a command that touches several existed before it, for keyspace events: a section
// holds the keys from this look to the end of the command.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "net/commands/command.hpp"
#include "semel/engine.hpp"
#include "semel/engine_host.hpp"

namespace semel::net {

class Presence {
 public:
  /// Looks only if events of `event_class` are published; otherwise it holds and costs nothing.
  Presence(Call& call, char event_class, std::span<const Bytes> keys) {
    if (!call.notifies(event_class)) return;
    std::vector<KeyRef> refs;
    refs.reserve(keys.size());
    for (const Bytes key : keys) refs.push_back({call.client.db, key});
    Result<Section> section = call.engine.section(refs);
    if (!section) return;  // the command says the same
    section_.emplace(std::move(section).value());
    StoreOutcome found;
    std::set<Bytes> seen;
    for (const Bytes key : keys) {
      call.engine.host().apply({.verb = Verb::exists, .db = call.client.db, .key = key}, found);
      keys_.push_back({found.found, !seen.insert(key).second});
    }
  }

  /// Whether the key was there.
  [[nodiscard]] bool was_there(std::size_t i) const noexcept {
    return i < keys_.size() && keys_[i].was_there;
  }
  /// Whether it was there, or had its turn before.
  [[nodiscard]] bool is_old(std::size_t i) const noexcept {
    return i < keys_.size() && (keys_[i].was_there || keys_[i].is_repeat);
  }
  /// Whether it was there, and has its first turn.
  [[nodiscard]] bool goes(std::size_t i) const noexcept {
    return i < keys_.size() && keys_[i].was_there && !keys_[i].is_repeat;
  }
  /// Whether it is known not to have been there.
  [[nodiscard]] bool was_absent(std::size_t i) const noexcept {
    return i < keys_.size() && !keys_[i].was_there;
  }

  /// Calls `change()`, which returns a Result or Status, within the section that is held, and ends
  /// the section.
  template <class Change>
  [[nodiscard]] auto around(Change&& change) -> decltype(change()) {
    auto result = change();
    if (!section_) return result;
    const Status done = section_->commit();
    section_.reset();
    if (result.ok() && !done) return done.error();
    return result;
  }

 private:
  struct Key {
    bool was_there;
    bool is_repeat;
  };
  std::optional<Section> section_{};
  std::vector<Key> keys_{};
};

}  // namespace semel::net
