#include "net/claim_spaces.hpp"

#include <utility>

#include "net/claim_words.hpp"
#include "net/command_docs.hpp"
#include "net/text.hpp"

namespace semel::net {

// A line for each: "NAME DB WORDS..", the words being those of SEMEL.NAMESPACE.

Status ClaimSpaces::store_all() const {
  if (!store_) return Done{};
  std::string text;
  for (const std::string& name : engine_.namespaces()) {
    const Result<Claims> claims = engine_.claims(name);
    if (!claims) continue;
    text += name + " " + std::to_string(claims->policy().db) + " " +
            policy_words(claims->policy()) + "\n";
  }
  if (store_(text)) return Done{};
  return Error{ErrorCode::storage_failed, "it could not be written down"};
}

void ClaimSpaces::keep_in(Store store) {
  const std::lock_guard lock{mutex_};
  store_ = std::move(store);
}

std::optional<std::string> ClaimSpaces::restore(std::string_view text) {
  std::size_t number = 0;
  for (const std::string_view each : split(text, '\n')) {
    ++number;
    const std::vector<std::string_view> words = split(each, ' ');
    if (words.empty()) continue;
    const std::string line = "line " + std::to_string(number) + ": ";
    const auto db = words.size() > 1 ? integer_of(words[1]) : std::nullopt;
    if (!db || *db < 0 || *db >= limits::db_count) {
      return line + "expected a name, a database and a policy";
    }
    Policy policy;
    policy.db = static_cast<std::uint8_t>(*db);
    if (auto fault = read_policy(std::span{words}.subspan(2), policy); !fault.empty()) {
      return line + fault;
    }
    if (const auto claims = declare(words[0], policy); !claims) {
      return line + claims.error().message();
    }
  }
  return std::nullopt;
}

void ClaimSpaces::remember(Bytes name, const Claims& claims) {
  if (known(name)) return;
  spaces_.push_back(std::make_unique<const Space>(Space{std::string{name}, claims}));
  std::size_t at = hash_of(name);
  // mo: relaxed: written under the mutex that we hold.
  while (slots_[at % slot_count].load(std::memory_order_relaxed) != nullptr) ++at;
  // mo: release [claim_spaces.slot]: the space is complete before anyone can find it.
  slots_[at % slot_count].store(spaces_.back().get(), std::memory_order_release);
}

Result<Claims> ClaimSpaces::open(Bytes name, std::uint8_t db) {
  const std::lock_guard lock{mutex_};
  Result<Claims> claims = engine_.claims(name);
  if (!claims) claims = engine_.claims(name, Policy{.db = db});
  if (!claims) return claims;
  SEMEL_TRY(stored, store_all());
  static_cast<void>(stored);
  remember(name, *claims);
  return claims;
}

Result<Claims> ClaimSpaces::declare(Bytes name, const Policy& policy) {
  const std::lock_guard lock{mutex_};
  const Result<Claims> before = engine_.claims(name);
  if (before && before->policy().db != policy.db) {
    return Error{ErrorCode::bad_namespace, elsewhere(*before, policy.db)};
  }
  Result<Claims> claims = engine_.claims(name, policy);
  if (!claims) return claims;
  SEMEL_TRY(stored, store_all());
  static_cast<void>(stored);
  remember(name, *claims);
  return claims;
}

std::string ClaimSpaces::elsewhere(const Claims& claims, std::uint8_t db) {
  return "lives in database " + std::to_string(claims.policy().db) + ", not " + std::to_string(db);
}

}  // namespace semel::net
