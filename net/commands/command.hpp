// A command: its row in the table, one call of it, and what it is given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "net/acl/catalog.hpp"
#include "net/commands/key_specs.hpp"
#include "net/commands/services.hpp"
#include "net/resp/resp_writer.hpp"
#include "net/session/client_state.hpp"
#include "semel/engine.hpp"
#include "semel/store.hpp"

namespace semel::net {

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
  flag_loading = 1U << 9U,
  flag_stale = 1U << 10U,
  flag_skip_monitor = 1U << 11U,
  flag_skip_slowlog = 1U << 12U,
  flag_no_multi = 1U << 13U,
  flag_allow_busy = 1U << 15U,
  flag_movablekeys = 1U << 16U,
  flag_may_replicate = 1U << 17U,
  flag_no_mandatory_keys = 1U << 18U,
};

// What only this node asks of a command: the column `facts`.
enum CommandFact : std::uint32_t {
  fact_listening = 1U << 0U,       ///< "listening": a subscribed RESP2 client may send it
  fact_at_once = 1U << 1U,         ///< "at-once": not queued between MULTI and EXEC
  fact_executes = 1U << 2U,        ///< "executes": runs the queue; refused, it discards it
  fact_publishes = 1U << 3U,       ///< "publishes": counts as a write that changes no key
  fact_elsewhere = 1U << 4U,       ///< "elsewhere": reaches a key of another database
  fact_monitors = 1U << 5U,        ///< "monitors": its client sees all commands
  fact_declares = 1U << 6U,        ///< "declares": declares namespaces
  fact_script_text = 1U << 7U,     ///< "script-text": runs the script whose text is word 1
  fact_script_digest = 1U << 8U,   ///< "script-digest": the same by the SHA-1 of the text
  fact_function = 1U << 9U,        ///< "function": runs the function that word 1 names
  fact_audited = 1U << 10U,        ///< "audited": its calls are in the operator log
  fact_audited_words = 1U << 11U,  ///< "audited-words": the same, if words follow its name
  fact_frees = 1U << 12U,          ///< "frees": only erases or ends claims; accepted on a full disk
  fact_stateless = 1U << 13U,      ///< "stateless": reads and changes nothing
  fact_libraries = 1U << 14U,      ///< "libraries": changes which functions there are
  fact_binds = 1U << 15U,          ///< "binds": a claim may be bound to its connection
  fact_versions = 1U << 16U,       ///< "versions": its reply has the version of a record
  fact_repeats = 1U << 18U,        ///< "repeats": in a group, any node repeats finished work
  fact_of_node = 1U << 17U,        ///< "of-node": in a group too, the node that is asked answers
  fact_removes = 1U << 19U,    ///< "removes": keys of any kind; of claims only with the right to
                               ///< run the command with fact_forgets
  fact_forgets = 1U << 20U,    ///< "forgets": removes claims, and nothing else
  fact_objects = 1U << 21U,    ///< "objects": needs the feature level of objects, as all commands
                               ///< of lists, sets, sorted sets and streams do
  fact_of_log = 1U << 22U,     ///< "of-log": only an entry of a group's log runs it
  fact_for_tests = 1U << 24U,  ///< "for-tests": scripts may send it after DEBUG
                               ///< SET-DISABLE-DENY-SCRIPTS, although it is noscript
  fact_caches = 1U << 23U      ///< "caches": reads, and may store what it has computed; not from
                               ///< read-only scripts, nor while writes are paused
};

/// Which arguments of a request are secret.
struct SecretWords {
  std::uint8_t from = 0;           ///< "secret@2": this word and all behind it; 0: none
  std::string_view option{};       ///< "secret@auth:2": `count` words behind this one
  std::uint8_t count = 0;          ///< of option
  std::uint8_t settings_from = 0;  ///< "secret-settings@2": values of names from here, by the names
  std::uint8_t name_at = 0;        ///< "names@2": this one is secret, but the log may have it
};

struct CommandFacts {
  std::uint32_t bits = 0;  ///< of CommandFact
  SecretWords secrets{};
  std::uint8_t inner_at = 0;  ///< "inner@2": where the words of another command begin; 0: nowhere
  bool is_valid = true;
};

/// One row of net/commands/command_table.def.
struct CommandRow {
  std::string_view name;     ///< small letters; of a subcommand "parent|name"
  int arity;                 ///< words, the name included; negative: a minimum
  std::uint32_t flags;       ///< of CommandFlag
  std::uint32_t categories;  ///< a bit for each of acl_categories, those that follow from flags too
  int first_key;             ///< as COMMAND has it, like the next two, by `keys`; 0: none
  int last_key;              ///< negative: from the end
  int key_step;
  std::string_view since;
  Handler handler;
  const Single* single = nullptr;  ///< of one operation on one key
  KeySpecs keys{};                 ///< which keys and channels it uses
  CommandFacts facts{};

  [[nodiscard]] bool is(CommandFlag flag) const noexcept { return (flags & flag) != 0; }
  [[nodiscard]] bool has(CommandFact fact) const noexcept { return (facts.bits & fact) != 0; }
  [[nodiscard]] bool takes(std::size_t words) const noexcept {
    const auto count = static_cast<int>(words);
    return arity >= 0 ? count == arity : count >= -arity;
  }
};

/// In the order of their names, subcommands behind their parents.
[[nodiscard]] std::span<const CommandRow> all_commands() noexcept;
/// Null: there is none. In any case of letters; no subcommands.
[[nodiscard]] const CommandRow* find_command(std::string_view name) noexcept;
/// As redis-server's directive: clients and scripts call the command `to` from now on, and `from`
/// is unknown; an empty `to` leaves the command without a name. Rights, statistics and pages have
/// its own name as before. Returns why not, in the words of redis-server; empty: done. Of the whole
/// process; not thread-safe: to be called before a node starts. std::bad_alloc.
[[nodiscard]] std::string_view rename_command(std::string_view from, std::string_view to);
/// Whether clients can call the command, or that of which it is a subcommand, by any name.
[[nodiscard]] bool has_name(const CommandRow& row) noexcept;
/// Whether rename_command() has changed a name.
[[nodiscard]] bool has_renamed_commands() noexcept;
/// Gives all commands their own names back. For tests; not thread-safe either.
void restore_command_names() noexcept;
/// The subcommand `name` of `parent`, or null.
[[nodiscard]] const CommandRow* find_subcommand(const CommandRow& parent,
                                                std::string_view name) noexcept;
/// Of a request: the subcommand, where the first word has any and the second names one. Null: there
/// is none. `words` has one at least.
[[nodiscard]] const CommandRow* find_row(std::span<const std::string_view> words) noexcept;
/// Whether `row` has subcommands, one of which is always meant.
[[nodiscard]] bool is_container(const CommandRow& row) noexcept;
/// The one command with fact_monitors, and the one with fact_declares.
[[nodiscard]] const CommandRow& monitor_row() noexcept;
[[nodiscard]] const CommandRow& declare_row() noexcept;
/// The one command with fact_forgets.
[[nodiscard]] const CommandRow& forget_row() noexcept;
/// Whether a group must use the feature level of objects before its log may have this command: an
/// earlier release does not know it.
[[nodiscard]] bool needs_objects(const CommandRow& row) noexcept;
/// Its index in all_commands().
[[nodiscard]] std::size_t index_of(const CommandRow& row) noexcept;

/// An error in the arguments of a request, found before the engine is called. An enum and not a
/// Result: every command on one key returns one, most of them `none`, and an error is a fixed text
/// that fail() chooses.
enum class ArgumentError : std::uint8_t {
  none,
  syntax,
  integer,
  floating,
  expire,
  arity,
  special,  ///< not an error yet: the handler of the command decides
};

struct Call {
  Services& services;
  Engine& engine;
  ClientState& client;
  std::span<const std::string_view> args;  ///< of the request; args[0] is the name
  RespWriter& reply;
  const CommandRow* row = nullptr;

  [[nodiscard]] Store store() const noexcept { return engine.store(client.db); }
  [[nodiscard]] const ExecutionContext& context() const noexcept { return *client.context; }
  [[nodiscard]] std::string_view key() const noexcept { return args[1]; }

  /// Publishes `event` of `event_key`, in the client's database or in `db`
  /// (net/events/keyspace_events.hpp, which also lists the letters of classes). To be called before
  /// the reply is written, once for each event, in redis-server's order.
  void notify(char event_class, std::string_view event, std::string_view event_key);
  void notify(char event_class, std::string_view event, std::string_view event_key,
              std::uint8_t db);
  /// Whether notify() has an effect. Ask before work that only an event needs.
  [[nodiscard]] bool notifies(char event_class) const noexcept;

  void fail(std::string_view text) { reply.error(text); }
  /// The error of an engine in Redis' words.
  void fail(const Error& error) { fail(error.code); }
  void fail(ErrorCode code);
  void fail(ArgumentError error);
  [[nodiscard]] std::string arity_text() const;
  void fail_syntax() { fail(ArgumentError::syntax); }
  void fail_number() { fail(ArgumentError::integer); }
  void fail_db() { fail("ERR DB index is out of range"); }
  void fail_arity() { fail(ArgumentError::arity); }
  void fail_expire() { fail(ArgumentError::expire); }  ///< "invalid expire time in 'set' command"
  /// Passes the value of `result` to `write`, or replies with its error.
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

/// Looks the row up unless it is set, and checks what it says and what the client may do. Null: an
/// error has been written, and a transaction that is being put together has failed.
[[nodiscard]] const CommandRow* admit(Call& call);
/// Whether a client may have the command: it is not only for the log of a group, and the group's
/// level of features is not too low for it.
[[nodiscard]] bool may_be_logged(const Services& services, const CommandRow& row);
/// Of a call that may not.
[[nodiscard]] std::string log_error(const Call& call);
/// admit(), and then calls it or puts it into the client's transaction. One reply is written.
void dispatch(Call& call);
/// Calls the handler of call.row and marks its keys as changed for WATCH.
void execute(Call& call);
/// Of a call that was admitted, on a node of a group, before its log is asked: answers it if that
/// repeats finished work. False: nothing is written.
[[nodiscard]] bool repeat(Call& call, ClaimRepeats& repeats);
/// Of a call that was admitted, on a node of a group, and changes libraries: computes the change to
/// propose to the group. False: it was refused, and the error is written.
[[nodiscard]] bool draft_libraries(Call& call, GroupLibrary& draft);
/// The same call, when the group has decided it: one reply is written.
void answer_libraries(Call& call, GroupLibrary& decided);

}  // namespace semel::net
