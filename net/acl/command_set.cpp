#include "net/acl/command_set.hpp"

#include <algorithm>
#include <bit>

#include "base/ascii.hpp"
#include "net/acl/acl_limits.hpp"
#include "net/resp/text.hpp"

namespace semel::net {

void CommandSet::put(std::uint32_t command, bool allowed) {
  const std::uint64_t bit = std::uint64_t{1} << (command % 64);
  if (allowed) {
    bits_[command / 64] |= bit;
  } else {
    bits_[command / 64] &= ~bit;
    all_ = false;
  }
  if (const auto found = arguments_.find(command); found != arguments_.end()) {
    argument_count_ -= found->second.size();
    arguments_.erase(found);
  }
}

void CommandSet::set(std::uint32_t command, bool allowed) {
  put(command, allowed);
  for (const std::uint32_t child : catalog_->children_of(command)) put(child, allowed);
}

void CommandSet::set_category(std::size_t category, bool allowed) {
  std::erase_if(named_, [&](const Named& each) { return each.category == category; });
  named_.push_back({category, allowed});
  const AclCatalog::Words& meant = catalog_->meant_by(category);
  for (std::uint32_t word = 0; word < meant.size(); ++word) {
    for (std::uint64_t left = meant[word]; left != 0; left &= left - 1) {
      put(word * 64 + static_cast<std::uint32_t>(std::countr_zero(left)), allowed);
    }
  }
}

void CommandSet::set_all(bool allowed) {
  std::fill(bits_.begin(), bits_.end(), allowed ? ~std::uint64_t{0} : 0);
  arguments_.clear();
  argument_count_ = 0;
  named_.clear();
  all_ = future_ = allowed;
}

bool CommandSet::allow_argument(std::uint32_t command, std::string_view argument) {
  std::string small = base::lower_of(argument);
  const auto found = arguments_.find(command);
  if (found != arguments_.end()) {
    const auto same = [&](const std::string& known) { return is_word(known, small); };
    if (std::any_of(found->second.begin(), found->second.end(), same)) return true;
  }
  if (argument_count_ >= acl_limits::arguments_max) return false;
  ++argument_count_;
  arguments_[command].emplace_back(argument);  // as it was written, for the text
  return true;
}

bool CommandSet::allows_argument(std::uint32_t command, std::string_view argument) const {
  const auto found = arguments_.find(command);
  if (found == arguments_.end()) return false;
  const std::string small = base::lower_of(argument);
  return std::any_of(found->second.begin(), found->second.end(),
                     [&](const std::string& known) { return is_word(known, small); });
}

CommandSet::Fit CommandSet::fit_of(std::size_t category, bool adds) const {
  const AclCatalog::Words& members = catalog_->members_of(category);
  std::size_t allowed = 0;
  std::size_t forbidden = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    allowed += static_cast<std::size_t>(std::popcount(members[i] & bits_[i]));
    forbidden += static_cast<std::size_t>(std::popcount(members[i] & ~bits_[i]));
  }
  return adds ? Fit{.same = allowed, .different = forbidden}
              : Fit{.same = forbidden, .different = allowed};
}

std::optional<std::size_t> CommandSet::best_category(bool adds, std::uint32_t used) const {
  std::optional<std::size_t> best;
  Fit best_fit;
  for (std::size_t i = 0; i < acl_categories.size(); ++i) {
    if ((used >> i & 1U) != 0) continue;
    const Fit fit = fit_of(i, adds);
    if (fit.same <= fit.different) continue;
    const bool is_better = !best || fit.different < best_fit.different ||
                           (fit.different == best_fit.different && fit.same > best_fit.same);
    if (is_better) best = i, best_fit = fit;
  }
  return best;
}

std::string CommandSet::text() const {
  const bool adds = !future_;
  std::string text = adds ? "-@all" : "+@all";
  CommandSet written{*catalog_};  // what the text comes to so far
  written.set_all(!adds);
  CommandSet left = *this;  // what no category has written yet
  std::uint32_t used = 0;
  while (const auto best = left.best_category(adds, used)) {
    used |= 1U << *best;
    written.set_category(*best, adds);
    left.set_category(*best, !adds);
    text.append(adds ? " +@" : " -@").append(acl_categories[*best]);
  }
  for (const Named& each : named_) {
    if (!is_empty(each.category) || each.allowed == future_) continue;
    text.append(each.allowed ? " +@" : " -@").append(acl_categories[each.category]);
  }
  append_differences(written, text);
  return text;
}

std::string CommandSet::file_text() const {
  std::string text = future_ ? "+@all" : "-@all";
  CommandSet written{*catalog_};
  written.set_all(future_);
  for (const Named& each : named_) {
    written.set_category(each.category, each.allowed);
    text.append(each.allowed ? " +@" : " -@").append(acl_categories[each.category]);
  }
  append_differences(written, text);
  return text;
}

bool CommandSet::is_empty(std::size_t category) const {
  const AclCatalog::Words& members = catalog_->members_of(category);
  return std::all_of(members.begin(), members.end(), [](std::uint64_t word) { return word == 0; });
}

void CommandSet::append_differences(CommandSet& written, std::string& text) const {
  for (const std::uint32_t command : catalog_->in_order()) {
    if (has(command) != written.has(command)) {
      written.set(command, has(command));
      text.append(has(command) ? " +" : " -").append(catalog_->name_of(command));
    }
    const auto some = arguments_.find(command);
    if (has(command) || some == arguments_.end()) continue;
    for (const std::string& argument : some->second) {
      text.append(" +").append(catalog_->name_of(command)).append("|").append(argument);
    }
  }
}

}  // namespace semel::net
