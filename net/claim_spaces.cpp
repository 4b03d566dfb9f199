#include "net/claim_spaces.hpp"

namespace semel::net {

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
  if (claims) remember(name, *claims);
  return claims;
}

Result<Claims> ClaimSpaces::declare(Bytes name, const Policy& policy) {
  const std::lock_guard lock{mutex_};
  const Result<Claims> before = engine_.claims(name);
  if (before && before->policy().db != policy.db) {
    return Error{ErrorCode::bad_namespace, elsewhere(*before, policy.db)};
  }
  Result<Claims> claims = engine_.claims(name, policy);
  if (claims) remember(name, *claims);
  return claims;
}

std::string ClaimSpaces::elsewhere(const Claims& claims, std::uint8_t db) {
  return "lives in database " + std::to_string(claims.policy().db) + ", not " + std::to_string(db);
}

}  // namespace semel::net
