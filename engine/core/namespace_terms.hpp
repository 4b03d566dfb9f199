// What a namespace promises, as words and as bytes: checked, compared, written down.
//
// The bytes are the value of a mutation of Kind::name_space, whose key is the name and whose
// database is namespace_db. docs/disk-format.md has the table and an example.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "semel/claim.hpp"

namespace semel::engine {

/// The database of such mutations: none that keys can be in.
inline constexpr std::uint8_t namespace_db = limits::db_count;

/// True if `name` is 1..limits::namespace_name_max bytes of [A-Za-z0-9_.-].
[[nodiscard]] bool is_namespace_name(Bytes name) noexcept;
/// Errors: bad_namespace (says what a name is).
[[nodiscard]] Status check_namespace_name(Bytes name);

/// Errors: bad_option (names the field, its value and its range).
[[nodiscard, gnu::cold]] Status check_policy(const Policy& policy);

/// "lease 60000 -> 5000, strict no -> yes"; empty: they are the same.
[[nodiscard]] std::string differences(const Policy& before, const Policy& after);

/// Why a namespace must not go from one to the other: something would be forgotten that holds for
/// claims that are there. Empty: it may.
[[nodiscard]] std::string what_is_forgotten(const Policy& before, const Policy& after);

[[nodiscard]] std::string encode_policy(const Policy& policy);
/// None: damaged, or of a later release.
[[nodiscard]] std::optional<Policy> decode_policy(Bytes bytes);

}  // namespace semel::engine
