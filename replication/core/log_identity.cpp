#include "replication/core/log_identity.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace semel::replication {
namespace {

constexpr std::size_t digits = 32;

std::optional<std::uint64_t> number_in(const std::string& text, std::size_t at) {
  std::uint64_t number = 0;
  for (std::size_t i = at; i < at + digits / 2; ++i) {
    const char c = text[i];
    const bool is_letter = c >= 'a' && c <= 'f';
    if (!is_letter && (c < '0' || c > '9')) return std::nullopt;
    number = number << 4 | static_cast<std::uint64_t>(is_letter ? c - 'a' + 10 : c - '0');
  }
  return number;
}

}  // namespace

std::string LogIdentity::text() const {
  char text[digits + 1];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return text;
}

std::string full_address(const Member& member) {
  return member.log.is_known() ? member.address + "#" + member.log.text() : member.address;
}

void set_full_address(Member& member, std::string full) {
  member.log = {};
  member.address = std::move(full);
  const std::size_t mark = member.address.rfind('#');
  if (mark == std::string::npos || member.address.size() - mark - 1 != digits) return;
  const auto high = number_in(member.address, mark + 1);
  const auto low = number_in(member.address, mark + 1 + digits / 2);
  if (!high || !low) return;
  member.log = {*high, *low};
  member.address.resize(mark);
}

bool has_other_log(const Configuration& members, NodeId id, const LogIdentity& log) {
  return std::any_of(members.begin(), members.end(), [&](const Member& each) {
    return each.id == id && each.log.is_known() && each.log != log;
  });
}

void MemberLogs::replied(Term term, NodeId from, const LogIdentity& log) {
  if (!log.is_known()) return;
  if (std::exchange(term_, term) != term) replied_.clear();
  replied_.emplace(from, log);  // the first: another one would not have these entries
}

std::map<NodeId, LogIdentity> MemberLogs::expected(Term term, const Configuration& members) {
  std::map<NodeId, LogIdentity> found;
  for (const Member& each : members) {
    const auto replied = term == term_ ? replied_.find(each.id) : replied_.end();
    if (each.log.is_known()) {
      found.emplace(each.id, each.log);
    } else if (replied != replied_.end()) {
      found.emplace(each.id, replied->second);
    }
  }
  std::erase_if(replied_, [&](const auto& replied) {
    return std::none_of(members.begin(), members.end(),
                        [&](const Member& each) { return each.id == replied.first; });
  });
  return found;
}

std::map<NodeId, LogIdentity> MemberLogs::to_learn(Term term, const Configuration& members,
                                                   NodeId self, const LogIdentity& own) const {
  std::map<NodeId, LogIdentity> found;
  for (const Member& each : members) {
    if (each.log.is_known()) continue;
    const auto replied = term == term_ ? replied_.find(each.id) : replied_.end();
    if (each.id == self) {
      found.emplace(each.id, own);
    } else if (replied != replied_.end()) {
      found.emplace(each.id, replied->second);
    }
  }
  return found;
}

}  // namespace semel::replication
