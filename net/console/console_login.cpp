// Login to the console and logout, with the users of the node. Each session has a connection to the
// node.
#include <algorithm>
#include <array>
#include <utility>

#include "net/console/console_impl.hpp"
#include "net/console/console_reply.hpp"
#include "net/console/key_text.hpp"

namespace semel::net {

namespace json = boost::json;

/// Cookies have no port: two nodes of one machine must not use the same name.
std::string ConsoleImpl::cookie_name(const ConsoleCall& call) const {
  return "semel_console_" + std::to_string(call.request.local_port);
}

/// Whether the user still exists, may log in, and has the same password.
bool ConsoleImpl::is_valid(const ConsoleSession& session) const {
  const SharedUser user = node_.acl.find(session.user);
  if (user == nullptr || user->id() != session.user_id || !user->is_on()) return false;
  return user->has_nopass() || is_among(session.password, user->passwords());
}

ConsoleSession* ConsoleImpl::session_of(const ConsoleCall& call) const {
  const std::string_view secret = cookie_of(call.request.cookie, cookie_name(call));
  ConsoleSession* const session = sessions_.find(secret, clock_.now());
  if (session == nullptr || session->needs_https != call.place.is_https) return nullptr;
  if (!clients_.is_open(session->client)) return nullptr;
  return is_valid(*session) ? session : nullptr;
}

void ConsoleImpl::note_ended(std::string_view why, const std::vector<ConsoleSession>& ended) {
  for (const ConsoleSession& session : ended) {
    clients_.release(session.client);
    sources_.log({.name = "console_logout",
                  .user = session.user,
                  .address = session.address,
                  .action = why});
  }
}

json::object ConsoleImpl::session_json(const ConsoleSession& session) const {
  const Timestamp now = clock_.now();
  return {{"user", key_text(session.user)},
          {"csrf", session.csrf_token},
          {"actions", has_actions_},
          {"ends_in_ms", (session.ends() - now).count()},
          {"life_ends_in_ms", (session.began + console_limits::session_life_max - now).count()}};
}

void ConsoleImpl::log_in(const SharedCall& call) {
  const Timestamp now = clock_.now();
  if (!call->place.is_local && !call->place.is_https) {
    return call->respond(error_response(
        403, "refused",
        "a password would go over the network in the open: log in from this machine, or by https "
        "through a proxy that console-origin names"));
  }
  if (const Millis wait = logins_.take(call->request.peer, now); wait > Millis{0}) {
    AdminResponse later = error_response(429, "too_many", "too many logins; wait a moment");
    later.headers.emplace_back("Retry-After", std::to_string(wait.count() / 1000 + 1));
    return call->respond(std::move(later));
  }
  const auto user = text_field(*call, "user", "default");
  const auto password = text_field(*call, "password");
  if (!user || !password || user->size() > console_limits::user_bytes_max ||
      password->size() > console_limits::password_bytes_max) {
    return call->respond(error_response(
        400, "bad_request",
        "user and password are texts of at most " + std::to_string(console_limits::user_bytes_max) +
            " and " + std::to_string(console_limits::password_bytes_max) + " bytes"));
  }
  const std::uint64_t id = clients_.open([&](std::uint64_t client) {
    return sources_.make_session({.id = client, .remote = call->request.peer}, make_host(client));
  });
  const std::string name{user->empty() ? "default" : *user};
  CommandClient::Commands commands{
      {"HELLO", "3", "AUTH", name, std::string{*password}, "SETNAME", "console"}};
  // In a group, the console shows the state of its own node.
  if (node_.services().group != nullptr) commands.push_back({"READONLY"});
  const bool began = clients_.run(
      id, std::move(commands), now + console_limits::call_within,
      [this, call, id, name,
       hash = hash_of_password(*password)](const std::vector<Reply>& replies) {
        mutex_.assume_held();
        if (!replies.empty() && !replies.front().is_error()) {
          open_session(call, id, name, hash);
          return CommandClient::Commands{};
        }
        clients_.release(id);
        if (replies.empty()) {
          call->respond(error_response(503, "busy", "the node did not answer in time"));
        } else if (replies.front().text.starts_with("DENIED")) {
          call->respond(error_response(403, "refused", replies.front().text));
        } else {
          call->respond(
              error_response(401, "wrong_login", "wrong user or password, or the user is off"));
        }
        return CommandClient::Commands{};
      });
  if (began) return;
  clients_.release(id);
  call->respond(error_response(503, "busy", "the node is short of memory for clients"));
}

void ConsoleImpl::open_session(const SharedCall& call, std::uint64_t client,
                               const std::string& user, const PasswordHash& password) {
  const SharedUser found = node_.acl.find(user);
  ConsoleSession session{.client = client,
                         .user = user,
                         .user_id = found == nullptr ? 0 : found->id(),
                         .password = password,
                         .address = call->request.peer,
                         .needs_https = call->place.is_https};
  const auto refuse = [&](unsigned status, std::string_view word, std::string_view why) {
    mutex_.assume_held();
    clients_.release(client);
    call->respond(error_response(status, word, why));
  };
  if (!is_valid(session)) return refuse(401, "wrong_login", "the user has changed meanwhile");
  if (found->has_nopass() && call->place.is_proxied) {
    return refuse(403, "refused", "a user without a password logs in from this machine only");
  }
  // This login ends an earlier session of the browser.
  if (const ConsoleSession* const before = session_of(*call)) {
    note_ended("new_login", sessions_.end_if([id = before->id](const ConsoleSession& each) {
      return each.id == id;
    }));
  }
  auto opened = sessions_.open(std::move(session), clock_.now());
  if (!opened) return refuse(503, "busy", "too many sessions of the console are open");
  note_ended("replaced", opened->ended);
  sources_.log({.name = "console_login", .user = user, .address = call->request.peer});
  AdminResponse response = json_response(200, session_json(*opened->session));
  response.headers.emplace_back("Set-Cookie", cookie_name(*call) + "=" + opened->secret +
                                                  "; Path=/console; HttpOnly; SameSite=Strict" +
                                                  (call->place.is_https ? "; Secure" : ""));
  call->respond(std::move(response));
}

void ConsoleImpl::log_out(const SharedCall& call, const ConsoleSession& session) {
  note_ended("asked", sessions_.end_if(
                          [id = session.id](const ConsoleSession& each) { return each.id == id; }));
  AdminResponse response = json_response(200, json::object{{"user", nullptr}});
  response.headers.emplace_back("Set-Cookie", cookie_name(*call) +
                                                  "=; Path=/console; HttpOnly; SameSite=Strict; "
                                                  "Max-Age=0" +
                                                  (call->place.is_https ? "; Secure" : ""));
  call->respond(std::move(response));
}

}  // namespace semel::net
