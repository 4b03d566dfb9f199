#include "replication/state/state_machine.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "engine/api/snapshot.hpp"
#include "engine/replica/decision_scope.hpp"
#include "replication/state/library_fields.hpp"

namespace semel::replication {

namespace {

std::string of_later_release(FeatureLevel level, FeatureLevel newest) {
  return "the group uses feature level " + std::to_string(level) + ", this release knows " +
         std::to_string(newest) + ": a later release is needed";
}

/// `answer`: of `command`, which only a later release can carry out.
std::string why_newer(const Command& command, const Answer& answer, FeatureLevel newest) {
  if (const auto* const raised = std::get_if<FeatureLevelCommand>(&command.what)) {
    return of_later_release(raised->level, newest);
  }
  // A client's request is answered with its replies, a change of libraries with the reason.
  const auto* const plain = std::get_if<PlainAnswer>(&answer.what);
  if (plain != nullptr && std::holds_alternative<LibraryCommand>(command.what)) return plain->text;
  return "a command that this release does not know: a later release is needed";
}

/// Memos of builds before release 0.2.0, which kept them beside the claims.
bool has_former_memos(const Command& command, FeatureLevel level) noexcept {
  return level >= feature_level_libraries && level < feature_level_memos &&
         level_of(command) == feature_level_memos;
}

std::string why_stopped(LogIndex index, const Entry& entry, FeatureLevel level) {
  std::string why = "entry " + std::to_string(index) + " cannot be applied here";
  for (const Command& each : entry.commands) {
    if (!has_former_memos(each, level)) continue;
    return why +
           ": it has memos of steps as builds before release 0.2.0 wrote them; the group has "
           "to begin anew";
  }
  return why;
}

}  // namespace

Result<std::unique_ptr<StateMachine>> StateMachine::open(Options options, FeatureLevel newest) {
  std::unique_ptr<StateMachine> made{new StateMachine};
  made->newest_ = newest;
  options.clock = made->clock_.get();
  options.replicated = true;
  SEMEL_TRY(engine, Engine::open(options));
  made->engine_ = std::move(engine);
  return made;
}

Status StateMachine::check(LogIndex index, std::int64_t unix_ms) const {
  if (index != applied_ + 1 || index > log_index_max) {
    return Error{ErrorCode::bad_option,
                 "entry " + std::to_string(index) + " after entry " + std::to_string(applied_)};
  }
  if (unix_ms < clock_->unix_ms()) {
    return Error{ErrorCode::bad_option, "entry " + std::to_string(index) + " is of " +
                                            std::to_string(unix_ms) + " ms, before " +
                                            std::to_string(clock_->unix_ms())};
  }
  if (!engine::may_follow(*engine_, version_before(index) + 1)) {
    return Error{ErrorCode::bad_option,
                 "entry " + std::to_string(index) + ": the engine has newer versions"};
  }
  return Done{};
}

/// It is never lowered: entries written under it would have another meaning.
Answer StateMachine::raise_level(FeatureLevel level) {
  if (level > newest_) return {PlainAnswer{.error = ErrorCode::storage_newer}};
  level_ = std::max(level_, level);
  return {PlainAnswer{.number = static_cast<std::int64_t>(level_)}};
}

Answer StateMachine::change_libraries(const LibraryCommand& command) {
  const LibraryChange change = change_of(command);
  LibraryVerdict verdict = libraries_.change(change);
  if (verdict.fault == LibraryVerdict::Fault::none && runner_ != nullptr) {
    const Status followed = runner_->libraries_changed(change);
    if (!followed) {
      return {PlainAnswer{.error = followed.error().code, .text = followed.error().detail}};
    }
  }
  return {PlainAnswer{.number = static_cast<std::int64_t>(verdict.fault),
                      .text = std::move(verdict.name)}};
}

Status StateMachine::set_runner(RequestRunner* runner) {
  runner_ = runner;
  if (runner_ == nullptr || libraries_.count() == 0) return Done{};
  return runner_->libraries_changed(
      {.what = LibraryChange::What::restore_and_flush, .name = {}, .libraries = libraries_.all()});
}

Answer StateMachine::carry_out(const Command& command) {
  if (const auto* const raised = std::get_if<FeatureLevelCommand>(&command.what)) {
    return raise_level(raised->level);
  }
  // The proposing node has checked the level; below it a replica of an earlier release has stopped.
  const FeatureLevel needed = level_of(command);
  if (has_former_memos(command, level_)) return {PlainAnswer{.error = ErrorCode::storage_failed}};
  if (needed > feature_level_first && level_ < needed) {
    return {PlainAnswer{.error = ErrorCode::bad_option}};
  }
  if (const auto* const change = std::get_if<LibraryCommand>(&command.what)) {
    return change_libraries(*change);
  }
  return replication::apply(*engine_, command, runner_);
}

Answer StateMachine::decide(LogIndex index, const Command& command, const Origin& origin) {
  const bool is_numbered = origin.node != 0;
  if (is_numbered) {
    if (std::optional<Answer> known = answers_.find(origin)) return *std::move(known);
  }
  Answer answer = carry_out(command);
  const auto* const session = std::get_if<SessionCommand>(&command.what);
  const bool begins = session != nullptr && session->node != 0 &&
                      session->what == SessionCommand::What::close_former;
  if (begins) {
    const std::uint64_t life = answers_.open(session->node, session->life, index);
    answer = {PlainAnswer{.number = static_cast<std::int64_t>(life)}};
  }
  // One that this replica alone gives ends it.
  if (is_numbered && !begins && !local_error(answer)) answers_.remember(origin, answer);
  return answer;
}

void StateMachine::count_bytes() noexcept {
  // mo: relaxed: a figure
  bytes_besides_.store(answers_.bytes() + libraries_.bytes(), std::memory_order_relaxed);
}

Result<std::vector<Answer>> StateMachine::apply(LogIndex index, Bytes bytes) {
  if (stopped_) return Error{ErrorCode::closing, "the replica stopped at an error"};
  SEMEL_TRY(entry, read_entry(bytes));
  SEMEL_CHECK(check(index, entry.unix_ms));
  std::vector<Answer> answers;
  std::optional<ErrorCode> local;
  try {
    answers.reserve(entry.commands.size());
    const Version before = version_before(index);
    const engine::DecisionScope scope{*engine_,
                                      {.now = Timestamp{Millis{entry.unix_ms}},
                                       .unix_ms = entry.unix_ms,
                                       .first = before + 1,
                                       .end = before + 1 + entry_versions_max,
                                       .secret = entry.secret,
                                       .guards_claims = level_ >= feature_level_claims}};
    // Within the scope: a snapshot of the entry before has the time of that entry.
    clock_->advance_to(entry.unix_ms);
    // From the first change on, until all of the entry is there.
    stopped_ = true;
    for (std::size_t i = 0; i < entry.commands.size(); ++i) {
      answers.push_back(decide(index, entry.commands[i], entry.origins[i]));
      local = local_error(answers.back());
      if (local) break;
    }
    // Whatever the answer says: replies of clients are text.
    if (!local && scope.lacked_memory()) local = ErrorCode::memory_full;
    count_bytes();
  } catch (const std::bad_alloc&) {
    local = ErrorCode::memory_full;
  }
  if (local) {
    stopped_ = true;
    if (*local == ErrorCode::storage_newer) {
      const Command& command = entry.commands[answers.size() - 1];
      return Error{*local, why_newer(command, answers.back(), newest_)};
    }
    return Error{*local, why_stopped(index, entry, level_)};
  }
  stopped_ = false;
  applied_ = index;
  return answers;
}

Status StateMachine::skip(LogIndex index, std::span<const std::uint64_t> members) {
  if (stopped_) return Error{ErrorCode::closing, "the replica stopped at an error"};
  const std::int64_t unix_ms = clock_->unix_ms();
  SEMEL_CHECK(check(index, unix_ms));
  const Version before = version_before(index);
  const engine::DecisionScope scope{*engine_,
                                    {.now = Timestamp{Millis{unix_ms}},
                                     .unix_ms = unix_ms,
                                     .first = before + 1,
                                     .end = before + 1 + entry_versions_max,
                                     .secret = 0,
                                     .guards_claims = level_ >= feature_level_claims}};
  if (!members.empty()) answers_.keep(members);
  count_bytes();
  applied_ = index;
  return Done{};
}

Status StateMachine::snapshot(const std::function<void(const ReplicaState&)>& state,
                              const std::function<void(const Mutation&)>& visit) {
  ReplicaState cut;
  bool is_visited = false;
  SEMEL_CHECK(engine::snapshot_at(
      *engine_,
      [&] {
        const LogIndex next = engine::next_version(*engine_) >> fence_place_bits;
        cut.applied = next - std::min<LogIndex>(next, 1);
        cut.unix_ms = clock_->unix_ms();
        cut.sessions = engine::open_sessions(*engine_);
        answers_.encode(cut.answers);
        cut.level = level_;
        cut.libraries = libraries_.all();
      },
      [&](const Mutation& mutation) {
        if (!std::exchange(is_visited, true)) state(cut);
        visit(mutation);
      }));
  if (!is_visited) state(cut);  // an empty engine has a state as well
  return Done{};
}

Status StateMachine::restore(const ReplicaState& state) {
  if (applied_ != 0) return Error{ErrorCode::bad_option, "the replica has applied entries"};
  if (!state.answers.empty() && !answers_.restore(state.answers)) {
    return Error{ErrorCode::storage_damaged, "the remembered answers cannot be read"};
  }
  if (state.level > newest_) {
    return Error{ErrorCode::storage_newer, of_later_release(state.level, newest_)};
  }
  if (!libraries_.restore(state.libraries)) {
    return Error{ErrorCode::storage_damaged, "the libraries of functions clash"};
  }
  level_ = state.level;
  count_bytes();
  for (const engine::OpenSession& session : state.sessions)
    engine::restore_session(*engine_, session);
  clock_->advance_to(state.unix_ms);
  applied_ = state.applied;
  return Done{};
}

}  // namespace semel::replication
