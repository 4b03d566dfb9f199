// Namespaces of claims that a configuration declares:
//
//   [namespaces.orders]
//   as = "message"          # a policy by its name, and what is different about it
//   lease = "5m"
//   db = 1
//
// The options are those of SEMEL.NAMESPACE in small letters; times are milliseconds, or texts as
// "30s".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "semel/claim.hpp"

namespace semel::net {

struct DeclaredNamespace {
  std::string name{};
  Policy policy{};
  std::string place{};  ///< "semel.toml:12:1", for messages
};

/// The options of one namespace, one by one.
class NamespaceOptions {
 public:
  /// `text` as in the file, of a truth value "yes" or "no". Returns what is wrong, or nothing.
  [[nodiscard]] std::string take(std::string_view key, std::string_view text);
  /// What they mean together; or what is wrong.
  [[nodiscard]] std::string finish(std::string_view name, Policy& policy) const;

 private:
  std::string as_;
  std::vector<std::string> words_;  // of SEMEL.NAMESPACE
  std::uint8_t db_ = 0;
};

}  // namespace semel::net
