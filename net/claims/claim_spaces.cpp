#include "net/claims/claim_spaces.hpp"

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "net/claims/claim_call.hpp"
#include "net/commands/access.hpp"
#include "net/commands/command_docs.hpp"
#include "net/resp/text.hpp"
#include "net/settings/settings.hpp"

namespace semel::net {
namespace {

enum class Creation : std::uint8_t { any, declared };  // of the setting namespace-creation

/// A first claim declares its namespace if the client could have done it by SEMEL.NAMESPACE.
[[nodiscard]] bool may_create(Call& call, std::string_view name) {
  const auto creation = call.services.settings.choice<Creation>(Setting::namespace_creation);
  if (creation == Creation::declared) return false;
  const std::array<std::string_view, 3> words{declare_row().name, "declare", name};
  const Call asked{call.services, call.engine, call.client, words, call.reply};
  return could_run(asked).value_or(false);
}

[[nodiscard]] Result<Claims> create(Call& call, std::string_view name) {
  Result<Claims> claims = call.engine.claims(name, Policy{.db = call.client.db});
  // Another client declared it first, with its own policy.
  if (!claims && claims.error().code == ErrorCode::namespace_differs) {
    claims = call.engine.claims(name);
  }
  return claims;
}

[[nodiscard]] FoundSpace in_its_database(Call& call, std::string_view name) {
  Claims& claims = *call.client.space;
  if (claims.policy().db == call.client.db) [[likely]]
    return {.claims = &claims};
  fail_namespace(call, name, elsewhere(claims, call.client.db));
  return {};
}

}  // namespace

FoundSpace find_space(Call& call, std::string_view name) {
  std::optional<Claims>& last = call.client.space;
  const bool known = last && last->name() == name && !last->is_dropped();
  if (!known) {
    Result<Claims> found = call.engine.claims(name);
    if (!found) return {.undeclared = true};
    last.emplace(*std::move(found));
  }
  return in_its_database(call, name);
}

Claims* claims_of(Call& call, std::string_view name) {
  const FoundSpace found = find_space(call, name);
  if (!found.undeclared) [[likely]]
    return found.claims;
  if (Repeat* const repeat = call.context().repeat; repeat != nullptr) {
    repeat->has_missed = true;
    return nullptr;
  }
  if (!may_create(call, name)) {
    fail_namespace(call, name, "it is not declared, and a claim of yours does not declare it");
    return nullptr;
  }
  Result<Claims> created = create(call, name);
  if (!created) {
    fail_namespace(call, name, created.error());
    return nullptr;
  }
  call.client.space.emplace(*std::move(created));
  return in_its_database(call, name).claims;
}

Status import_namespaces(Engine& engine, std::string_view text) {
  std::size_t number = 0;
  for (const std::string_view each : split(text, '\n')) {
    ++number;
    const std::vector<std::string_view> words = split(each, ' ');
    if (words.empty()) continue;
    const auto refused = [number](const std::string& reason) {
      return Error{ErrorCode::bad_namespace, "line " + std::to_string(number) + ": " + reason};
    };
    const auto db = words.size() > 1 ? integer_of(words[1]) : std::nullopt;
    if (!db || *db < 0 || *db >= limits::db_count) {
      return refused("expected a name, a database and a policy");
    }
    Policy policy;
    policy.db = static_cast<std::uint8_t>(*db);
    const Status read = read_policy(std::span{words}.subspan(2), policy);
    if (!read) return refused(read.error().detail);
    const Result<Claims> claims = engine.claims(words[0], policy);
    // The declaration in the storage is newer: later releases do not write the file.
    if (claims || claims.error().code == ErrorCode::namespace_differs) continue;
    return refused(claims.error().message());
  }
  return Done{};
}

std::string elsewhere(const Claims& claims, std::uint8_t db) {
  return "lives in database " + std::to_string(claims.policy().db) + ", not " + std::to_string(db);
}

}  // namespace semel::net
