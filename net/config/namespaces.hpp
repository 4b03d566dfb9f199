// Claim namespaces that a configuration declares:
//
//   [namespaces.orders]
//   as = "message"          # a policy by its name, and differences from it
//   lease = "5m"
//   db = 1
//
// The options are those of SEMEL.NAMESPACE in lower case. Times are milliseconds, or texts such as
// "30s".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "semel/claim.hpp"
#include "semel/result.hpp"

namespace semel::net {

struct DeclaredNamespace {
  std::string name{};
  Policy policy{};
  std::string location{};  ///< "semel.toml:12:1", for messages
};

/// Collects the options of one namespace.
class NamespaceOptions {
 public:
  /// Adds an option. `text` is as in the file; a boolean is "yes" or "no". The detail of an error
  /// is the whole text for the user, as that of finish() is.
  [[nodiscard]] Status add(std::string_view key, std::string_view text);
  /// The policy that all options together mean.
  [[nodiscard]] Result<Policy> finish(std::string_view name) const;

 private:
  std::string as_;
  std::vector<std::string> words_;  // of SEMEL.NAMESPACE
  std::uint8_t db_ = 0;
};

}  // namespace semel::net
