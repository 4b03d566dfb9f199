// The namespaces of claims as clients name them: found by name, and declared by their first claim
// where that is allowed, so that a claim needs nothing before it.
//
// A namespace lives in the database in which it was declared. A client that has selected another
// one is refused: it would look for its claims where they are not, and run what was done already.
// The engine keeps them, and its journal writes them down.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "semel/claims.hpp"

namespace semel::net {

struct Call;

/// How a name was found.
struct FoundSpace {
  Claims* claims = nullptr;  ///< valid until the client's next command; null: see below
  bool undeclared = false;   ///< there is no such namespace, and nothing has been written
};

/// The namespace `name` of the client's database. Neither claims nor undeclared: an error has been
/// written. Progress: the one that a client used last costs a comparison, others a shared mutex.
[[nodiscard]] FoundSpace find_space(Call& call, std::string_view name);

/// The same, for a claim: declared with the default policy if it is unknown and the client may.
/// Null: an error has been written.
[[nodiscard]] Claims* claims_of(Call& call, std::string_view name);

/// What releases up to 0.1 wrote into the file `namespaces`: a line "NAME DB WORDS.." for each, the
/// words being those of SEMEL.NAMESPACE. Declares those that are missing. The detail of an error
/// begins with its line.
[[nodiscard]] Status import_namespaces(Engine& engine, std::string_view text);

/// "lives in database 0, not 3".
[[nodiscard]] std::string elsewhere(const Claims& claims, std::uint8_t db);

}  // namespace semel::net
