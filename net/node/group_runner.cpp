#include "net/node/group_runner.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "net/commands/command.hpp"
#include "net/resp/resp_writer.hpp"
#include "net/scripts/script_host.hpp"
#include "semel/engine_host.hpp"

namespace semel::net {

bool GroupRunner::knows(std::span<const std::string_view> words) noexcept {
  if (words.empty()) return false;
  const CommandRow* const row = find_row(words);
  // Library changes have a command of their own, and a function is proposed as its effects.
  constexpr unsigned not_by_words = fact_libraries | fact_function;
  return row != nullptr && row->takes(words.size()) && (row->facts.bits & not_by_words) == 0;
}

GroupRunner::GroupRunner(Node& node) : node_(node) {}
GroupRunner::~GroupRunner() = default;

/// Runs on the thread that applies entries; another thread has constructed this object.
void GroupRunner::begin() {
  client_.handle =
      std::make_shared<ClientHandle>(ClientHandle::Origin{.address = "group"}, nullptr);
  client_.user = node_.acl.open_internal();
  client_.lane = &node_.stats.lane(lane_.lane);
  client_.scripts = std::make_shared<ScriptHost>(node_.scripts);
}

GroupRunner::Result GroupRunner::run(const GroupRequest& request) {
  if (client_.handle == nullptr) begin();
  client_.db = request.db;
  client_.dialect = request.dialect == 3 ? Resp::three : Resp::two;
  client_.session = request.session;
  client_.failures.clear();
  Result result;
  client_.begin_round(result.replies);
  static_cast<void>(client_.lane->lap(node_.ticks()));
  {
    const ExecutionScope scope{client_.context, ExecutionMode::apply};
    if (request.is_transaction) {
      run_transaction(request, result.replies);
    } else {
      run_each(request, result.replies);
    }
    client_.end_round();
  }
  // Published messages wait until the reply is written, as after a transaction.
  if (client_.held != nullptr) node_.pubsub.release(client_);
  node_.events.drain();
  node_.tracking.send(true);
  result.failures = std::exchange(client_.failures, {});
  return result;
}

/// The group has accepted the change by a table of its own. A node that refuses it would have other
/// functions than its peers from here on, so it stops.
Status GroupRunner::change_libraries(const LibraryChange& change) {
  SEMEL_TRY(verdict, node_.scripts.functions.change(change));
  if (verdict.fault == LibraryVerdict::Fault::none) return Done{};
  return Error{ErrorCode::storage_newer,
               "a change of function libraries that this release refuses: a later release is "
               "needed"};
}

void GroupRunner::run_each(const GroupRequest& request, std::string& replies) {
  for (const std::vector<std::string_view>& words : request.requests) {
    RespWriter reply{replies, client_.dialect};
    reply.set_bound(replies.size() + node_.client_memory->reply_bytes_max());
    run_one(words, reply);
  }
}

void GroupRunner::run_transaction(const GroupRequest& request, std::string& replies) {
  RespWriter reply{replies, client_.dialect};
  auto section = node_.engine().section({});
  if (!section.ok()) {
    client_.failures.push_back(section.error().code);
    return reply.error("ERR " + section.error().message());
  }
  if (has_changed(request)) {
    note_conflict(request);
    return reply.null_array();
  }
  reply.array(request.requests.size());
  for (const std::vector<std::string_view>& words : request.requests) run_one(words, reply);
  if (const Status done = section->commit(); !done) client_.failures.push_back(done.error().code);
}

bool GroupRunner::has_changed(const GroupRequest& request) {
  return std::any_of(request.watched.begin(), request.watched.end(), [&](const auto& each) {
    StoreOutcome found;
    node_.engine().host().apply({.verb = Verb::exists, .db = each.db, .key = each.key}, found);
    return (found.found ? found.version : 0) != each.version;
  });
}

void GroupRunner::note_conflict(const GroupRequest& request) {
  std::uint64_t classes = 0;
  for (const auto& each : request.watched) classes |= ScriptTurns::class_of(each.db, each.key);
  if (node_.services().group != nullptr)
    node_.services().group->script_turns().note_conflict(classes);
}

/// The proposing node has checked rights and form of the command. A node that does not know the
/// command would have another state than its peers from here on, so it stops.
void GroupRunner::run_one(const std::vector<std::string_view>& words, RespWriter& reply) {
  Call call{node_.services(), node_.engine(), client_, words, reply};
  call.row = find_row(words);
  if (call.row == nullptr || !call.row->takes(words.size())) {
    client_.failures.push_back(ErrorCode::storage_newer);
    return reply.error("ERR a command that this release does not know is in the group's log");
  }
  execute(call);
  SEMEL_ASSERT(!client_.waits && client_.transaction == nullptr);
}

}  // namespace semel::net
