// SEMEL.NAMESPACE, and the claims in flight in one namespace.
#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "engine/core/namespace_terms.hpp"
#include "net/claims/claim_call.hpp"
#include "net/claims/claim_reply.hpp"
#include "net/claims/claim_spaces.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"
#include "semel/engine_host.hpp"

namespace semel::net::handlers {
namespace {

constexpr std::int64_t list_count_default = 10;
constexpr std::int64_t in_flight_count_default = 10;
constexpr std::int64_t in_flight_count_max = 10'000;
constexpr std::size_t scan_step = 1'024;

/// The keys with the earliest lease ends, up to `most`; evicts the latest when full.
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

namespace {

void show(Call& call, std::string_view name) {
  const Result<Claims> claims = call.engine.claims(name);
  claims ? write_policy(call.reply, claims->name(), claims->policy()) : call.reply.null();
}

/// The command that gives a namespace the terms that were asked for, or why it keeps its own.
std::string remedy(const Policy& before, const Policy& asked, std::string_view name,
                   WordSpan words) {
  if (const std::string lost = engine::what_is_forgotten(before, asked); !lost.empty()) {
    return "; it keeps them: " + lost;
  }
  constexpr std::size_t shown_words_max = 64;  // more than there are different ones
  std::string text{"; to change them: SEMEL.NAMESPACE CHANGE "};
  text.append(name);
  for (const std::string_view word : words.first(std::min(words.size(), shown_words_max))) {
    text.append(" ").append(word);
  }
  return words.size() > shown_words_max ? text + " .." : text;
}

void declare(Call& call, std::string_view name, WordSpan words) {
  Policy policy;
  policy.db = call.client.db;
  if (!accept(call, read_policy(words, policy))) return;
  const Result<Claims> before = call.engine.claims(name);
  if (before && before->policy().db != policy.db) {
    return fail_namespace(call, name, elsewhere(*before, policy.db));
  }
  const Result<Claims> claims = call.engine.claims(name, policy);
  if (claims) return call.reply.ok();
  Error error = claims.error();
  const Result<Claims> known = call.engine.claims(name);
  if (error.code == ErrorCode::namespace_differs && known) {
    error.detail += remedy(known->policy(), policy, name, words);
  }
  fail_namespace(call, name, error);
}

void change(Call& call, std::string_view name, WordSpan words) {
  Policy policy;
  policy.db = call.client.db;
  if (!accept(call, read_policy(words, policy))) return;
  const Result<std::string> changed = call.engine.change_namespace(name, policy);
  if (!changed && changed.error().code == ErrorCode::bad_namespace) {
    return fail_namespace(call, name, "it is not declared");
  }
  changed ? call.reply.bulk(*changed) : fail_namespace(call, name, changed.error());
}

void drop(Call& call, std::string_view name, WordSpan words) {
  DropRule rule = DropRule::unused;
  if (words.size() > 1) return call.fail_arity();
  if (!words.empty()) {
    const bool all = is_word(words[0], "all");
    if (!all && !is_word(words[0], "finished")) {
      return call.fail(unknown_word(words[0], "FINISHED, ALL"));
    }
    rule = all ? DropRule::all : DropRule::finished;
  }
  if (call.context().is_part()) {
    return fail_namespace(call, name, "it cannot be dropped inside a transaction or script");
  }
  const Result<DropReport> dropped = call.engine.drop_namespace(name, rule);
  if (!dropped && dropped.error().code == ErrorCode::bad_namespace) {
    return fail_namespace(call, name, "it is not declared");
  }
  if (!dropped) return fail_namespace(call, name, dropped.error());
  write_number(call.reply, static_cast<std::int64_t>(dropped->finished + dropped->held));
}

void list(Call& call, WordSpan words) {
  std::int64_t cursor = 0;
  std::int64_t count = list_count_default;
  std::optional<std::string_view> pattern;
  if (!words.empty()) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    if (!accept(call, read_number("cursor", words[0], 0, most, cursor))) return;
    words = words.subspan(1);
  }
  for (; !words.empty(); words = words.subspan(2)) {
    const bool is_match = is_word(words[0], "match");
    if (!is_match && !is_word(words[0], "count")) {
      return call.fail(unknown_word(words[0], "MATCH, COUNT"));
    }
    if (words.size() < 2) return call.fail_arity();
    constexpr auto most = static_cast<std::int64_t>(limits::namespace_list_max);
    if (is_match) {
      pattern = words[1];
    } else if (!accept(call, read_number("COUNT", words[1], 1, most, count))) {
      return;
    }
  }
  std::vector<std::string> names;
  const auto next = call.engine.host().list_namespaces(static_cast<std::uint64_t>(cursor),
                                                       static_cast<std::size_t>(count),
                                                       [&](Bytes name, const Policy&) {
                                                         if (!pattern || glob_match(*pattern, name))
                                                           names.emplace_back(name);
                                                       });
  if (!next.ok()) return call.fail(next.error());
  call.reply.array(2);
  call.reply.bulk(std::to_string(*next));
  call.reply.array(names.size());
  for (const std::string& name : names) call.reply.bulk(name);
}

}  // namespace

// A subcommand comes before the name: a namespace called "list" is declared by DECLARE.
void semel_namespace(Call& call) {
  const std::string_view word = call.args[1];
  const WordSpan rest = call.args.subspan(2);
  if (is_word(word, "list")) return list(call, rest);
  const bool is_drop = is_word(word, "drop");
  const bool is_show = is_word(word, "show");
  const bool is_change = is_word(word, "change");
  const bool is_declare = is_word(word, "declare");
  if (!is_drop && !is_show && !is_change && !is_declare) {
    return rest.empty() ? show(call, word) : declare(call, word, rest);
  }
  if (rest.empty() || (is_show && rest.size() != 1)) return call.fail_arity();
  if (is_show) return show(call, rest[0]);
  if (is_drop) return drop(call, rest[0], rest.subspan(1));
  is_change ? change(call, rest[0], rest.subspan(1)) : declare(call, rest[0], rest.subspan(1));
}

void semel_namespaces(Call& call) {
  const std::vector<std::string> names = call.engine.namespaces();
  call.reply.array(names.size());
  for (const std::string& name : names) call.reply.bulk(name);
}

void semel_inflight(Call& call) {
  std::int64_t count = in_flight_count_default;
  if (call.args.size() > 2) {
    if (!is_word(call.args[2], "count")) return call.fail(unknown_word(call.args[2], "COUNT"));
    if (call.args.size() != 4) return call.fail_arity();
    if (!accept(call, read_number("COUNT", call.args[3], 1, in_flight_count_max, count))) return;
  }
  const FoundSpace space = find_space(call, call.args[1]);
  if (space.undeclared) return call.reply.array(0);
  Claims* const claims = space.claims;
  if (claims == nullptr) return;
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

  // Read again: some may have ended since, and only get() knows whether the owner is dead.
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
