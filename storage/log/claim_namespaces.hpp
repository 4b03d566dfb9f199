// The namespaces that claims on the disk belong to. A storage records the terms of its namespaces
// beside their claims; claims without terms could be granted again under others.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "semel/journal.hpp"
#include "semel/types.hpp"

namespace semel::storage {

/// The name in a claim's table key "name:key".
[[nodiscard]] Bytes namespace_of(Bytes table_key) noexcept;

/// True for a mutation that makes a claim.
[[nodiscard]] inline bool is_claim_put(const Mutation& mutation) noexcept {
  return mutation.type == Mutation::Type::put && mutation.claim.has_value();
}

/// The names of the namespaces of all claims that were added. One thread at a time.
class ClaimNamespaces {
 public:
  using Names = std::set<std::string, std::less<>>;

  ClaimNamespaces() = default;
  ClaimNamespaces(const ClaimNamespaces&) = delete;  // last_ points into names_
  ClaimNamespaces& operator=(const ClaimNamespaces&) = delete;

  void add(const Mutation& mutation);
  void add(const ClaimNamespaces& others) {
    names_.insert(others.names_.begin(), others.names_.end());
  }
  [[nodiscard]] const Names& names() const noexcept { return names_; }

 private:
  Names names_;
  Bytes last_;  // of names_: claims of one namespace often follow each other
};

/// In words: "the terms of 2 namespaces are not known: mail (7 claims), orders (1 claim)".
[[nodiscard]] std::string describe_unknown(const std::map<std::string, std::uint64_t>& unknown);

}  // namespace semel::storage
