// A command: its row in the table, one call of it, and what it is given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "net/commands/key_specs.hpp"
#include "net/resp/resp_writer.hpp"
#include "net/session/client_state.hpp"
#include "semel/engine.hpp"
#include "semel/store.hpp"

namespace semel::net {

class Node;
struct Call;
struct Single;
using Handler = void (*)(Call&);

// In the order of the letters of command_table.def, and of what COMMAND calls them.
inline constexpr std::string_view flag_letters = "wrmapbfxnlsqkoutvyh";
inline constexpr std::array<std::string_view, 19> flag_names = {"write",
                                                                "readonly",
                                                                "denyoom",
                                                                "admin",
                                                                "pubsub",
                                                                "blocking",
                                                                "fast",
                                                                "noscript",
                                                                "no_auth",
                                                                "loading",
                                                                "stale",
                                                                "skip_monitor",
                                                                "skip_slowlog",
                                                                "no_multi",
                                                                "no_async_loading",
                                                                "allow_busy",
                                                                "movablekeys",
                                                                "may_replicate",
                                                                "no_mandatory_keys"};
static_assert(flag_letters.size() == flag_names.size());
enum CommandFlag : std::uint32_t {
  flag_write = 1U << 0U,
  flag_readonly = 1U << 1U,
  flag_denyoom = 1U << 2U,
  flag_admin = 1U << 3U,
  flag_pubsub = 1U << 4U,
  flag_blocking = 1U << 5U,
  flag_fast = 1U << 6U,
  flag_noscript = 1U << 7U,
  flag_no_auth = 1U << 8U,
  flag_skip_monitor = 1U << 11U,
  flag_skip_slowlog = 1U << 12U,
  flag_no_multi = 1U << 13U,
  flag_allow_busy = 1U << 15U,
  flag_movablekeys = 1U << 16U,
  flag_may_replicate = 1U << 17U,
  flag_no_mandatory_keys = 1U << 18U,
};

// The categories of ACL, in Redis' order.
inline constexpr std::array<std::string_view, 21> category_names = {
    "keyspace", "read",   "write",       "set",       "sortedset",  "list",        "hash",
    "string",   "bitmap", "hyperloglog", "geo",       "stream",     "pubsub",      "admin",
    "fast",     "slow",   "blocking",    "dangerous", "connection", "transaction", "scripting"};

/// One row of net/commands/command_table.def.
struct CommandRow {
  std::string_view name;     ///< small letters; of a subcommand "parent|name"
  int arity;                 ///< words, the name included; negative: at least so many
  std::uint32_t flags;       ///< of CommandFlag
  std::uint32_t categories;  ///< a bit for each of category_names, those that follow from flags too
  int first_key;             ///< as COMMAND has it, like the next two, by `keys`; 0: none
  int last_key;              ///< negative: from the end
  int key_step;
  std::string_view since;
  Handler handler;
  const Single* single = nullptr;  ///< of one operation on one key
  KeySpecs keys{};                 ///< which keys and channels it uses

  [[nodiscard]] bool is(CommandFlag flag) const noexcept { return (flags & flag) != 0; }
  [[nodiscard]] bool takes(std::size_t words) const noexcept {
    const auto count = static_cast<int>(words);
    return arity >= 0 ? count == arity : count >= -arity;
  }
};

/// In the order of their names, subcommands behind their parents.
[[nodiscard]] std::span<const CommandRow> all_commands() noexcept;
/// Null: there is none. In any case of letters; no subcommands.
[[nodiscard]] const CommandRow* find_command(std::string_view name) noexcept;
/// The subcommand `name` of `parent`, or null.
[[nodiscard]] const CommandRow* find_subcommand(const CommandRow& parent,
                                                std::string_view name) noexcept;
/// Whether `row` has subcommands, one of which is always meant.
[[nodiscard]] bool is_container(const CommandRow& row) noexcept;
/// Its place in all_commands().
[[nodiscard]] std::size_t index_of(const CommandRow& row) noexcept;

/// What is wrong with a request before the engine is asked.
enum class Fault : std::uint8_t {
  none,
  syntax,
  integer,
  floating,
  expire,
  arity,
  special,  ///< the handler knows
};

struct Call {
  Node& node;
  Engine& engine;
  ClientState& client;
  std::span<const std::string_view> words;  ///< of the request; words[0] is the name
  RespWriter& reply;
  const CommandRow* row = nullptr;

  [[nodiscard]] Store store() const noexcept { return engine.store(client.db); }
  [[nodiscard]] std::string_view key() const noexcept { return words[1]; }

  /// Tells `event` of `event_key`, in the client's database or in `db`, to those who subscribe to
  /// it (net/events/keyspace_events.hpp, which also lists the letters of classes). To be called
  /// before the reply is written, once for each event, in redis-server's order.
  void notify(char event_class, std::string_view event, std::string_view event_key);
  void notify(char event_class, std::string_view event, std::string_view event_key,
              std::uint8_t db);
  /// Whether notify() has an effect: for what would have to be found out first.
  [[nodiscard]] bool tells(char event_class) const noexcept;

  void fail(std::string_view text) { reply.error(text); }
  /// The error of an engine in Redis' words.
  void fail(const Error& error) { fail(error.code); }
  void fail(ErrorCode code);
  void fail(Fault fault);
  [[nodiscard]] std::string arity_text() const;
  void fail_syntax() { fail(Fault::syntax); }
  void fail_number() { fail(Fault::integer); }
  void fail_db() { fail("ERR DB index is out of range"); }
  void fail_arity() { fail(Fault::arity); }
  void fail_expire() { fail(Fault::expire); }  ///< "invalid expire time in 'set' command"
  /// `result` or its error; what is right goes to `write`.
  template <class T, class Write>
  void answer(const Result<T>& result, Write&& write) {
    result.ok() ? write(*result) : fail(result.error());
  }
  void answer(const Status& status) { status ? reply.ok() : fail(status.error()); }
  void answer(const Result<std::int64_t>& number) {
    answer(number, [this](std::int64_t value) { reply.integer(value); });
  }
  void answer(const Result<bool>& yes) {
    answer(yes, [this](bool value) { reply.integer(value ? 1 : 0); });
  }
  void answer(const Result<std::optional<std::string>>& value) {
    answer(value, [this](const std::optional<std::string>& bytes) {
      bytes ? reply.bulk(*bytes) : reply.null();
    });
  }
};

/// `name` is longer than ClientHandle::name_bytes_max.
inline void fail_client_name(Call& call, std::string_view name) {
  call.fail("ERR what a client says of itself is limited to " +
            std::to_string(ClientHandle::name_bytes_max) + " bytes, this has " +
            std::to_string(name.size()));
}

/// Looks the command up and checks what its row says and what the client may do. Null: an error has
/// been written, and a transaction that is being put together has failed.
[[nodiscard]] const CommandRow* admit(Call& call);
/// admit(), and then calls it or puts it into the client's transaction. One reply is written.
void dispatch(Call& call);
/// Calls the handler of call.row and tells those who watch its keys.
void execute(Call& call);

}  // namespace semel::net
