// Which commands a run of a script may carry out: the checks between the script and the commands'
// handlers.
#pragma once

#include <string>
#include <string_view>

#include "net/commands/command.hpp"
#include "net/scripts/scripts.hpp"

namespace semel::net {

/// Of one thread. Used again and again.
class ScriptAdmission {
 public:
  struct Rules {
    bool read_only = false;  ///< writes are refused
    bool allows_oom = false;
    bool is_trial = false;  ///< its writes change nothing of the node's
  };
  explicit ScriptAdmission(const Scripts& scripts) noexcept : scripts_(scripts) {}
  ScriptAdmission(const ScriptAdmission&) = delete;
  ScriptAdmission& operator=(const ScriptAdmission&) = delete;

  /// A run has begun for `client`. Both outlive it.
  void begin(const Services& services, const ClientState& client, Rules rules) noexcept;
  /// Gives the call its row. False: the error is in `reply`, and counted.
  [[nodiscard]] bool admit(Call& call, std::string& reply);
  /// Refuses a command whose row is `row`, or null: none. `text`: the whole error.
  void refuse(const CommandRow* row, std::string_view text, std::string& reply) const;
  /// Whether a command was admitted that may change the node's records. Never, in a trial.
  [[nodiscard]] bool has_written() const noexcept { return has_written_; }

 private:
  [[nodiscard]] bool is_write_refused(const CommandRow& row) const noexcept;

  const Scripts& scripts_;
  const Services* services_ = nullptr;
  const ClientState* client_ = nullptr;
  Rules rules_;
  bool has_written_ = false;
};

}  // namespace semel::net
