// How the present command of a client is run: by itself, in a transaction, by a script, ..
//
// Contexts nest: a script runs within a transaction, or within an entry of a group's log. The
// innermost is that of the present command, and knows the ones around it.
#pragma once

#include <cstdint>

#include "base/assert.hpp"
#include "net/session/claim_repeats.hpp"
#include "net/session/group_library.hpp"

namespace semel::net {

enum class ExecutionMode : std::uint8_t {
  direct,       ///< a request by itself
  transaction,  ///< a command of an EXEC
  script,       ///< a command that a script calls
  trial,        ///< the same, on copies: its changes are dropped, and no event or monitor sees them
  apply,        ///< an entry of a group's log
  repeat,       ///< may repeat finished work only; all else is left to the log
  draft,        ///< a change of libraries that a group decides
};

/// Finished work that a command of the mode repeat may answer with.
struct Repeat {
  ClaimRepeats& from;
  bool has_missed = false;  ///< there was none: the reply does not count
};

struct ExecutionContext {
  ExecutionMode mode = ExecutionMode::direct;
  const ExecutionContext* outer = nullptr;  ///< null: of direct
  Repeat* repeat = nullptr;                 ///< of the mode repeat; else null
  GroupLibrary* library = nullptr;          ///< of the mode draft; else null

  [[nodiscard]] bool is_script() const noexcept {
    return mode == ExecutionMode::script || is_trial();
  }
  [[nodiscard]] bool is_trial() const noexcept { return mode == ExecutionMode::trial; }
  /// A part of something larger: it may not wait, and what it publishes is held back until the
  /// reply of the whole is written.
  [[nodiscard]] bool is_part() const noexcept {
    return is_script() || mode == ExecutionMode::transaction || mode == ExecutionMode::apply;
  }
  /// Also within: the node that was asked has judged its rights, and errors are recorded.
  [[nodiscard]] bool applies_log() const noexcept {
    return mode == ExecutionMode::apply || (outer != nullptr && outer->applies_log());
  }
};

/// The context of a connection between its commands.
inline constexpr ExecutionContext direct_execution{};

/// Which mode may run within which. A trial stands for what the log will carry out, and a draft or
/// a repeat for what it would be asked: each by itself.
[[nodiscard]] constexpr bool may_nest(ExecutionMode outer, ExecutionMode inner) noexcept {
  switch (inner) {
    case ExecutionMode::direct:
      return false;
    case ExecutionMode::script:
      return outer == ExecutionMode::direct || outer == ExecutionMode::transaction ||
             outer == ExecutionMode::apply;
    case ExecutionMode::transaction:
    case ExecutionMode::trial:
    case ExecutionMode::apply:
    case ExecutionMode::repeat:
    case ExecutionMode::draft:
      return outer == ExecutionMode::direct;
  }
  return false;
}

/// Makes a context the present one while it lives. `present` is the client's, and outlives it.
class ExecutionScope {
 public:
  ExecutionScope(const ExecutionContext*& present, ExecutionMode mode, Repeat* repeat = nullptr,
                 GroupLibrary* library = nullptr) noexcept
      : present_(present), context_{mode, present, repeat, library} {
    SEMEL_ASSERT(may_nest(present->mode, mode));
    SEMEL_ASSERT((repeat != nullptr) == (mode == ExecutionMode::repeat));
    SEMEL_ASSERT((library != nullptr) == (mode == ExecutionMode::draft));
    present_ = &context_;
  }
  ExecutionScope(const ExecutionScope&) = delete;
  ExecutionScope& operator=(const ExecutionScope&) = delete;
  ~ExecutionScope() {
    SEMEL_ASSERT(present_ == &context_);
    present_ = context_.outer;
  }

 private:
  const ExecutionContext*& present_;
  const ExecutionContext context_;
};

}  // namespace semel::net
