// See namespaces.hpp.
#include "engine/namespaces.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace semel {
namespace {

[[nodiscard]] bool same_policy(const Policy& a, const Policy& b) noexcept {
  return a.lease == b.lease && a.result_ttl == b.result_ttl && a.unique_ttl == b.unique_ttl &&
         a.failure_ttl == b.failure_ttl && a.attempts_ttl == b.attempts_ttl &&
         a.window == b.window && a.ahead == b.ahead && a.issued == b.issued && a.fair == b.fair &&
         a.retry_after_max == b.retry_after_max && a.attempts_max == b.attempts_max &&
         a.on_lease_end == b.on_lease_end && a.on_failure == b.on_failure && a.strict == b.strict &&
         a.fail_open == b.fail_open && a.db == b.db && a.on_exception == b.on_exception;
}

}  // namespace

Claims::Namespace::Namespace(Bytes name, const Policy& policy) : prefix_(name) {
  prefix_.push_back(':');
  static_cast<void>(adopt(policy));  // the first is always taken
}

bool Claims::Namespace::adopt(const Policy& policy) {
  auto known = std::find_if(kept_.begin(), kept_.end(),
                            [&](const auto& kept) { return same_policy(*kept, policy); });
  if (known == kept_.end()) {
    if (kept_.size() >= limits::namespace_policies_max) return false;
    kept_.push_back(std::make_unique<const Policy>(policy));
    known = std::prev(kept_.end());
  }
  // mo: release [namespaces.policy]: the policy is complete before a call can read it.
  policy_.store(known->get(), std::memory_order_release);
  return true;
}

namespace engine {
namespace {

[[nodiscard]] Error out_of_range(std::string_view field, std::int64_t value, std::int64_t least,
                                 std::int64_t most) {
  std::string detail{"Policy::"};
  detail.append(field).append(" = ").append(std::to_string(value));
  detail.append(", allowed ").append(std::to_string(least));
  detail.append("..").append(std::to_string(most));
  return {ErrorCode::bad_option, std::move(detail)};
}

struct TimeField {
  std::string_view name;
  Millis value;
  std::int64_t least;
};

}  // namespace

bool is_namespace_name(Bytes name) noexcept {
  if (name.empty() || name.size() > limits::namespace_name_max) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

Status check_policy(const Policy& policy) {
  const TimeField times[] = {
      {"lease", policy.lease, 1},
      {"result_ttl", policy.result_ttl, 1},
      {"unique_ttl", policy.unique_ttl, 0},
      {"failure_ttl", policy.failure_ttl, 1},
      {"attempts_ttl", policy.attempts_ttl, 1},
      {"window", policy.window, 0},
      {"ahead", policy.ahead, 0},
      {"retry_after_max", policy.retry_after_max, 1},
  };
  for (const TimeField& time : times) {
    if (time.value.count() < time.least || time.value > limits::ttl_max) {
      return out_of_range(time.name, time.value.count(), time.least, limits::ttl_max.count());
    }
  }
  if (policy.on_lease_end > Policy::OnLeaseEnd::in_doubt) {
    return out_of_range("on_lease_end", static_cast<std::int64_t>(policy.on_lease_end), 0, 1);
  }
  if (policy.on_failure > Policy::OnFailure::keep) {
    return out_of_range("on_failure", static_cast<std::int64_t>(policy.on_failure), 0, 1);
  }
  if (policy.on_exception > Policy::OnFailure::in_doubt) {
    return out_of_range("on_exception", static_cast<std::int64_t>(policy.on_exception), 0, 2);
  }
  if (policy.db >= limits::db_count) {
    return out_of_range("db", policy.db, 0, limits::db_count - 1);
  }
  return Done{};
}

Result<const Claims::Namespace*> Namespaces::declare(Bytes name, const Policy& policy) {
  if (!is_namespace_name(name)) {
    std::string detail{"name of "};
    detail.append(std::to_string(name.size())).append(" bytes, allowed 1..");
    detail.append(std::to_string(limits::namespace_name_max)).append(" of [A-Za-z0-9_.-]");
    return Error{ErrorCode::bad_namespace, std::move(detail)};
  }
  SEMEL_TRY(checked, check_policy(policy));
  static_cast<void>(checked);  // Done carries nothing

  const std::lock_guard lock{mutex_};
  const auto known = by_name_.find(name);
  if (known != by_name_.end()) {
    if (known->second->adopt(policy)) return known->second.get();
    return Error{ErrorCode::bad_namespace, "more than " +
                                               std::to_string(limits::namespace_policies_max) +
                                               " different policies for one namespace"};
  }
  if (by_name_.size() >= limits::namespace_count_max) {
    std::string detail{"more than "};
    detail.append(std::to_string(limits::namespace_count_max)).append(" namespaces");
    return Error{ErrorCode::bad_namespace, std::move(detail)};
  }
  const auto added =
      by_name_.emplace(std::string{name}, std::make_unique<Claims::Namespace>(name, policy));
  return added.first->second.get();
}

const Claims::Namespace* Namespaces::find(Bytes name) const {
  const std::lock_guard lock{mutex_};
  const auto known = by_name_.find(name);
  return known == by_name_.end() ? nullptr : known->second.get();
}

const Claims::Namespace* Namespaces::find_by_key(Bytes table_key) const {
  const std::size_t colon = table_key.substr(0, limits::namespace_name_max + 1).find(':');
  return colon == Bytes::npos ? nullptr : find(table_key.substr(0, colon));
}

std::vector<std::string> Namespaces::names() const {
  const std::lock_guard lock{mutex_};
  std::vector<std::string> names;
  names.reserve(by_name_.size());
  for (const auto& [name, space] : by_name_) names.push_back(name);
  return names;
}

}  // namespace engine
}  // namespace semel
