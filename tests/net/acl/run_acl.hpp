// AUTH and the subcommands of ACL on an Acl of the test's own, without a connection.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include "tests/support/catch.hpp"

#include "net/acl/acl_command.hpp"
#include "net/commands/command.hpp"

namespace semel::tests {

/// Calls the function that the words name. False: there is none, or the number of words is wrong;
/// nothing was called, because the dispatcher of a node refuses such a request.
[[nodiscard]] inline bool run_acl(net::AclCall& call) {
  struct Entry {
    std::string_view name;
    void (*run)(net::AclCall&);
  };
  namespace of = net::acl_subcommands;
  static constexpr std::array entries{
      Entry{"auth", net::auth_command},  Entry{"acl|cat", of::cat},
      Entry{"acl|deluser", of::deluser}, Entry{"acl|dryrun", of::dryrun},
      Entry{"acl|genpass", of::genpass}, Entry{"acl|getuser", of::getuser},
      Entry{"acl|help", of::help},       Entry{"acl|list", of::list},
      Entry{"acl|load", of::load},       Entry{"acl|log", of::log},
      Entry{"acl|save", of::save},       Entry{"acl|setuser", of::setuser},
      Entry{"acl|users", of::users},     Entry{"acl|whoami", of::whoami},
  };
  const std::size_t count = call.args.size();
  const net::CommandRow* row = net::find_command(call.args[0]);
  REQUIRE(row != nullptr);
  if (row->name == "acl" && count > 1) row = net::find_subcommand(*row, call.args[1]);
  if (row == nullptr || row->name == "acl" || !row->takes(count)) return false;
  const auto* const entry = std::find_if(entries.begin(), entries.end(),
                                         [&](const Entry& each) { return each.name == row->name; });
  REQUIRE(entry != entries.end());
  entry->run(call);
  return true;
}

}  // namespace semel::tests
