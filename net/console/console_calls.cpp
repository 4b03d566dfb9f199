// The calls of a session: it looks up a key, scans for claims that need attention, and acts.
#include <charconv>
#include <utility>

#include "net/commands/command.hpp"
#include "net/console/claim_scan.hpp"
#include "net/console/console_impl.hpp"
#include "net/console/console_json.hpp"
#include "net/console/console_reply.hpp"
#include "net/console/key_text.hpp"
#include "semel/claims.hpp"

namespace semel::net {
namespace json = boost::json;

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
        found["unix_ms"] = clock_.unix_ms();
        call->respond(json_response(200, std::move(found)));
        return {};
      });
}

void ConsoleImpl::scan(const SharedCall& call, const ConsoleSession& session) {
  const auto text = text_field(*call, "cursor", "0");
  std::uint64_t cursor = 0;
  const char* const end = text ? text->data() + text->size() : nullptr;
  const auto read = text ? std::from_chars(text->data(), end, cursor)
                         : std::from_chars_result{nullptr, std::errc::invalid_argument};
  if (read.ec != std::errc{} || read.ptr != end) {
    return call->respond(error_response(400, "bad_request", "cursor is not a number in a text"));
  }
  const SharedUser user = node_.acl.find(session.user);
  const CommandRow& row = *find_command("semel.inflight");
  if (user == nullptr ||
      !user->check({.command = static_cast<std::uint32_t>(index_of(row))}).ok()) {
    return call->respond(error_response(403, "no_permission",
                                        "this user may not run SEMEL.INFLIGHT, which this needs"));
  }
  auto found = scan_claims(node_.engine(), *user, cursor);
  if (found) return call->respond(json_response(200, *std::move(found)));
  const bool is_held = found.error().code == ErrorCode::section_held;
  call->respond(is_held ? error_response(503, "busy", "a script is running; ask again")
                        : error_response(400, "bad_request", found.error().message()));
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
