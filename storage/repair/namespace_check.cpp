#include "storage/repair/namespace_check.hpp"

#include <algorithm>

namespace semel::storage {

void NamespaceCheck::add(const Mutation& mutation) {
  seen_.add(mutation);
  if (mutation.kind != Kind::name_space) return;
  Terms& terms = terms_[std::string{mutation.key}];
  if (terms.version > mutation.version) return;
  terms = {mutation.version, mutation.type == Mutation::Type::put};
}

bool NamespaceCheck::needs_second_pass() {
  for (const std::string& name : seen_.names()) {
    const auto terms = terms_.find(name);
    if (terms == terms_.end() || !terms->second.are_there) unknown_.insert(name);
  }
  return !unknown_.empty();
}

void NamespaceCheck::add_again(const Mutation& mutation) {
  if (mutation.type == Mutation::Type::flush) {
    Version& flushed = flushed_[mutation.db];
    flushed = std::max(flushed, mutation.version);
  }
  const bool is_record =
      mutation.type == Mutation::Type::put || mutation.type == Mutation::Type::erase;
  if (!is_record || mutation.kind == Kind::name_space ||
      !unknown_.contains(namespace_of(mutation.key))) {
    return;
  }
  Record& record = records_[{mutation.db, std::string{mutation.key}}];
  if (record.version > mutation.version) return;
  record = {mutation.version, is_claim_put(mutation), mutation.due};
}

std::map<std::string, std::uint64_t> NamespaceCheck::unknown(Timestamp now) const {
  std::map<std::string, std::uint64_t> live;
  for (const auto& [key, record] : records_) {
    const auto flushed = flushed_.find(key.first);
    const bool is_gone = flushed != flushed_.end() && record.version < flushed->second;
    if (!record.is_claim || record.due <= now || is_gone) continue;
    ++live[std::string{namespace_of(key.second)}];
  }
  return live;
}

}  // namespace semel::storage
