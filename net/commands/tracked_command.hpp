// What CLIENT TRACKING needs of one command: which keys it reads, and which it has changed.
//
// A key has changed if it has another version than before, so that a SET NX that finds a key sends
// no message. A key that was missing before and is behind the command may have been there in
// between, if another command wrote at the same moment: it counts as changed then. Another client's
// change at the same moment may count as the command's, and the message is sent twice.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "net/commands/command.hpp"
#include "net/commands/key_specs.hpp"
#include "net/session/tracking.hpp"

namespace semel::net {

class TrackedCommand {
 public:
  /// Before the handler of an admitted command, while any connection tracks. `call` must outlive
  /// this.
  explicit TrackedCommand(Call& call);
  TrackedCommand(const TrackedCommand&) = delete;
  TrackedCommand& operator=(const TrackedCommand&) = delete;
  /// Behind the handler.
  void executed(std::string_view reply);
  /// Of a call that began when no connection tracked, behind the handler: all its keys may have
  /// changed.
  static void executed_untracked(Call& call, std::string_view reply);

 private:
  struct Written {
    std::string_view key;
    std::optional<Version> before;  // none: another's section held it
  };
  [[nodiscard]] bool has_changed(const Written& each) const;
  [[nodiscard]] std::optional<Version> version_of(std::string_view key) const;
  void begin_read();
  void begin_write();

  Call& call_;
  std::shared_ptr<Tracker> reader_{};  // null: nothing is remembered
  std::vector<std::string_view> read_{};
  UsedKeys used_{};  // of a write
  std::vector<Written> written_{};
  std::optional<CountedWrite> write_{};
};

/// The keys whose values the reply of the words may show: those of a read, or that a script
/// declares. Views of `words`, without those that are composed of several.
[[nodiscard]] std::vector<std::string_view> keys_read(const CommandRow& row,
                                                      std::span<const std::string_view> words);

}  // namespace semel::net
