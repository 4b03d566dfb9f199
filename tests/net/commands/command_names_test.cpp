// Finding a command by its name, its own and another one.
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

TEST_CASE("commands: a renamed command has its new name alone, and one without a name has none",
          "[net][commands]") {
  struct Restore {
    Restore() = default;
    Restore(const Restore&) = delete;
    Restore& operator=(const Restore&) = delete;
    ~Restore() { net::restore_command_names(); }
  } const restore;
  CHECK_FALSE(net::has_renamed_commands());
  const net::CommandRow* const get = net::find_command("get");
  const net::CommandRow* const config = net::find_command("config");
  const net::CommandRow* const flush = net::find_command("flushdb");
  CHECK(net::rename_command("get", "GET").empty());  // its own name: nothing changes
  CHECK_FALSE(net::has_renamed_commands());
  CHECK(net::find_command("get") == get);
  CHECK(net::rename_command("FLUSHDB", "Bad ger").empty());
  CHECK(net::rename_command("bad GER", "Bad ger").empty());
  CHECK(net::has_renamed_commands());
  CHECK(net::find_command("flushdb") == nullptr);
  CHECK(net::find_command("BAD GER") == flush);
  CHECK(net::rename_command("flushdb", "x") == "No such command in rename-command");
  CHECK(net::rename_command("semel.inflight", "") == "No such command in rename-command");
  CHECK(net::rename_command("config|get", "x") == "No such command in rename-command");
  CHECK(net::rename_command("get", "Set") == "Target command name already exists");
  CHECK(net::find_command("get") == get);
  CHECK(net::find_command("set") != get);
  const std::string long_name(100, 'n');
  CHECK(net::rename_command("config", "").empty());
  CHECK_FALSE(net::has_name(*net::find_subcommand(*config, "get")));
  CHECK(net::has_name(*get));
  CHECK(net::rename_command("get", long_name).empty());
  CHECK(net::find_command(long_name) == get);
  CHECK(net::find_command(long_name + "n") == nullptr);
  CHECK(net::rename_command(long_name, "flushdb").empty());  // a name that is free again
  CHECK(net::find_command("flushdb") == get);
  // However often a name changes, a search for one that nobody has comes to an end.
  std::string last = "flushdb";
  for (int i = 0; i < 5'000; ++i) {
    const std::string to = "chain" + std::to_string(i);
    REQUIRE(net::rename_command(last, to).empty());
    last = to;
  }
  CHECK(net::find_command(last) == get);
  CHECK(net::find_command("chain0") == nullptr);
  // All are found by the one name that they have.
  net::restore_command_names();
  int next = 0;
  for (const net::CommandRow& row : net::all_commands()) {
    if (net::find_command(row.name) != &row || row.name.starts_with("semel.")) continue;
    CAPTURE(row.name);
    CHECK(net::rename_command(row.name, next % 3 == 0 ? "" : "new" + std::to_string(next)).empty());
    CHECK(net::find_command(row.name) == nullptr);
    const net::CommandRow* const expected = next % 3 == 0 ? nullptr : &row;
    CHECK(net::find_command("NEW" + std::to_string(next)) == expected);
    CHECK(net::has_name(row) == (expected != nullptr));
    ++next;
  }
  CHECK(next > 200);
  net::restore_command_names();
  CHECK(net::find_command("get") == get);
  CHECK(net::find_command("new1") == nullptr);
}

}  // namespace semel::tests
