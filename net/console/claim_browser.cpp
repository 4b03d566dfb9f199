#include "net/console/claim_browser.hpp"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "net/commands/claim_words.hpp"
#include "net/console/claim_scan.hpp"
#include "net/console/console_json.hpp"
#include "net/console/console_limits.hpp"
#include "net/console/key_text.hpp"
#include "semel/claims.hpp"

namespace semel::net {

namespace json = boost::json;

namespace {

constexpr std::array<std::string_view, 7> lists = {"held",   "over",   "in_doubt", "done",
                                                   "failed", "poison", "issued"};

/// Scans about `records` claims in small steps, so that few records are copied at a time.
/// `goes_on` is asked after each step.
Result<std::uint64_t> walk(Engine& engine, std::uint64_t cursor, const std::string& prefix,
                           std::size_t records, const std::function<void(const ScanItem&)>& meet,
                           const std::function<bool()>& goes_on) {
  const Timestamp end = engine.now() + console_limits::slice_within;
  const ScanOptions options{
      .kind = Kind::claim, .prefix = prefix, .count = console_limits::step_records, .vacant = true};
  std::uint64_t at = cursor;
  for (std::size_t seen = 0; seen < records; seen += console_limits::step_records) {
    const auto next = engine.scan(at, options, meet);
    if (!next.ok()) {
      if (at == cursor) return next.error();
      break;  // the next slice reports it, if it is still so
    }
    at = *next;
    if (!goes_on() || at == 0 || engine.now() >= end) break;
  }
  return at;
}

/// Namespaces by their name, each looked up once in a slice.
class Spaces {
 public:
  explicit Spaces(Engine& engine) noexcept : engine_(engine) {}

  /// Null: there is none of this name whose claims are in `db`.
  [[nodiscard]] Claims* find(const std::string& name, std::uint8_t db) {
    auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      auto claims = engine_.claims(name);
      found =
          by_name_.emplace(name, claims ? std::optional{*std::move(claims)} : std::nullopt).first;
    }
    if (!found->second || found->second->policy().db != db) return nullptr;
    return &*found->second;
  }

 private:
  Engine& engine_;
  std::map<std::string, std::optional<Claims>, std::less<>> by_name_;
};

/// Whether a record may be in this list: what its namespace says of it is known later.
bool may_be(std::string_view list, const ClaimRecord& claim) noexcept {
  if (list.empty()) return true;
  switch (claim.state) {
    case ClaimState::done:
      return list == "done";
    case ClaimState::failed:
      return list == (claim.poison ? "poison" : "failed");
    case ClaimState::vacant:
      return list == "issued";
    default:
      return list == "held" || list == "over" || list == "in_doubt";
  }
}

class KeyPage {
 public:
  KeyPage(Engine& engine, const User& user, const KeyFilter& filter)
      : spaces_(engine),
        read_(user, "semel.getclaim"),
        explain_(user, "semel.explain"),
        filter_(filter),
        unix_ms_(engine.clock().unix_ms()) {}

  void meet(const ScanItem& item) {
    const auto parts = split_table_key(item.key);
    if (!parts || !may_be(filter_.state, *item.claim)) return;
    if (!parts->second.starts_with(filter_.prefix)) return;
    if (!item.claim->owner.starts_with(filter_.owner)) return;
    if (!read_.allows(item.key)) return;
    const bool has_room = met_.size() < console_limits::scan_found_max &&
                          bytes_ + item.key.size() <= console_limits::scan_bytes_max;
    if (!has_room) {
      ++left_out_;
      return;
    }
    bytes_ += item.key.size();
    met_.push_back({.space = std::string{parts->first},
                    .key = std::string{parts->second},
                    .db = item.db,
                    .until = item.due});
  }

  /// Makes rows of the claims that were met. False: the page is full.
  [[nodiscard]] bool take_met() {
    for (const FoundClaim& each : std::exchange(met_, {})) {
      if (!take(each)) bytes_ -= each.space.size() + 1 + each.key.size();
    }
    return rows_.size() < console_limits::page_rows && bytes_ < console_limits::page_key_bytes &&
           result_bytes_ < console_limits::page_result_bytes;
  }

  [[nodiscard]] json::object finish(std::uint64_t cursor) {
    return {
        {"cursor", std::to_string(cursor)}, {"rows", std::move(rows_)}, {"left_out", left_out_}};
  }

 private:
  bool take(const FoundClaim& found) {
    Claims* const claims = spaces_.find(found.space, found.db);
    if (claims == nullptr) return false;
    const auto view = claims->get(found.key);
    if (!view || view->state == ClaimState::absent) return false;
    result_bytes_ += view->result.size();
    if (!filter_.state.empty() && list_of(*view) != filter_.state) return false;
    const Millis left = remaining_of(*view);
    if (left < filter_.left_min.value_or(left) || left > filter_.left_max.value_or(left)) {
      return false;
    }
    const auto age = age_of(*claims, found, *view);
    if (filter_.age_min && age && *age < *filter_.age_min) return false;
    json::object row = claim_row(found, *view);
    row["age_ms"] = age ? json::value(age->count()) : json::value(nullptr);
    rows_.push_back(std::move(row));
    return true;
  }

  /// Since its grant, or since it was issued. None: not known.
  std::optional<Millis> age_of(Claims& claims, const FoundClaim& found,
                               const ClaimView& view) const {
    if (!explain_.allows(found.space + ":" + found.key)) return std::nullopt;
    const auto decisions = claims.explain(found.key);
    if (!decisions) return std::nullopt;
    const bool is_issued = view.state == ClaimState::vacant;
    for (auto each = decisions->rbegin(); each != decisions->rend(); ++each) {
      const bool is_start = is_issued
                                ? each->call == DecisionCall::issue && each->outcome == "ok"
                                : each->call == DecisionCall::claim && each->epoch == view.epoch &&
                                      (each->outcome == "granted" || each->outcome == "takeover");
      if (is_start) return Millis{std::max<std::int64_t>(0, unix_ms_ - each->first_unix_ms)};
    }
    return std::nullopt;
  }

  Spaces spaces_;
  const ReadRight read_;
  const ReadRight explain_;
  const KeyFilter& filter_;
  const std::int64_t unix_ms_;  // of the engine's clock, as the times of decisions
  std::vector<FoundClaim> met_;
  json::array rows_;
  std::size_t bytes_ = 0;  // of keys, in met_ and rows_
  std::size_t result_bytes_ = 0;
  std::uint64_t left_out_ = 0;
};

json::object decision_json(const FoundClaim& about, const ClaimDecision& decision) {
  return {{"namespace", about.space},
          {"key", key_text(about.key)},
          {"outcome", json_text(decision.outcome)},
          {"call", json_text(word_of(decision.call))},
          {"last_unix_ms", decision.last_unix_ms},
          {"times", decision.times},
          {"epoch", std::to_string(decision.epoch)},
          {"owner", key_text(decision.owner)},
          {"client", key_text(decision.client)},
          {"why", decision.why}};
}

class RecentDecisions {
 public:
  RecentDecisions(Engine& engine, const User& user)
      : spaces_(engine), right_(user, "semel.explain"), newest_(console_limits::decisions_max) {}

  void meet(const ScanItem& item) {
    const auto parts = split_table_key(item.key);
    if (!parts || !right_.allows(item.key)) return;
    met_.push_back({.space = std::string{parts->first},
                    .key = std::string{parts->second},
                    .db = item.db,
                    .until = {}});
  }

  /// Keeps those of the claims that were met about which decisions are the newest. False: no
  /// decisions are kept.
  [[nodiscard]] bool take_met() {
    for (FoundClaim& each : std::exchange(met_, {})) {
      Claims* const claims = spaces_.find(each.space, each.db);
      if (claims == nullptr) continue;
      const auto last = claims->explain(each.key, 1);
      if (!last.ok()) {
        if (last.error().code == ErrorCode::bad_option) error_ = last.error();
        continue;
      }
      if (last->empty()) continue;
      each.until = Timestamp{Millis{-last->back().last_unix_ms}};  // the newest is the first
      newest_.add(std::move(each));
    }
    return !error_;
  }
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }

  [[nodiscard]] json::object finish(std::uint64_t cursor) {
    // The newest decisions are about as many keys at most.
    std::vector<std::pair<const FoundClaim*, ClaimDecision>> decisions;
    for (const FoundClaim& each : newest_.found()) {
      Claims* const claims = spaces_.find(each.space, each.db);
      if (claims == nullptr) continue;
      auto known = claims->explain(each.key);
      if (!known) continue;
      for (ClaimDecision& decision : *known) decisions.emplace_back(&each, std::move(decision));
    }
    std::stable_sort(decisions.begin(), decisions.end(), [](const auto& a, const auto& b) {
      return a.second.last_unix_ms > b.second.last_unix_ms;
    });
    json::array shown;
    const std::size_t count = std::min(decisions.size(), console_limits::decisions_max);
    for (std::size_t i = 0; i < count; ++i) {
      shown.push_back(decision_json(*decisions[i].first, decisions[i].second));
    }
    return {{"cursor", std::to_string(cursor)},
            {"decisions", std::move(shown)},
            {"left_out", newest_.left_out()}};
  }

 private:
  Spaces spaces_;
  const ReadRight right_;
  EarliestClaims newest_;
  std::vector<FoundClaim> met_;
  std::optional<Error> error_;
};

}  // namespace

bool is_list(std::string_view word) noexcept {
  return std::find(lists.begin(), lists.end(), word) != lists.end();
}

Result<json::object> browse_claims(Engine& engine, const User& user, const KeyFilter& filter,
                                   std::uint64_t cursor) {
  KeyPage page{engine, user, filter};
  const std::string prefix = filter.space.empty() ? "" : filter.space + ":" + filter.prefix;
  const auto next = walk(
      engine, cursor, prefix, console_limits::scan_records,
      [&](const ScanItem& item) { page.meet(item); }, [&] { return page.take_met(); });
  if (!next.ok()) return next.error();
  return page.finish(*next);
}

Result<json::object> recent_decisions(Engine& engine, const User& user, std::string_view space,
                                      std::uint64_t cursor) {
  RecentDecisions recent{engine, user};
  const std::string prefix = space.empty() ? "" : std::string{space} + ":";
  const auto next = walk(
      engine, cursor, prefix, console_limits::decision_records,
      [&](const ScanItem& item) { recent.meet(item); }, [&] { return recent.take_met(); });
  if (!next.ok()) return next.error();
  if (recent.error()) return *recent.error();
  return recent.finish(*next);
}

}  // namespace semel::net
