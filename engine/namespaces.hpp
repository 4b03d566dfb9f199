// The namespaces of an engine: name -> policy. Declared seldom, read by every claim call.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "semel/claims.hpp"

namespace semel {

/// One namespace. Its address stays the same until the engine ends.
class Claims::Namespace {
  // Concurrency of `policy_`
  //   states   points at one of the immutable policies in `kept_`; all of them live until the
  //            engine ends, so a reader may hold the reference as long as it may hold the engine.
  //   writers  declare(), under the registry's mutex. readers  any thread.
  //   [namespaces.policy]  release store in adopt  pairs with  acquire load in policy.
  //   stale    a call under way may still use the policy before a redeclaration. That is the
  //            promise: "a new policy holds for later calls".
 public:
  Namespace(Bytes name, const Policy& policy);
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;

  [[nodiscard]] Bytes name() const noexcept { return Bytes{prefix_}.substr(0, prefix_.size() - 1); }
  /// "name:", what the table key of each record begins with.
  [[nodiscard]] Bytes prefix() const noexcept { return prefix_; }
  [[nodiscard]] const Policy& policy() const noexcept {
    return *policy_.load(std::memory_order_acquire);  // mo: [namespaces.policy], fields read next
  }

  /// Makes `policy` the one of later calls. Callers take turns (the registry's mutex). A policy
  /// that was used before is used again, so that flipping between a few costs no memory. False:
  /// limits::namespace_policies_max others have been used.
  [[nodiscard]] bool adopt(const Policy& policy);

 private:
  std::string prefix_;
  std::vector<std::unique_ptr<const Policy>> kept_;
  std::atomic<const Policy*> policy_{nullptr};
};

namespace engine {

/// True if `name` is 1..limits::namespace_name_max bytes of [A-Za-z0-9_.-].
[[nodiscard]] bool is_namespace_name(Bytes name) noexcept;

/// Errors: bad_option (names the field, its value and its range).
[[nodiscard]] Status check_policy(const Policy& policy);

/// All namespaces of one engine; safe from any thread. Progress: blocks on a mutex, so callers
/// keep the pointer instead of asking for each call.
class Namespaces {
 public:
  /// Errors: bad_namespace (name, or more than limits::namespace_count_max or
  /// namespace_policies_max), bad_option.
  [[nodiscard]] Result<const Claims::Namespace*> declare(Bytes name, const Policy& policy);
  /// Null: not declared.
  [[nodiscard]] const Claims::Namespace* find(Bytes name) const;
  /// The namespace whose records a table key "name:key" belongs to. Null: none declared.
  [[nodiscard]] const Claims::Namespace* find_by_key(Bytes table_key) const;
  /// The names of all, in order.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Claims::Namespace>, std::less<>> by_name_;
};

}  // namespace engine
}  // namespace semel
