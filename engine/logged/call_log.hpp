// The way of a replica's calls to its replicated log. An engine with Options::replicated is changed
// by entries of that log alone; with a CallLog its faces, Store, Hashes and Claims, and the
// patterns on top of them, are used as those of any engine: a call that would change something
// becomes a command, and returns when its entry is applied here.
#pragma once

#include <functional>
#include <utility>
#include <variant>

#include "engine/logged/answer.hpp"
#include "engine/logged/command.hpp"
#include "engine/logged/group_time.hpp"
#include "semel/engine.hpp"
#include "semel/result.hpp"

namespace semel::engine {

/// Where the outcome of a command is not known it is asked again by its number, and decided once.
/// `safe`: a second decision is as good as the first, so that it is asked anew also where the
/// number does not help, as the answer was too long to be kept. Otherwise that is outcome_unknown.
enum class Repeat : std::uint8_t { never, safe };

/// What a claim of done work may do to its ends: move them, in a sliding window, by the replicated
/// log; nothing, for a group that is full.
enum class Ends : std::uint8_t { may_move, stay };

/// Thread-safe. Not to be called by the thread that applies entries, which would wait for itself.
class CallLog {
 public:
  using Done = std::function<void(Result<replication::Answer>)>;

  virtual ~CallLog() = default;
  /// Decided by the group. Returns when this engine has applied it. Errors: not_leader, log_busy,
  /// value_too_long, too_many_keys, bad_encoding: nothing was changed; outcome_unknown; closing.
  /// Progress: blocks for a majority, and for as long as there is no leader, within a bound.
  [[nodiscard]] virtual Result<replication::Answer> decide(const replication::Command& command,
                                                           Repeat repeat) = 0;
  /// The same; `done` is called once, on a thread that may call the engine. Does not block.
  virtual void decide(const replication::Command& command, Repeat repeat, Done done) = 0;
  /// Whether all members know the command, so that decide() would propose it. Errors: refused, and
  /// why. Progress: blocks as long as the group has not found out, within a bound.
  [[nodiscard]] virtual Status knows(const replication::Command& command) = 0;
  /// Returns when this engine has all that was answered before the call, by whatever node. Errors:
  /// not_leader, closing. Progress: as decide().
  [[nodiscard]] virtual Status read() = 0;
  virtual void read(std::function<void(Status)> done) = 0;
  /// Calls `what` once, soon, on the thread that calls `done` of the others.
  virtual void run(std::function<void()> what) = 0;
  /// The group's time, as far as this node knows it.
  [[nodiscard]] virtual const GroupTime& clock() const noexcept = 0;
};

/// The answer to a command that has one of type T.
template <class T>
[[nodiscard]] Result<T> decided(CallLog& log, replication::Command command, Repeat repeat) {
  Result<replication::Answer> answer = log.decide(command, repeat);
  if (!answer.ok()) return answer.error();
  T* const found = std::get_if<T>(&answer->what);
  if (found != nullptr) return std::move(*found);
  // A section that could not begin, and the like.
  const auto* const plain = std::get_if<replication::PlainAnswer>(&answer->what);
  return Error{plain == nullptr ? ErrorCode::bad_encoding : plain->error, {}};
}

/// The same of a command with a plain answer, whose error is the call's.
[[nodiscard]] inline Result<replication::PlainAnswer> decided(CallLog& log,
                                                              replication::Command command,
                                                              Repeat repeat) {
  SEMEL_TRY(plain, decided<replication::PlainAnswer>(log, std::move(command), repeat));
  if (plain.error != ErrorCode::ok) return Error{plain.error, {}};
  return plain;
}

}  // namespace semel::engine
