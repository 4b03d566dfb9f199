#include "net/acl/catalog.hpp"

#include "base/ascii.hpp"
#include "net/resp/text.hpp"

namespace semel::net {

std::optional<std::size_t> acl_category_of(std::string_view name) noexcept {
  for (std::size_t i = 0; i < acl_categories.size(); ++i) {
    if (is_word(name, acl_categories[i])) return i;
  }
  return std::nullopt;
}

AclCatalog::AclCatalog(std::span<const AclCommand> commands) {
  rows_.reserve(commands.size());
  for (const AclCommand& command : commands) {
    by_name_.emplace(base::lower_of(command.name), static_cast<std::uint32_t>(rows_.size()));
    rows_.push_back({.name = base::lower_of(command.name), .no_auth = command.no_auth});
  }
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    const std::size_t bar = rows_[i].name.find('|');
    if (bar == std::string::npos) continue;
    const auto parent = by_name_.find(std::string_view{rows_[i].name}.substr(0, bar));
    if (parent == by_name_.end()) continue;
    rows_[i].is_child = true;
    rows_[parent->second].children.push_back(i);
  }
  for (std::uint32_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].is_child) continue;
    order_.push_back(i);
    order_.insert(order_.end(), rows_[i].children.begin(), rows_[i].children.end());
  }
  for (std::size_t i = 0; i < acl_categories.size(); ++i) {
    members_[i].resize(word_count());
    meant_[i].resize(word_count());
  }
  for (std::uint32_t i = 0; i < rows_.size(); ++i) add_category_bits(i, commands[i].categories);
}

void AclCatalog::add_category_bits(std::uint32_t command, std::uint32_t categories) {
  const auto put = [](Words& words, std::uint32_t at) {
    words[at / 64] |= std::uint64_t{1} << (at % 64);
  };
  for (std::size_t i = 0; i < acl_categories.size(); ++i) {
    if ((categories >> i & 1U) == 0) continue;
    put(members_[i], command);
    put(meant_[i], command);
    for (const std::uint32_t child : rows_[command].children) put(meant_[i], child);
  }
}

std::optional<std::uint32_t> AclCatalog::find(std::string_view name) const {
  const auto found = by_name_.find(base::lower_of(name));
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::uint32_t> AclCatalog::find(std::span<const std::string_view> words) const {
  if (words.empty() || words[0].find('|') != std::string_view::npos) return std::nullopt;
  const auto command = find(words[0]);
  if (!command || words.size() == 1 || children_of(*command).empty()) return command;
  std::string whole{words[0]};
  whole.append("|").append(words[1]);
  return find(whole);
}

}  // namespace semel::net
