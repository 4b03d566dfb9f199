#include "tests/storage/faults/ledger.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace semel::faults {
namespace {

constexpr std::size_t shown_bytes = 40;
constexpr std::size_t story_lines = 8;

bool matches(const std::string& pattern, const std::string& found) {
  if (!pattern.empty() && pattern.back() == '*') {
    return found.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) == 0;
  }
  return pattern == found;
}

}  // namespace

History::History(const History& other) {
  const std::lock_guard lock{other.mutex_};
  story_ = other.story_;
  keeps_all_ = other.keeps_all_;
  said_ = other.said_;
}

void History::tell(std::string line) {
  story_.push_back(std::move(line));
  if (story_.size() > story_lines) story_.pop_front();
}

void History::drop_before(std::size_t said) {
  if (!keeps_all_) said_.erase(said_.begin(), said_.begin() + static_cast<std::ptrdiff_t>(said));
}

void History::ask(std::string state) {
  const std::lock_guard lock{mutex_};
  tell("asked " + state.substr(0, shown_bytes));
  said_.push_back({.state = std::move(state)});
}

void History::ask(std::string state, std::int64_t unix_ms, Millis ttl) {
  const std::lock_guard lock{mutex_};
  const std::int64_t ends = unix_ms + ttl.count();
  tell("asked " + state.substr(0, shown_bytes) + " until " + std::to_string(ends));
  said_.push_back({.state = std::move(state), .ends_unix_ms = ends, .ttl = ttl});
}

void History::withdraw() {
  const std::lock_guard lock{mutex_};
  said_.pop_back();
  tell("refused");
}

void History::acknowledge(bool certain, Timestamp at) {
  const std::lock_guard lock{mutex_};
  Said& newest = said_.back();
  story_.back() += certain ? ", is certain" : ", was told";
  newest.acknowledged = true;
  newest.certain = certain;
  newest.at = at;
  if (!certain) return;
  drop_before(said_.size() - 1);  // nothing older may be found
}

void History::make_certain() {
  const std::lock_guard lock{mutex_};
  for (std::size_t i = said_.size(); i-- > 0;) {
    if (!said_[i].acknowledged) continue;
    said_[i].certain = true;
    return drop_before(i);
  }
}

void History::show(const std::string& state) {
  const std::lock_guard lock{mutex_};
  for (std::size_t i = said_.size(); i-- > 0;) {
    if (said_[i].state != state) continue;
    said_[i].acknowledged = said_[i].certain = true;
    tell("shown " + state.substr(0, shown_bytes));
    return drop_before(i);
  }
}

void History::rename(std::string state) {
  const std::lock_guard lock{mutex_};
  said_.back().state = std::move(state);
}

void History::begun_by(std::int64_t unix_ms) {
  const std::lock_guard lock{mutex_};
  Said& newest = said_.back();
  if (newest.ttl == Millis{0}) return;
  newest.ends_by = unix_ms + newest.ttl.count();
  newest.ttl = Millis{0};
}

bool History::may_be_absent(std::int64_t unix_ms) const {
  const Said& newest = said_.back();
  return newest.state == absent || !newest.acknowledged || unix_ms >= newest.ends_unix_ms;
}

bool History::may_be(const std::string& found, std::int64_t from_unix_ms,
                     std::int64_t to_unix_ms) const {
  const Said& newest = said_.back();
  return !newest.acknowledged || is(newest, found, from_unix_ms, to_unix_ms);
}

void History::outlive_boot() {
  const std::lock_guard lock{mutex_};
  for (Said& said : said_) {
    said.ends_by = never_ends;
    said.ttl = Millis{0};
  }
}

void History::as_of(Timestamp begun, std::int64_t unix_ms) {
  begun_by(unix_ms);
  const std::lock_guard lock{mutex_};
  for (Said& said : said_) {
    if (said.at >= begun) said.acknowledged = said.certain = false;
  }
}

bool History::is(const Said& said, const std::string& found, std::int64_t from_unix_ms,
                 std::int64_t to_unix_ms) {
  if (said.ends_unix_ms == never_ends || to_unix_ms < said.ends_unix_ms) {
    return matches(said.state, found);
  }
  if (from_unix_ms >= said.ends_by) return found == absent;
  return found == absent || matches(said.state, found);
}

/// Where a boot has lost time, a key that was absent by its end may have its record again, so
/// all reasons from `first` on for which it may be absent stay.
void History::go_on_from(const std::string& found, std::size_t first,
                         std::optional<std::size_t> hit, std::int64_t from_unix_ms,
                         std::int64_t to_unix_ms) {
  std::vector<Said> next;
  for (std::size_t i = first; found == absent && i < said_.size(); ++i) {
    if (!is(said_[i], found, from_unix_ms, to_unix_ms)) continue;
    Said reason = said_[i];
    if (reason.state != absent) reason.ends_unix_ms = std::min(reason.ends_unix_ms, to_unix_ms);
    reason.acknowledged = reason.certain = next.empty();
    next.push_back(std::move(reason));
  }
  if (next.empty()) {
    Said now{.state = found, .acknowledged = true, .certain = true};
    if (hit && found != absent) {
      now.ends_unix_ms = said_[*hit].ends_unix_ms;
      now.ends_by = said_[*hit].ends_by;
      now.ttl = said_[*hit].ttl;
    }
    next.push_back(std::move(now));
  }
  said_ = std::move(next);
}

History::Verdict History::judge(const std::string& found, std::int64_t from_unix_ms,
                                std::int64_t to_unix_ms, Timestamp horizon) {
  const std::lock_guard lock{mutex_};
  std::size_t first = 0;  // the oldest that may be found
  for (std::size_t i = 0; i < said_.size(); ++i) {
    const Said& said = said_[i];
    if (said.acknowledged && (said.certain || said.at <= horizon)) first = i;
  }
  std::optional<std::size_t> hit;
  for (std::size_t i = said_.size(); i-- > 0 && !hit;) {
    if (is(said_[i], found, from_unix_ms, to_unix_ms)) hit = i;
  }
  Verdict verdict;
  verdict.right = hit && *hit >= first;
  verdict.is_older = hit && *hit < first;
  for (std::size_t i = hit ? *hit + 1 : 0; i < said_.size(); ++i) {
    if (!said_[i].acknowledged) continue;
    verdict.oldest_lost = said_[i].at;
    break;
  }
  tell("found " + found.substr(0, shown_bytes) + " at " + std::to_string(from_unix_ms) + " to " +
       std::to_string(to_unix_ms));
  if (!verdict.right) {
    for (const std::string& line : story_) verdict.story += "\n    " + line;
    for (std::size_t i = first; i < said_.size(); ++i) {
      if (!verdict.expected.empty()) verdict.expected += " or ";
      verdict.expected += said_[i].state.substr(0, shown_bytes);
    }
  }
  go_on_from(found, verdict.right ? first : said_.size(), hit, from_unix_ms, to_unix_ms);
  return verdict;
}

}  // namespace semel::faults
