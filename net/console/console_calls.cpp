// What a session of the console may look at: a key, and the claims that people should see.
#include <array>
#include <charconv>
#include <utility>

#include "net/cluster/group.hpp"
#include "net/commands/command.hpp"
#include "net/console/claim_scan.hpp"
#include "net/console/console_impl.hpp"
#include "net/console/console_json.hpp"
#include "net/console/console_reply.hpp"
#include "net/console/key_text.hpp"
#include "semel/claims.hpp"

namespace semel::net {
namespace {

namespace json = boost::json;

}  // namespace

std::string ConsoleImpl::leader() const {
  const Group* const group = node_.services().group;
  if (group == nullptr) return {};
  const GroupView view = group->view();
  for (const GroupMember& each : view.members) {
    if (each.id == view.leader) return each.client_address;
  }
  return {};
}

void ConsoleImpl::run(const SharedCall& call, const ConsoleSession& session,
                      CommandClient::Commands commands, CommandClient::Step step) {
  const auto client = clients_.find(session.client);
  if (client != clients_.end() &&
      client->second->run(std::move(commands), clock_.now() + console_limits::call_within,
                          std::move(step))) {
    return;
  }
  call->respond(error_response(429, "busy", "too many requests of this session are under way"));
}

bool ConsoleImpl::read_key(const ConsoleCall& call, ConsoleKey& key) {
  const auto space = text_field(call, "namespace");
  const auto text = text_field(call, "key");
  const auto bytes = text ? bytes_of_key_text(*text) : std::nullopt;
  const auto fail = [&](unsigned status, std::string_view word, std::string_view why) {
    call.respond(error_response(status, word, why));
    return false;
  };
  if (!space || !bytes) {
    return fail(400, "bad_request",
                "namespace and key are texts; in a key a backslash is \\\\, and other bytes are "
                "\\x and two digits");
  }
  if (bytes->empty() || bytes->size() > limits::key_bytes_max) {
    return fail(400, "bad_request",
                "the key has " + std::to_string(bytes->size()) + " bytes; it may have 1 to " +
                    std::to_string(limits::key_bytes_max));
  }
  key.space = *space;
  key.key = *bytes;
  const auto claims = node_.engine().claims(key.space);
  if (!claims) return fail(404, "no_namespace", "there is no namespace of this name");
  key.db = claims->policy().db;
  return true;
}

void ConsoleImpl::look_up(const SharedCall& call, const ConsoleSession& session) {
  ConsoleKey key;
  if (!read_key(*call, key)) return;
  run(call, session,
      {{"SELECT", std::to_string(key.db)},
       {"SEMEL.GETCLAIM", key.space, key.key},
       {"SEMEL.EXPLAIN", key.space, key.key}},
      [this, call, key](const std::vector<Reply>& replies) -> CommandClient::Commands {
        mutex_.assume_held();
        if (replies.size() < 3) {
          call->respond(unknown_outcome_response());
          return {};
        }
        for (const Reply* const reply : {&replies[0], &replies[1]}) {
          if (!reply->is_error()) continue;
          call->respond(error_response(*reply, leader()));
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

}  // namespace semel::net
