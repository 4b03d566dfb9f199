// Finding a command by its name.
#include <string>

#include "base/ascii.hpp"
#include "net/commands/command.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {

TEST_CASE("commands: each is found by its name, in any case of letters", "[net][commands]") {
  for (const net::CommandRow& row : net::all_commands()) {
    CAPTURE(row.name);
    const bool is_sub = row.name.find('|') != std::string_view::npos;
    const net::CommandRow* const expected = is_sub ? nullptr : &row;
    CHECK(net::find_command(row.name) == expected);
    CHECK(net::find_command(base::upper_of(row.name)) == expected);
    std::string mixed{row.name};
    mixed.front() = base::to_upper(mixed.front());
    CHECK(net::find_command(mixed) == expected);
  }
}

TEST_CASE("commands: a name with another byte, or without one, is another name",
          "[net][commands]") {
  for (const net::CommandRow& row : net::all_commands()) {
    std::string name{row.name};
    CAPTURE(name);
    for (char& c : name) {
      const char before = c;
      for (const char other : {'\0', '~', ' ', '\xc5'}) {
        c = other;
        CHECK(net::find_command(name) == nullptr);
      }
      if (base::to_upper(before) == before) {  // the bit of the case is no case in other bytes
        c = static_cast<char>(before ^ 0x20);
        CHECK(net::find_command(name) == nullptr);
      }
      c = before;
    }
    CHECK(net::find_command(name + " ") == nullptr);
    CHECK(net::find_command(name + std::string(1, '\0')) == nullptr);
  }
  CHECK(net::find_command({}) == nullptr);
  CHECK(net::find_command(std::string(100'000, 'a')) == nullptr);
}

}  // namespace semel::tests
