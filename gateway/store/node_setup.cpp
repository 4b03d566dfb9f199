#include "gateway/store/node_setup.hpp"

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "gateway/store/node_caller.hpp"
#include "gateway/store/node_words.hpp"

namespace semel::gateway {
namespace {

constexpr Millis set_up_within{10'000};
constexpr Millis probe_within{200};

Error no_node(const std::string& why) {
  return {ErrorCode::refused, why.empty() ? "store-node: there is no connection" : why};
}

asio::awaitable<void> keep_result(asio::awaitable<Status> task, std::optional<Status>& result) {
  result.emplace(co_await std::move(task));
}

}  // namespace

/// A link that lives for a few calls. Not in an unnamed namespace: frames of coroutines have it as
/// a member.
class NodeVisit {
 public:
  explicit NodeVisit(const NodeContext& context)
      : context_(context), link_(std::make_shared<NodeLink>(io_, context)) {}

  /// Runs `task` and ends the link. Errors: of the task.
  [[nodiscard]] Status run(const std::function<asio::awaitable<Status>(NodeVisit&)>& task) {
    std::optional<Status> result;
    asio::co_spawn(io_, keep_result(task(*this), result), [this](const std::exception_ptr&) {
      link_->stop();  // no result: there was no memory
    });
    io_.run();
    return result ? *std::move(result) : Status{no_node("there is no memory")};
  }
  [[nodiscard]] asio::awaitable<NodeCall> call(const std::string& command, Millis within) {
    const NodeCommand whole{command};
    co_return co_await call_node(io_, link_, context_.counters, whole, within);
  }
  [[nodiscard]] NodeLink& link() noexcept { return *link_; }

 private:
  const NodeContext& context_;
  asio::io_context io_{1};
  const std::shared_ptr<NodeLink> link_;
};

namespace {

asio::awaitable<Status> declare_all(NodeVisit& visit, std::vector<NamespaceNeed> needs) {
  const base::Stopwatch since;
  const std::string question = command_of({"CLUSTER", "MYID"});
  for (;;) {
    const NodeCall probe = co_await visit.call(question, probe_within);
    if (probe.is_answered) break;
    const std::string why = visit.link().trouble();
    if (visit.link().is_refused()) co_return Error{ErrorCode::bad_option, why};
    if (since.passed() >= set_up_within) co_return no_node(why);
  }
  for (const NamespaceNeed& need : needs) {
    const std::string declared = namespace_command("DECLARE", need);
    NodeCall call = co_await visit.call(declared, set_up_within);
    if (call.is_answered && has_other_terms(call.reply)) {
      const std::string changed = namespace_command("CHANGE", need);
      NodeCall again = co_await visit.call(changed, set_up_within);
      call = std::move(again);
    }
    if (!call.is_answered) co_return no_node(call.why);
    if (call.reply.is_error()) {
      co_return Error{ErrorCode::bad_option,
                      "route '" + need.route->name + "': " + call.reply.text};
    }
  }
  co_return Done{};
}

asio::awaitable<Status> resolve_one(NodeVisit& visit, std::string name, std::string key,
                                    bool is_done, Millis within) {
  const std::string look = command_of({"SEMEL.GETCLAIM", name, key});
  const NodeCall seen = co_await visit.call(look, within);
  if (!seen.is_answered) co_return no_node(seen.why);
  if (seen.reply.is_error()) co_return Error{ErrorCode::refused, seen.reply.text};
  const Error nothing{ErrorCode::no_such_key, "nothing is in doubt under this key"};
  // Operators resolve no held claims: their reply may be on its way.
  if (seen.reply.field("state") != "in_doubt") co_return nothing;
  const std::string end = command_of({"SEMEL.RESOLVE", name, key, is_done ? "DONE" : "RELEASED"});
  const NodeCall ended = co_await visit.call(end, within);
  if (!ended.is_answered) co_return no_node(ended.why);
  if (ended.reply.is_error()) co_return Error{ErrorCode::refused, ended.reply.text};
  if (ended.reply.text != "1") co_return nothing;
  co_return Done{};
}

}  // namespace

Result<NodeSetup> set_up_node(const NodeContext& context, const RequestRules& rules) {
  const std::vector<NamespaceNeed> needs = namespaces_of(rules.routes());
  NodeSetup made;
  NodeVisit visit{context};
  SEMEL_CHECK(visit.run([&needs](NodeVisit& self) { return declare_all(self, needs); }));
  made.group = visit.link().group();
  for (const NamespaceNeed& need : needs) {
    made.declarations.push_back(namespace_command("DECLARE", need));
  }
  return made;
}

Status resolve_at_node(const NodeContext& context, const RequestRules& rules,
                       std::string_view route, std::string_view key, bool is_done) {
  const Route* const found = rules.find(route);
  if (found == nullptr || !(found->is_claimed() || found->guard == Guard::debounce)) {
    return Error{ErrorCode::bad_option, "no route with claims has the name '" +
                                            std::string{route.substr(0, limits::route_name_max)} +
                                            "'"};
  }
  NodeVisit visit{context};
  const std::string name = claims_name(*found);
  const std::string claimed{key};
  const Millis within = context.settings.patience;
  return visit.run(
      [&](NodeVisit& self) { return resolve_one(self, name, claimed, is_done, within); });
}

}  // namespace semel::gateway
