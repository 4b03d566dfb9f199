// Scripts as the matcher sees them: whatever the bytes, it comes to an end, and what it reads has
// the same form, shape and meaning in another spelling of its tokens.
//
// Input: text of a script.
#include <cstdint>
#include <string>
#include <string_view>

#include "lua_compat/matcher/known_scripts.hpp"
#include "lua_compat/matcher/script_tokens.hpp"
#include "net/scripts/native_scripts.hpp"
#include "tests/fuzz/check.hpp"

namespace semel::tests {
namespace {

using lua::Token;
using lua::TokenKind;

std::string lua_string(std::string_view bytes) {
  std::string text = "\"";
  for (const char c : bytes) {
    std::string code = std::to_string(static_cast<unsigned char>(c));
    text += "\\" + std::string(3 - code.size(), '0') + code;
  }
  return text + "\"";
}

/// The same tokens on one line, each apart from the next.
std::string respelled(const std::vector<Token>& tokens) {
  std::string text;
  for (const Token& token : tokens) {
    text += token.kind == TokenKind::string ? lua_string(token.text) : token.text;
    text += " ";
  }
  return text;
}

void check_script(std::string_view script) {
  const std::string form = lua::canonical_form(script);
  const lua::ScriptShape shape = lua::shape_of(script, net::key_positions);
  if (form.empty()) {
    check(shape.known == lua::KnownScript::unknown, "known, but not read");
    check(!shape.declares_keys, "keys of what is not read");
    return;
  }
  const auto tokens = lua::read_tokens(script);
  check(tokens.has_value(), "a form without tokens");
  const std::string other = respelled(*tokens);
  if (other.size() > lua::script_bytes_max) return;
  check(lua::canonical_form(other) == form, "another form: " + other);
  const lua::ScriptShape again = lua::shape_of(other, net::key_positions);
  check(again.known == shape.known && again.entry == shape.entry, "another meaning: " + other);
  check(again.declares_keys == shape.declares_keys, "other keys: " + other);
}

}  // namespace
}  // namespace semel::tests

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    semel::tests::check_script({});
    return 0;
  }
  semel::tests::check_script({reinterpret_cast<const char*>(data), size});
  return 0;
}
