// An action of an operator on one claim, from the request to the response. The operator decides
// about the record that the page has shown, so the action reads the record again and changes it
// only if it is the same, in a transaction that fails if it changes in between (WATCH). The log has
// each attempt with its outcome. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/console/command_client.hpp"
#include "net/console/console_call.hpp"
#include "net/console/console_limits.hpp"
#include "net/console/console_options.hpp"
#include "net/console/console_sessions.hpp"
#include "net/node/node.hpp"
#include "semel/types.hpp"

namespace semel::net {

class ConsoleAction {
 public:
  enum class Kind : std::uint8_t { resolve, forget };

  /// `node` and `sources` must outlive this.
  ConsoleAction(Node& node, const ConsoleSources& sources, SharedCall call,
                const ConsoleSession& session);

  /// Reads the fields of the call. False: an error has been sent.
  [[nodiscard]] bool read(Kind kind);
  /// The console allows no actions.
  void refuse();
  /// The first commands. The commands that next() returns follow, until it returns none.
  [[nodiscard]] CommandClient::Commands begin() const;
  [[nodiscard]] CommandClient::Commands next(const std::vector<Reply>& replies);

 private:
  enum class Stage : std::uint8_t { check, change, done };

  void end(std::string_view outcome, AdminResponse response);
  void end(const Reply& error);
  void end_change(const Reply& executed);

  Node& node_;
  const ConsoleSources& sources_;
  const SharedCall call_;
  const std::string user_;
  const std::string address_;
  std::string_view name_;  // resolve_done, resolve_released, forget
  ConsoleKey key_;
  std::string state_;  // that the operator has seen
  std::string epoch_;
  CommandClient::Command change_;
  Stage stage_ = Stage::check;
};

/// Limits the actions in a second to the lines that the log writes.
class ActionLimit {
 public:
  /// False: there have been console_limits::actions_per_second.
  [[nodiscard]] bool take(Timestamp now) noexcept {
    constexpr Millis second{1'000};
    if (now - second_ >= second) {
      second_ = now;
      actions_ = 0;
    }
    if (actions_ >= console_limits::actions_per_second) return false;
    ++actions_;
    return true;
  }

 private:
  Timestamp second_{};
  std::size_t actions_ = 0;  // in that second
};

}  // namespace semel::net
