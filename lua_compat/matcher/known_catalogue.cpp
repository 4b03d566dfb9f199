#include "lua_compat/matcher/known_scripts.hpp"

namespace semel::lua {
namespace {

using enum KnownScript;
using Kind = ScriptAnswer::Kind;

constexpr ScriptAnswer last{};
constexpr ScriptAnswer nothing{.kind = Kind::nothing};
constexpr ScriptAnswer ok{.kind = Kind::status, .text = "OK"};
constexpr ScriptAnswer number(std::int64_t value) {
  return {.kind = Kind::number, .number = value};
}
constexpr ScriptAnswer bulk(std::string_view text) {
  return {.kind = Kind::bulk, .text = text};
}
constexpr ScriptAnswer failure(std::string_view text) {
  return {.kind = Kind::error, .text = text};
}

constexpr KnownEntry entries[] = {
#define X(meaning, name, text, commands, missing, differs, answer, variant, keys, arguments) \
  {meaning, name, text, commands, missing, differs, answer, variant, keys, arguments},
#include "lua_compat/matcher/known_catalogue.def"
#undef X
};

}  // namespace

std::span<const KnownEntry> known_catalogue() noexcept {
  return entries;
}

}  // namespace semel::lua
