#include "net/console/claim_scan.hpp"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <string>
#include <utility>
#include <vector>

#include "net/commands/claim_words.hpp"
#include "net/commands/command.hpp"
#include "net/console/console_json.hpp"
#include "net/console/console_limits.hpp"
#include "net/console/key_text.hpp"
#include "semel/claim_fields.hpp"
#include "semel/claims.hpp"

namespace semel::net {
namespace {

namespace json = boost::json;

struct Found {
  std::string space;
  std::string key;
  std::uint8_t db;
  Timestamp until;
};

/// The claims that end first, bounded in number and bytes.
class Earliest {
 public:
  void add(Found found) {
    bytes_ += found.key.size();
    heap_.push_back(std::move(found));
    std::push_heap(heap_.begin(), heap_.end(), is_earlier);
    while (heap_.size() > console_limits::scan_found_max ||
           bytes_ > console_limits::scan_bytes_max) {
      std::pop_heap(heap_.begin(), heap_.end(), is_earlier);
      bytes_ -= heap_.back().key.size();
      heap_.pop_back();
      ++left_out_;
    }
  }
  [[nodiscard]] const std::vector<Found>& found() const noexcept { return heap_; }
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }

 private:
  static bool is_earlier(const Found& a, const Found& b) noexcept { return a.until < b.until; }

  std::vector<Found> heap_;
  std::size_t bytes_ = 0;
  std::uint64_t left_out_ = 0;
};

bool may_read(const User& user, std::uint32_t command, std::string_view table_key) {
  const std::array keys{AclKey{table_key, KeyAccess::read}};
  return user.check({.command = command, .keys = keys}).ok();
}

/// The list of the page that shows the claim.
std::string_view list_of(const ClaimView& view) {
  if (view.state == ClaimState::failed) return "poison";
  if (view.state == ClaimState::held && view.lease_remaining <= Millis{0}) return "over";
  return word_of(view.state);
}

json::object view_json(const Found& found, const ClaimView& view) {
  json::object object{{"namespace", found.space},
                      {"key", key_text(found.key)},
                      {"state", json_text(list_of(view))},
                      {"epoch", std::to_string(view.epoch)}};
  for (const ClaimNumber& number : claim_numbers) object[number.view_name] = view.*number.seen;
  if (view.state == ClaimState::failed) {
    object["remaining_ms"] = view.result_remaining.count();
  } else {
    for (const ClaimLabel& label : claim_labels) object[label.name] = key_text(view.*label.seen);
    object["remaining_ms"] = view.lease_remaining.count();
  }
  return object;
}

}  // namespace

Result<json::object> scan_claims(Engine& engine, const User& user, std::uint64_t cursor) {
  const CommandRow* const row = find_command("semel.getclaim");
  const auto command = static_cast<std::uint32_t>(index_of(*row));
  const Timestamp now = engine.now();
  Earliest in_flight;
  Earliest over;
  Earliest poisoned;
  const ScanOptions options{.kind = Kind::claim, .count = console_limits::scan_records};
  const auto next = engine.scan(cursor, options, [&](const ScanItem& item) {
    const ClaimRecord& claim = *item.claim;
    const bool is_poison = claim.state == ClaimState::failed && claim.poison;
    const bool is_held = claim.state == ClaimState::held;
    if (!is_held && !is_poison && claim.state != ClaimState::in_doubt) return;
    const std::size_t colon = item.key.find(':');
    if (colon == Bytes::npos || !may_read(user, command, item.key)) return;
    Earliest& list = is_poison ? poisoned : is_held && claim.lease_until > now ? in_flight : over;
    list.add({.space = std::string{item.key.substr(0, colon)},
              .key = std::string{item.key.substr(colon + 1)},
              .db = item.db,
              .until = is_poison ? item.due : claim.lease_until});
  });
  if (!next.ok()) return next.error();

  // Read each claim again: it may have ended since the scan, and only get() knows whether an owner
  // is gone, and what the end of a lease means.
  json::array shown;
  for (const Earliest* list : {&in_flight, &over, &poisoned}) {
    for (const Found& each : list->found()) {
      auto claims = engine.claims(each.space);
      if (!claims || claims->policy().db != each.db) continue;
      const auto view = claims->get(each.key);
      if (!view) continue;
      const bool is_poison = view->state == ClaimState::failed && view->poison;
      const bool is_held = view->state == ClaimState::held;
      if (!is_held && !is_poison && view->state != ClaimState::in_doubt) continue;
      shown.push_back(view_json(each, *view));
    }
  }
  return json::object{{"cursor", std::to_string(*next)},
                      {"found", std::move(shown)},
                      {"left_out", in_flight.left_out() + over.left_out() + poisoned.left_out()}};
}

}  // namespace semel::net
