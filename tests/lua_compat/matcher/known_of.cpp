// known_of: reads texts, each with a NUL behind it, and writes a line for each: what the catalogue
// takes it for (`-`: nothing), and the line and command for which a node refuses it (`-`: it does
// not). For tests/lua_compat/released_scripts.py.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

#include "lua_compat/matcher/known_scripts.hpp"
#include "net/scripts/native_scripts.hpp"
#include "net/scripts/script_check.hpp"

namespace {

void look_at(std::string_view text) {
  const semel::lua::ScriptShape shape = semel::lua::shape_of(text, semel::net::key_positions);
  std::string known = "-";
  if (shape.known == semel::lua::KnownScript::one_command) known = "one command";
  if (shape.entry != nullptr) known = shape.entry->name;
  const semel::Status checked = semel::net::check_commands("script", shape.sent);
  std::string why = "-";
  if (!checked) {
    const std::string& line = checked.error().detail;
    const std::size_t begin = line.find("line ");
    why = line.substr(begin, line.find(',', begin) - begin);
  }
  std::printf("%s\t%s\n", known.c_str(), why.c_str());
}

}  // namespace

int main() {
  const std::string all{std::istreambuf_iterator<char>{std::cin}, {}};
  std::string_view rest = all;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\0');
    look_at(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return 0;
}
