// Whether a storage knows the terms of all namespaces that have live claims: what recover() refuses
// otherwise, for verify_storage().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "semel/journal.hpp"
#include "storage/log/claim_namespaces.hpp"

namespace semel::storage {

/// Two passes over all mutations. The first finds names that have claims and no terms; hardly ever
/// are there any. The second, which only then is needed, finds out whether such a claim lives, as
/// the newest mutation of a key decides.
class NamespaceCheck {
 public:
  void add(const Mutation& mutation);
  /// True: show all mutations again to add_again().
  [[nodiscard]] bool needs_second_pass();
  void add_again(const Mutation& mutation);
  /// Names, and how many claims live at `now`.
  [[nodiscard]] std::map<std::string, std::uint64_t> unknown(Timestamp now) const;

 private:
  /// The newest mutation of a namespace.
  struct Terms {
    Version version = 0;
    bool are_there = false;  // not dropped
  };
  /// The newest mutation of a key.
  struct Record {
    Version version = 0;
    bool is_claim = false;
    Timestamp due{};
  };

  ClaimNamespaces seen_;
  std::map<std::string, Terms, std::less<>> terms_;
  ClaimNamespaces::Names unknown_;
  std::map<std::pair<std::uint8_t, std::string>, Record> records_;  // of unknown_
  std::map<std::uint8_t, Version> flushed_;  // by database: older records are gone
};

}  // namespace semel::storage
