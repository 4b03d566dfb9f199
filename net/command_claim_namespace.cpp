// Namespaces and what is in flight in one of them.
#include <set>
#include <utility>

#include "net/claim_call.hpp"
#include "net/claim_reply.hpp"
#include "net/handlers.hpp"
#include "net/node.hpp"
#include "net/text.hpp"

namespace semel::net::handlers {
namespace {

constexpr std::int64_t in_flight_count_default = 10;
constexpr std::int64_t in_flight_count_max = 10'000;
constexpr std::size_t scan_step = 1'024;

/// The keys whose leases end first, at most so many: what is more goes as soon as it is too much.
class Earliest {
 public:
  explicit Earliest(std::size_t most) : most_(most) {}
  void add(Timestamp lease_until, Bytes key) {
    if (claims_.size() == most_ && claims_.rbegin()->first <= lease_until) return;
    claims_.emplace(lease_until, std::string{key});
    if (claims_.size() > most_) claims_.erase(std::prev(claims_.end()));
  }
  [[nodiscard]] const std::set<std::pair<Timestamp, std::string>>& claims() const noexcept {
    return claims_;
  }

 private:
  std::size_t most_;
  std::set<std::pair<Timestamp, std::string>> claims_;  // a scan may meet a record twice
};

}  // namespace

void semel_namespace(Call& call) {
  if (call.words.size() == 2) {
    const Result<Claims> claims = call.engine.claims(call.words[1]);
    return claims ? write_policy(call.reply, claims->name(), claims->policy()) : call.reply.null();
  }
  Policy policy;
  policy.db = call.client.db;
  if (!accept(call, read_policy(call.words.subspan(2), policy))) return;
  const Result<Claims> claims = call.node.claims.declare(call.words[1], policy);
  claims ? call.reply.ok() : fail_namespace(call, call.words[1], claims.error().detail);
}

void semel_namespaces(Call& call) {
  const std::vector<std::string> names = call.engine.namespaces();
  call.reply.array(names.size());
  for (const std::string& name : names) call.reply.bulk(name);
}

void semel_inflight(Call& call) {
  std::int64_t count = in_flight_count_default;
  if (call.words.size() > 2) {
    if (!is_word(call.words[2], "count")) return call.fail(unknown_word(call.words[2], "COUNT"));
    if (call.words.size() != 4) return call.fail_arity();
    if (!accept(call, read_number("COUNT", call.words[3], 1, in_flight_count_max, count))) return;
  }
  std::optional<Claims> claims = claims_of(call, call.words[1]);
  if (!claims) return;
  const std::string prefix = std::string{claims->name()} + ":";
  Earliest earliest{static_cast<std::size_t>(count)};
  const ScanOptions options{
      .db = call.client.db, .kind = Kind::claim, .state = {}, .prefix = prefix, .count = scan_step};
  std::uint64_t cursor = 0;
  do {
    const auto next = call.engine.scan(cursor, options, [&](const ScanItem& item) {
      const ClaimState state = item.claim->state;
      if (state != ClaimState::held && state != ClaimState::in_doubt) return;
      earliest.add(item.claim->lease_until, item.key.substr(prefix.size()));
    });
    if (!next.ok()) return call.fail(next.error());
    cursor = *next;
  } while (cursor != 0);

  // As they are now: some may have ended since, and only get() knows whether an owner is gone.
  std::string found;
  RespWriter reply{found, call.reply.dialect()};
  std::size_t shown = 0;
  std::set<Bytes> keys;
  for (const auto& [lease_until, key] : earliest.claims()) {
    if (!keys.insert(key).second) continue;
    const Result<ClaimView> view = claims->get(key);
    if (!view || (view->state != ClaimState::held && view->state != ClaimState::in_doubt)) continue;
    write_in_flight(reply, key, *view);
    ++shown;
  }
  call.reply.array(shown);
  call.reply.prepared(found);
}

}  // namespace semel::net::handlers
