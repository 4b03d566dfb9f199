// Pages that are made from tables are what the tables give. To write them again:
// SEMEL_WRITE_PAGES=1 net_tests "[pages]".
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include "tests/support/catch.hpp"

#include "net/commands/command_docs.hpp"

namespace semel::tests {

TEST_CASE("pages: docs/compatibility.md is what the tables of commands give", "[net][pages]") {
  const std::string page = net::compatibility_page();
  if (std::getenv("SEMEL_WRITE_PAGES") != nullptr) {
    std::ofstream{SEMEL_COMPATIBILITY, std::ios::binary} << page;
  }
  std::ifstream file{SEMEL_COMPATIBILITY, std::ios::binary};
  std::ostringstream there;
  there << file.rdbuf();
  CHECK((there.str() == page));
}

}  // namespace semel::tests
