// What a connection remembers from command to command.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/acl/acl.hpp"
#include "net/client_handle.hpp"
#include "net/resp_writer.hpp"
#include "net/watches.hpp"
#include "semel/claim.hpp"

namespace semel::net {

struct CommandRow;

/// A command between MULTI and EXEC.
struct QueuedCommand {
  const CommandRow* row;
  std::vector<std::string> words;
};

/// From MULTI to EXEC or DISCARD.
struct Transaction {
  std::vector<QueuedCommand> commands;
  std::size_t bytes = 0;
  bool failed = false;  ///< a command was refused: EXEC will not run
};

/// What CLIENT REPLY has asked for.
enum class Replies : std::uint8_t {
  on,
  off,
  skip_next,  ///< as soon as the present command, which says so, has ended
  skip,       ///< of the present command
};

struct ClientState {
  std::shared_ptr<ClientHandle> handle;
  std::uint8_t db = 0;
  Resp dialect = Resp::two;
  AclSession user{};
  bool closes = false;     ///< after the replies that are written
  bool waits = false;      ///< for what handle->reply() will bring; nothing else is carried out
  bool executing = false;  ///< the commands of a transaction: nothing may wait
  Replies replies = Replies::on;
  std::unique_ptr<Transaction> transaction{};  ///< null: none
  std::unique_ptr<Watcher> watcher{};          ///< null: nothing is watched
  SessionId session = 0;                       ///< of claims that end with it; 0: none yet
};

}  // namespace semel::net
