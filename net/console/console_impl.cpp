#include "net/console/console_impl.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <charconv>
#include <utility>

#include "net/cluster/group.hpp"
#include "net/console/console_json.hpp"
#include "net/console/console_reply.hpp"
#include "net/console/key_text.hpp"

namespace semel::net {

namespace json = boost::json;

/// Wakes the console on the thread of the admin port. Outlives it.
class ConsoleImpl::Host final : public SessionHost {
 public:
  Host(std::weak_ptr<ConsoleImpl> console, std::shared_ptr<AdminThread> thread,
       std::uint64_t client)
      : console_(std::move(console)), thread_(std::move(thread)), client_(client) {}

  void wake() noexcept override {
    thread_->post([console = console_, client = client_] {
      if (const auto found = console.lock()) found->collect(client);
    });
  }

 private:
  const std::weak_ptr<ConsoleImpl> console_;
  const std::shared_ptr<AdminThread> thread_;
  const std::uint64_t client_;
};

ConsoleImpl::ConsoleImpl(Node& node, const Clock& clock, std::shared_ptr<AdminThread> thread,
                         const ConsoleOptions& options, ConsoleSources sources)
    : node_(node),
      clock_(clock),
      thread_(std::move(thread)),
      has_actions_(options.actions),
      guard_(options.origins),
      sources_(std::move(sources)) {}

void ConsoleImpl::respond(AdminRequest request, AdminRespond then) {
  const base::MutexLock lock{mutex_};
  if (closed_) return then(error_response(503, "closing", "the node ends"));
  // close() answers the requests that have no answer yet when the console closes.
  const std::uint64_t number = next_response_++;
  responses_.emplace(number, std::move(then));
  auto call = std::make_shared<ConsoleCall>();
  call->request = std::move(request);
  call->respond = [this, number](AdminResponse response) {
    mutex_.assume_held();  // the caller of the step that responds has locked it
    auto found = responses_.extract(number);
    if (!found.empty()) found.mapped()(std::move(response));
  };
  answer(call);
  reap();
}

void ConsoleImpl::answer(const SharedCall& call) {
  const AdminRequest& request = call->request;
  auto place = guard_.check(request);
  if (!place) return call->respond(error_response(403, "refused", place.error().detail));
  call->place = *std::move(place);
  if (request.is_post()) return answer_post(call);
  if (request.path == "/console/api/status") return answer_status(call);
  if (request.path == "/console/api/history") return answer_history(call);
  if (request.path == "/console/api/session") return answer_session(call);
  if (request.path == "/console/api/namespaces") {
    return call->respond(json_response(200, courses_json(history_)));
  }
  if (request.path == "/console") {
    AdminResponse moved = error_response(308, "moved", "the page is at /console/");
    moved.headers.emplace_back("Location", "/console/");
    return call->respond(std::move(moved));
  }
  call->respond(file_response(request.path));
}

void ConsoleImpl::answer_post(const SharedCall& call) {
  const AdminRequest& request = call->request;
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = 4;
  json::value body = json::parse(request.body.empty() ? "{}" : request.body, error, {}, options);
  call->request.body.clear();
  if (error || !body.is_object()) {
    return call->respond(error_response(400, "bad_request", "the body is not a JSON object"));
  }
  call->fields = std::move(body.get_object());
  if (request.path == "/console/api/login") return log_in(call);

  const ConsoleSession* const session = session_of(*call);
  if (session == nullptr) {
    return call->respond(error_response(401, "not_logged_in", "log in first"));
  }
  if (!is_same_secret(request.csrf_token, session->csrf_token)) {
    return call->respond(error_response(403, "refused", "the header X-Semel-Csrf is wrong"));
  }
  if (request.path == "/console/api/logout") return log_out(call, *session);
  static_cast<void>(sessions_.use(cookie_of(request.cookie, cookie_name(*call)), clock_.now()));
  if (request.path == "/console/api/key") return look_up(call, *session);
  if (answer_slice(call, *session)) return;
  if (request.path == "/console/api/resolve")
    return act(call, *session, ConsoleAction::Kind::resolve);
  if (request.path == "/console/api/forget")
    return act(call, *session, ConsoleAction::Kind::forget);
  call->respond(error_response(404, "not_found", "there is no such call"));
}

void ConsoleImpl::answer_status(const SharedCall& call) {
  MetricValues values;
  sources_.values(values);
  const Status ready = sources_.ready();
  ConsoleState state{.not_ready = ready ? std::string{} : ready.error().detail,
                     .unix_ms = clock_.unix_ms(),
                     .has_actions = has_actions_,
                     .sessions = sessions_.count()};
  json::object status = status_json(values, history_, state);
  if (values.group && !values.group->leads) status["leader"] = leader_of(node_);
  if (const Group* const group = node_.services().group; group != nullptr) {
    const GroupView view = group->view();
    status["node"] = view.node_id;
    // Addresses are no figure of /metrics: only a user sees those of all members.
    json::object addresses;
    if (session_of(*call) != nullptr) {
      for (const GroupMember& each : view.members) {
        addresses[std::to_string(each.id)] = key_text(each.client_address);
      }
    }
    status["addresses"] = std::move(addresses);
  }
  call->respond(json_response(200, std::move(status)));
}

void ConsoleImpl::answer_history(const SharedCall& call) {
  std::uint64_t after = 0;
  constexpr std::string_view name = "after=";
  const std::string_view query = call->request.query;
  if (query.starts_with(name)) {
    const char* const end = query.data() + query.size();
    const auto [read_to, error] = std::from_chars(query.data() + name.size(), end, after);
    if (error != std::errc{} || read_to != end) {
      return call->respond(error_response(400, "bad_request", "after is not a number"));
    }
  }
  call->respond(json_response(200, history_json(history_, after)));
}

void ConsoleImpl::answer_session(const SharedCall& call) {
  const ConsoleSession* const session = session_of(*call);
  if (session != nullptr) return call->respond(json_response(200, session_json(*session)));
  json::object nobody{{"user", nullptr}};
  // A login with an empty password would show the same.
  const SharedUser user = node_.acl.find("default");
  nobody["default_has_no_password"] =
      user != nullptr && user->is_on() && user->has_nopass() && !call->place.is_proxied;
  call->respond(json_response(200, std::move(nobody)));
}

std::shared_ptr<SessionHost> ConsoleImpl::make_host(std::uint64_t client) {
  return std::make_shared<Host>(weak_from_this(), thread_, client);
}

void ConsoleImpl::collect(std::uint64_t client) {
  const base::MutexLock lock{mutex_};
  if (closed_) return;
  clients_.collect(client, clock_.now());
  reap();
}

void ConsoleImpl::tick() {
  const base::MutexLock lock{mutex_};
  if (closed_) return;
  const Timestamp now = clock_.now();
  clients_.collect_all(now);
  note_ended("timeout", sessions_.end_if(
                            [&](const ConsoleSession& session) { return session.ends() <= now; }));
  note_ended("user_changed", sessions_.end_if([this](const ConsoleSession& session) {
    mutex_.assume_held();
    return !is_valid(session);
  }));
  if (history_.is_due(now)) {
    MetricValues values;
    sources_.values(values);
    history_.add(values, clock_.unix_ms(), now);
  }
  reap();
}

/// Ends sessions whose connection has ended, and connections that no session uses any more.
void ConsoleImpl::reap() {
  note_ended("connection_closed", sessions_.end_if([this](const ConsoleSession& session) {
    mutex_.assume_held();
    return !clients_.is_open(session.client);
  }));
  clients_.reap();
}

void ConsoleImpl::close() {
  ConsoleClients clients;
  std::map<std::uint64_t, AdminRespond> responses;
  {
    const base::MutexLock lock{mutex_};
    closed_ = true;
    clients = std::exchange(clients_, {});
    responses = std::exchange(responses_, {});
    sessions_ = {};
  }
  // The thread of the admin port works with their sockets.
  thread_->post([responses = std::move(responses)] {
    for (const auto& [number, respond] : responses) {
      respond(error_response(503, "outcome_unknown", "the node ends"));
    }
  });
}

}  // namespace semel::net
