// The namespaces of claims as clients name them: found by name, and declared by their first claim
// if that is allowed, so that a claim needs no preparation.
//
// A namespace belongs to the database in which it was declared. A client of another database is
// refused: it would look for its claims in the wrong place, and repeat finished work. The engine
// keeps namespaces, and its journal stores them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "semel/claims.hpp"

namespace semel::net {

struct Call;

/// The result of a look-up by name.
struct FoundSpace {
  Claims* claims = nullptr;  ///< valid until the client's next command; null: see below
  bool undeclared = false;   ///< there is no such namespace, and no reply is written
};

/// The namespace `name` of the client's database. If it is neither found nor undeclared, the error
/// is written. Progress: the client's last one costs a comparison, others a shared mutex.
[[nodiscard]] FoundSpace find_space(Call& call, std::string_view name);

/// The same, for a claim: declared with the default policy if it is unknown and the client may.
/// Null: the error is written.
[[nodiscard]] Claims* claims_of(Call& call, std::string_view name);

/// Imports the file `namespaces` of releases up to 0.1: a line "NAME DB WORDS.." for each, with the
/// arguments of SEMEL.NAMESPACE. Declares missing ones. The detail of an error begins with its
/// line.
[[nodiscard]] Status import_namespaces(Engine& engine, std::string_view text);

/// "lives in database 0, not 3".
[[nodiscard]] std::string elsewhere(const Claims& claims, std::uint8_t db);

}  // namespace semel::net
