// Rules of users: what is taken can be written and read back, and is then the same.
//
// Input: text. It is an aclfile as it is; and each line is a user's name and rules for ACL SETUSER.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/acl/acl.hpp"
#include "net/commands/access.hpp"
#include "tests/fuzz/check.hpp"

namespace semel::tests {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    words.push_back(word);
    line.remove_prefix(std::min(word.size() + 1, line.size()));
  }
  return words;
}

/// What is written is read back as the same users.
void check_file(const net::Acl& acl, const std::vector<net::AclCommand>& commands) {
  const std::string written = acl.file_text();
  net::Acl other{commands};
  const Status loaded = other.load_file(written, "users.acl");
  check(loaded.ok(),
        "cannot be read back: " + (loaded ? "" : loaded.error().detail) + "\n" + written);
  check(other.file_text() == written, "another file when read back:\n" + written);
  check(other.list() == acl.list(), "other users when read back:\n" + written);
}

}  // namespace
}  // namespace semel::tests

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace semel::tests;
  const std::string_view input{reinterpret_cast<const char*>(data), size};
  const std::vector<semel::net::AclCommand> commands = semel::net::acl_commands();
  semel::net::Acl from_file{commands};
  const std::string before = from_file.file_text();
  if (from_file.load_file(input, "users.acl")) {
    check_file(from_file, commands);
  } else {
    check(from_file.file_text() == before, "a file with an error changed users");
  }
  semel::net::Acl by_rules{commands};
  for (std::string_view rest = input; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty()) continue;
    const auto list = by_rules.list();
    const semel::Status status = by_rules.set_user(words[0], std::span{words}.subspan(1));
    if (!status) check(by_rules.list() == list, "rules with an error changed a user");
  }
  check_file(by_rules, commands);
  return 0;
}
