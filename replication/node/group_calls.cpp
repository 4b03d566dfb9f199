#include "replication/node/group_calls.hpp"

#include <poll.h>

#include <algorithm>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "base/stopwatch.hpp"
#include "engine/replica/decision_scope.hpp"
#include "replication/state/command.hpp"
#include "replication/state/entry.hpp"
#include "storage/log/disk.hpp"

namespace semel::replication {
namespace {

/// Whether a command can make the state larger. What gives memory back, or ends work that was
/// admitted, is taken by a full group too.
struct Grows {
  bool operator()(const TimeCommand&) const noexcept { return false; }
  bool operator()(const StoreCommand& command) const noexcept {
    return command.op.verb != Verb::del && command.op.verb != Verb::delex &&
           command.op.verb != Verb::getdel && command.op.verb != Verb::expire;
  }
  bool operator()(const DeleteManyCommand&) const noexcept { return false; }
  bool operator()(const OwnerCommand&) const noexcept { return false; }
  bool operator()(const OperatorCommand& command) const noexcept {
    return command.what == OperatorCommand::What::issue;
  }
  bool operator()(const DatabaseCommand&) const noexcept { return false; }
  bool operator()(const FeatureLevelCommand&) const noexcept { return false; }
  bool operator()(const SessionCommand& command) const noexcept {
    return command.what == SessionCommand::What::open;
  }
  bool operator()(const HashCommand& command) const noexcept {
    return command.verb != engine::HashVerb::del;
  }
  bool operator()(const SectionCommand& command) const noexcept {
    return std::any_of(command.commands.begin(), command.commands.end(),
                       [this](const Command& each) { return std::visit(*this, each.what); });
  }
  template <class Other>
  bool operator()(const Other&) const noexcept {
    return true;
  }
};

constexpr const char* own_thread =
    "called by the thread that applies entries, which would wait "
    "for itself";

}  // namespace

Status GroupCalls::start() {
  try {
    thread_ = std::thread{[this] { run_all(); }};
  } catch (const std::system_error&) {
    return Error{ErrorCode::no_thread, "the thread of callbacks"};
  }
  return semel::Done{};
}

void GroupCalls::stop() {
  {
    const base::MutexLock lock{mutex_};
    is_stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status GroupCalls::admit(const Command& command) {
  if (!std::visit(Grows{}, command.what) || !gate_.is_full(replica_.bytes_besides()))
    return semel::Done{};
  return Error{ErrorCode::memory_full, "the group holds what it may"};
}

Status GroupCalls::knows(const Command& command) {
  const FeatureLevel needed = level_of(command);
  if (needed == feature_level_first) return semel::Done{};
  const base::Stopwatch time;
  for (;;) {
    const FeatureLevel level = replica_.status().level;
    if (level >= needed) return semel::Done{};
    if (level != 0) {
      return Error{ErrorCode::refused, "the group uses feature level " + std::to_string(level) +
                                           ", this needs " + std::to_string(needed) +
                                           ": upgrade() it when all services know that"};
    }
    if (time.passed() >= patience_) {
      return Error{ErrorCode::refused,
                   "the group has no feature level yet: its leader has to have met all members"};
    }
    poll(nullptr, 0, 1);
  }
}

Result<Answer> GroupCalls::decide(const Command& command, engine::Repeat repeat) {
  if (replica_.is_own_thread()) return Error{ErrorCode::refused, own_thread};
  SEMEL_CHECK(admit(command));
  SEMEL_CHECK(knows(command));
  if (const auto* session = std::get_if<SessionCommand>(&command.what)) {
    SessionCommand mine = *session;
    mine.node = replica_.session_owner().node;
    mine.life = replica_.session_owner().life;
    return replica_.propose({mine}, terms(repeat));
  }
  return replica_.propose(command, terms(repeat));
}

GroupCalls::Place GroupCalls::place_for(std::function<void(Result<Answer>)> then) {
  auto place = std::make_shared<std::list<Task>>();
  place->push_back({.then = std::move(then)});
  return place;
}

void GroupCalls::give(std::list<Task>& task, Result<Answer> answer) noexcept {
  task.front().answer = std::move(answer);
  {
    const base::MutexLock lock{mutex_};
    tasks_.splice(tasks_.end(), task);
  }
  wake_.notify_one();
}

void GroupCalls::decide(const Command& command, engine::Repeat repeat, Done done) {
  const Place place = place_for(std::move(done));
  if (const Status admitted = admit(command); !admitted) return give(*place, admitted.error());
  Result<PreparedCommand> prepared = prepare(command);
  if (!prepared.ok()) return give(*place, prepared.error());
  replica_.propose(
      *std::move(prepared),
      [this, place](Result<Answer> answer) { give(*place, std::move(answer)); }, terms(repeat));
}

Status GroupCalls::read() {
  if (replica_.is_own_thread()) return Error{ErrorCode::refused, own_thread};
  return replica_.read(terms(engine::Repeat::safe));
}

void GroupCalls::read(std::function<void(Status)> done) {
  const Place place = place_for([done = std::move(done)](const Result<Answer>& answer) {
    done(answer.ok() ? Status{semel::Done{}} : Status{answer.error()});
  });
  replica_.read([this, place](Result<Answer> answer) { give(*place, std::move(answer)); },
                terms(engine::Repeat::safe));
}

void GroupCalls::run(std::function<void()> what) {
  const Place place = place_for([what = std::move(what)](const Result<Answer>&) { what(); });
  give(*place, Answer{});
}

void GroupCalls::run_all() {
  storage::name_thread("semel-callbacks");
  constexpr Millis pause{100};
  constexpr Millis pause_with_waits{10};
  bool is_waiting = false;
  for (;;) {
    std::list<Task> tasks;
    {
      base::MutexLock lock{mutex_};
      if (tasks_.empty()) {
        if (is_stopping_) return;
        wake_.wait_for(lock, is_waiting ? pause_with_waits : pause);
      }
      tasks.swap(tasks_);
    }
    for (Task& each : tasks) {
      try {
        each.then(std::move(each.answer));
      } catch (const std::bad_alloc&) {  // it is asked again, or the lease ends it
      }
    }
    is_waiting = engine::poll_waits(replica_.engine(), replica_.clock().now());
  }
}

}  // namespace semel::replication
