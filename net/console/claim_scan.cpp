#include "net/console/claim_scan.hpp"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <optional>
#include <string>
#include <utility>

#include "net/commands/claim_words.hpp"
#include "net/commands/command.hpp"
#include "net/console/console_json.hpp"
#include "net/console/key_text.hpp"
#include "semel/claim_fields.hpp"
#include "semel/claims.hpp"

namespace semel::net {

namespace json = boost::json;

namespace {

bool is_earlier(const FoundClaim& a, const FoundClaim& b) noexcept {
  return a.until < b.until;
}

}  // namespace

void EarliestClaims::add(FoundClaim found) {
  bytes_ += found.key.size();
  heap_.push_back(std::move(found));
  std::push_heap(heap_.begin(), heap_.end(), is_earlier);
  while (heap_.size() > count_max_ || bytes_ > console_limits::scan_bytes_max) {
    std::pop_heap(heap_.begin(), heap_.end(), is_earlier);
    bytes_ -= heap_.back().key.size();
    heap_.pop_back();
    ++left_out_;
  }
}

ReadRight::ReadRight(const User& user, std::string_view command)
    : user_(user), command_(static_cast<std::uint32_t>(index_of(*find_command(command)))) {}

bool ReadRight::allows(std::string_view table_key) const {
  const std::array keys{AclKey{table_key, KeyAccess::read}};
  return user_.check({.command = command_, .keys = keys}).ok();
}

std::optional<std::pair<std::string_view, std::string_view>> split_table_key(
    std::string_view table_key) noexcept {
  const std::size_t colon = table_key.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  return std::pair{table_key.substr(0, colon), table_key.substr(colon + 1)};
}

std::string_view list_of(const ClaimView& view) noexcept {
  if (view.state == ClaimState::failed && view.poison) return "poison";
  if (view.state == ClaimState::held && view.lease_remaining <= Millis{0}) return "over";
  if (view.state == ClaimState::vacant) return "issued";
  return word_of(view.state);
}

Millis remaining_of(const ClaimView& view) noexcept {
  switch (view.state) {
    case ClaimState::held:
    case ClaimState::in_doubt:
      return view.lease_remaining;
    case ClaimState::failed:
      return view.result_remaining;
    default:
      return std::max(view.result_remaining, view.unique_remaining);
  }
}

json::object claim_row(const FoundClaim& found, const ClaimView& view) {
  json::object object{{"namespace", found.space},
                      {"key", key_text(found.key)},
                      {"state", json_text(list_of(view))},
                      {"epoch", std::to_string(view.epoch)}};
  for (const ClaimNumber& number : claim_numbers) object[number.view_name] = view.*number.seen;
  for (const ClaimLabel& label : claim_labels) object[label.name] = key_text(view.*label.seen);
  object["remaining_ms"] = remaining_of(view).count();
  return object;
}

Result<json::object> scan_claims(Engine& engine, const User& user, std::uint64_t cursor) {
  const ReadRight right{user, "semel.getclaim"};
  const Timestamp now = engine.now();
  EarliestClaims in_flight;
  EarliestClaims over;
  EarliestClaims poisoned;
  const ScanOptions options{.kind = Kind::claim, .count = console_limits::scan_records};
  const auto next = engine.scan(cursor, options, [&](const ScanItem& item) {
    const ClaimRecord& claim = *item.claim;
    const bool is_poison = claim.state == ClaimState::failed && claim.poison;
    const bool is_held = claim.state == ClaimState::held;
    if (!is_held && !is_poison && claim.state != ClaimState::in_doubt) return;
    const auto parts = split_table_key(item.key);
    if (!parts || !right.allows(item.key)) return;
    EarliestClaims& list = is_poison                            ? poisoned
                           : is_held && claim.lease_until > now ? in_flight
                                                                : over;
    list.add({.space = std::string{parts->first},
              .key = std::string{parts->second},
              .db = item.db,
              .until = is_poison ? item.due : claim.lease_until});
  });
  if (!next.ok()) return next.error();

  // Read each claim again: it may have ended since the scan, and only get() knows whether an owner
  // is gone, and what the end of a lease means.
  json::array shown;
  for (const EarliestClaims* list : {&in_flight, &over, &poisoned}) {
    for (const FoundClaim& each : list->found()) {
      auto claims = engine.claims(each.space);
      if (!claims || claims->policy().db != each.db) continue;
      const auto view = claims->get(each.key);
      if (!view) continue;
      const bool is_poison = view->state == ClaimState::failed && view->poison;
      const bool is_held = view->state == ClaimState::held;
      if (!is_held && !is_poison && view->state != ClaimState::in_doubt) continue;
      shown.push_back(claim_row(each, *view));
    }
  }
  return json::object{{"cursor", std::to_string(*next)},
                      {"found", std::move(shown)},
                      {"left_out", in_flight.left_out() + over.left_out() + poisoned.left_out()}};
}

}  // namespace semel::net
