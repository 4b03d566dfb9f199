// A request as the rules see it: views of bytes owned by the caller, without sockets.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace semel::gateway {

struct Field {
  std::string_view name;  ///< in any case of letters
  std::string_view value;
};
using Fields = std::span<const Field>;

/// Whether both are the same but for the case of ASCII letters, as names of header fields are.
[[nodiscard]] bool equal_names(std::string_view one, std::string_view other) noexcept;

/// The one field of this name. None: there is none. More than one: `repeated` is true.
struct FieldLookup {
  std::optional<std::string_view> value{};
  bool repeated = false;
};
[[nodiscard]] FieldLookup find_field(Fields fields, std::string_view name) noexcept;

/// Whether `token` is among the comma-separated words of `value`, in any case of letters.
[[nodiscard]] bool has_token(std::string_view value, std::string_view token) noexcept;

/// Without blanks and tabs at both ends.
[[nodiscard]] std::string_view without_blanks(std::string_view text) noexcept;
/// ASCII letters in lower case.
[[nodiscard]] std::string lower_case(std::string_view text);

struct Request {
  std::string_view method{};
  std::string_view path{};   ///< as it was sent, without the query
  std::string_view query{};  ///< without its '?'
  Fields fields{};
  std::string_view body{};
};

}  // namespace semel::gateway
