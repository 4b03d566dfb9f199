#include "storage/log/claim_namespaces.hpp"

namespace semel::storage {

Bytes namespace_of(Bytes table_key) noexcept {
  return table_key.substr(0, table_key.find(':'));
}

void ClaimNamespaces::add(const Mutation& mutation) {
  if (!is_claim_put(mutation)) return;
  const Bytes name = namespace_of(mutation.key);
  if (name == last_ && !names_.empty()) return;
  auto known = names_.find(name);
  if (known == names_.end()) known = names_.emplace(name).first;
  last_ = *known;
}

std::string describe_unknown(const std::map<std::string, std::uint64_t>& unknown) {
  constexpr std::size_t named_max = 8;
  std::string text = unknown.size() == 1 ? "the terms of a namespace are not known: "
                                         : "the terms of " + std::to_string(unknown.size()) +
                                               " namespaces are not known: ";
  std::size_t named = 0;
  for (const auto& [name, claims] : unknown) {
    if (named == named_max) return text + ", ...";
    if (named++ != 0) text += ", ";
    text += name + " (" + std::to_string(claims) + (claims == 1 ? " claim)" : " claims)");
  }
  return text;
}

}  // namespace semel::storage
