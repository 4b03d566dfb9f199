// The calls of a session: it looks up a key, walks over all claims in slices, and acts.
#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "net/commands/command.hpp"
#include "net/console/claim_browser.hpp"
#include "net/console/claim_scan.hpp"
#include "net/console/console_impl.hpp"
#include "net/console/console_json.hpp"
#include "net/console/console_reply.hpp"
#include "net/console/key_text.hpp"
#include "semel/claims.hpp"

namespace semel::net {
namespace json = boost::json;

namespace {

/// A number that is written as a text; 0 if it is not there. None: it is something else.
std::optional<std::uint64_t> number_field(const ConsoleCall& call, std::string_view name) {
  const auto text = text_field(call, name, "0");
  if (!text) return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto [read_to, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc{} || read_to != end) return std::nullopt;
  return number;
}

/// None: an error has been sent.
std::optional<KeyFilter> read_filter(const ConsoleCall& call) {
  const auto fail = [&](std::string_view why) {
    call.respond(error_response(400, "bad_request", why));
    return std::nullopt;
  };
  const auto space = text_field(call, "namespace");
  const auto prefix = text_field(call, "prefix");
  const auto owner = text_field(call, "owner");
  const auto state = text_field(call, "state");
  const auto prefix_bytes = prefix ? bytes_of_key_text(*prefix) : std::nullopt;
  const auto owner_bytes = owner ? bytes_of_key_text(*owner) : std::nullopt;
  if (!space || !prefix_bytes || !owner_bytes || !state) {
    return fail(
        "namespace, prefix, owner and state are texts; in prefix and owner a backslash is "
        "\\\\, and other bytes are \\x and two digits");
  }
  if (!state->empty() && !is_list(*state)) return fail("there is no such state");
  KeyFilter filter{.space = std::string{*space},
                   .prefix = *prefix_bytes,
                   .owner = *owner_bytes,
                   .state = std::string{*state}};
  const std::array times{std::pair{"left_min_ms", &filter.left_min},
                         std::pair{"left_max_ms", &filter.left_max},
                         std::pair{"age_min_ms", &filter.age_min}};
  for (const auto& [name, to] : times) {
    if (!call.fields.contains(name)) continue;
    const auto ms = number_field(call, name);
    if (!ms || *ms > static_cast<std::uint64_t>(limits::ttl_max.count())) {
      return fail("the times are numbers of milliseconds in texts");
    }
    *to = Millis{static_cast<std::int64_t>(*ms)};
  }
  return filter;
}

using Slice = std::function<Result<json::object>(const User&, std::uint64_t cursor)>;

/// Responds with a slice of all claims, from the call's cursor on.
void answer_with(Node& node, const SharedCall& call, const ConsoleSession& session,
                 const Slice& slice) {
  const auto cursor = number_field(*call, "cursor");
  if (!cursor) {
    return call->respond(error_response(400, "bad_request", "cursor is not a number in a text"));
  }
  const SharedUser user = node.acl.find(session.user);
  const CommandRow& row = *find_command("semel.inflight");
  if (user == nullptr ||
      !user->check({.command = static_cast<std::uint32_t>(index_of(row))}).ok()) {
    return call->respond(error_response(403, "no_permission",
                                        "this user may not run SEMEL.INFLIGHT, which this needs"));
  }
  auto found = slice(*user, *cursor);
  if (found) return call->respond(json_response(200, *std::move(found)));
  switch (found.error().code) {
    case ErrorCode::section_held:
      return call->respond(error_response(503, "busy", "a script is running; ask again"));
    case ErrorCode::bad_option:
      return call->respond(
          error_response(409, "no_decisions", "no decisions are kept: decision-log-size is 0"));
    default:
      return call->respond(error_response(400, "bad_request", found.error().message()));
  }
}

void browse(Node& node, const SharedCall& call, const ConsoleSession& session) {
  const auto filter = read_filter(*call);
  if (!filter) return;
  answer_with(node, call, session, [&](const User& user, std::uint64_t cursor) {
    return browse_claims(node.engine(), user, *filter, cursor);
  });
}

void list_decisions(Node& node, const SharedCall& call, const ConsoleSession& session) {
  const auto space = text_field(*call, "namespace");
  if (!space) return call->respond(error_response(400, "bad_request", "namespace is a text"));
  answer_with(node, call, session, [&](const User& user, std::uint64_t cursor) {
    return recent_decisions(node.engine(), user, *space, cursor);
  });
}

}  // namespace

void ConsoleImpl::run(const SharedCall& call, const ConsoleSession& session,
                      CommandClient::Commands commands, CommandClient::Step step) {
  if (clients_.run(session.client, std::move(commands), clock_.now() + console_limits::call_within,
                   std::move(step))) {
    return;
  }
  call->respond(error_response(429, "busy", "too many requests of this session are under way"));
}

void ConsoleImpl::look_up(const SharedCall& call, const ConsoleSession& session) {
  const auto about = read_key(node_, *call);
  if (!about) return;
  run(call, session,
      {{"SELECT", std::to_string(about->db)},
       {"SEMEL.GETCLAIM", about->space, about->key},
       {"SEMEL.EXPLAIN", about->space, about->key}},
      [this, call, key = *about](const std::vector<Reply>& replies) -> CommandClient::Commands {
        if (replies.size() < 3) {
          call->respond(unknown_outcome_response());
          return {};
        }
        for (const Reply* const reply : {&replies[0], &replies[1]}) {
          if (!reply->is_error()) continue;
          call->respond(error_response(*reply, leader_of(node_)));
          return {};
        }
        json::object found{{"namespace", key.space}, {"key", key_text(key.key)}};
        found["claim"] = reply_json(replies[1]);
        const bool is_explained = !replies[2].is_error();
        found["decisions"] = is_explained ? reply_json(replies[2]) : json::value(nullptr);
        if (!is_explained) found["decisions_error"] = key_text(replies[2].text);
        if (const auto claims = node_.engine().claims(key.space)) {
          found["policy"] = policy_json(claims->policy());
        }
        found["unix_ms"] = node_.engine().clock().unix_ms();  // as the times of decisions
        call->respond(json_response(200, std::move(found)));
        return {};
      });
}

bool ConsoleImpl::answer_slice(const SharedCall& call, const ConsoleSession& session) {
  const std::string_view path = call->request.path;
  if (path == "/console/api/scan") {
    answer_with(node_, call, session, [&](const User& user, std::uint64_t cursor) {
      return scan_claims(node_.engine(), user, cursor);
    });
  } else if (path == "/console/api/keys") {
    browse(node_, call, session);
  } else if (path == "/console/api/decisions") {
    list_decisions(node_, call, session);
  } else {
    return false;
  }
  return true;
}

void ConsoleImpl::act(const SharedCall& call, const ConsoleSession& session,
                      ConsoleAction::Kind kind) {
  const auto action = std::make_shared<ConsoleAction>(node_, sources_, call, session);
  if (!action->read(kind)) return;
  if (!has_actions_) return action->refuse();
  if (!actions_.take(clock_.now())) {
    return call->respond(error_response(429, "too_many",
                                        "more than " +
                                            std::to_string(console_limits::actions_per_second) +
                                            " actions in a second"));
  }
  run(call, session, action->begin(),
      [action](const std::vector<Reply>& replies) { return action->next(replies); });
}

}  // namespace semel::net
