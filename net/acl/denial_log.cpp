#include "net/acl/denial_log.hpp"

#include <algorithm>

#include "net/acl/acl_limits.hpp"

namespace semel::net {
namespace {

constexpr std::ptrdiff_t compared_max = 10;  // of the newest entries, as in Redis

std::string cut(std::string_view text) {
  return std::string{text.substr(0, acl_limits::logged_bytes_max)};
}

bool is_alike(const DenialLog::Entry& one, const DenialLog::Entry& other) {
  return one.reason == other.reason && one.context == other.context &&
         other.at - one.at <= Millis{acl_limits::log_grouping_ms} && one.object == other.object &&
         one.username == other.username;
}

}  // namespace

std::string_view name_of(DenialReason reason) noexcept {
  switch (reason) {
    case DenialReason::auth:
      return "auth";
    case DenialReason::command:
      return "command";
    case DenialReason::key:
      return "key";
    case DenialReason::channel:
      return "channel";
  }
  return "unknown";
}

std::string_view name_of(DenialContext context) noexcept {
  switch (context) {
    case DenialContext::toplevel:
      return "toplevel";
    case DenialContext::multi:
      return "multi";
    case DenialContext::lua:
      return "lua";
  }
  return "unknown";
}

void DenialLog::add(const Denial& denial, Timestamp now) {
  Entry entry{.reason = denial.reason,
              .context = denial.context,
              .object = cut(denial.object),
              .username = cut(denial.username),
              .client = cut(denial.client),
              .at = now};
  const base::MutexLock lock{mutex_};
  const auto compared = std::min(compared_max, static_cast<std::ptrdiff_t>(entries_.size()));
  const auto end = entries_.begin() + compared;
  const auto same = std::find_if(entries_.begin(), end,
                                 [&](const Entry& known) { return is_alike(known, entry); });
  if (same != end) {
    entry.count = same->count + 1;
    entries_.erase(same);
  }
  entries_.push_front(std::move(entry));
  if (entries_.size() > length_) entries_.pop_back();
}

std::vector<DenialLog::Entry> DenialLog::newest(std::size_t count) const {
  const base::MutexLock lock{mutex_};
  const auto shown = static_cast<std::ptrdiff_t>(std::min(count, entries_.size()));
  return {entries_.begin(), entries_.begin() + shown};
}

void DenialLog::set_length(std::size_t entries) {
  const base::MutexLock lock{mutex_};
  length_ = entries;
  if (entries_.size() > length_) entries_.resize(length_);
}

void DenialLog::clear() {
  const base::MutexLock lock{mutex_};
  entries_.clear();
}

}  // namespace semel::net
