// A command: its row in the table, one call of it, and what it is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "net/resp_writer.hpp"
#include "semel/engine.hpp"
#include "semel/store.hpp"

namespace semel::net {

/// What a connection remembers from command to command.
struct ClientState {
  std::uint64_t id = 0;
  std::uint8_t db = 0;
  Resp dialect = Resp::two;
  std::string name{};
  bool closes = false;  ///< after the replies that are written
};

struct Call;
using Handler = void (*)(Call&);

enum CommandFlag : std::uint32_t {
  flag_write = 1U << 0U,
  flag_readonly = 1U << 1U,
  flag_denyoom = 1U << 2U,
  flag_fast = 1U << 3U,
  flag_no_auth = 1U << 4U,
  flag_loading = 1U << 5U,
  flag_stale = 1U << 6U,
  flag_noscript = 1U << 7U,
};

/// One row of net/command_table.def.
struct CommandRow {
  std::string_view name;  ///< small letters
  int arity;              ///< words, the name included; negative: at least so many
  std::uint32_t flags;
  int first_key;  ///< 0: none
  int last_key;   ///< negative: from the end
  int key_step;
  std::string_view since;
  Handler handler;
};

/// In the order of their names.
[[nodiscard]] std::span<const CommandRow> all_commands() noexcept;
/// Null: there is none. In any case of letters.
[[nodiscard]] const CommandRow* find_command(std::string_view name) noexcept;

struct Call {
  Engine& engine;
  ClientState& client;
  std::span<const std::string_view> words;  ///< of the request; words[0] is the name
  RespWriter& reply;
  const CommandRow* row = nullptr;

  [[nodiscard]] Store store() const noexcept { return engine.store(client.db); }
  [[nodiscard]] std::string_view key() const noexcept { return words[1]; }

  void fail(std::string_view text) { reply.error(text); }
  /// The error of an engine in Redis' words.
  void fail(const Error& error);
  void fail_syntax() { fail("ERR syntax error"); }
  void fail_number() { fail("ERR value is not an integer or out of range"); }
  void fail_db() { fail("ERR DB index is out of range"); }
  void fail_arity();
  void fail_expire();  ///< "invalid expire time in 'set' command"
  /// `result` or its error; what is right goes to `write`.
  template <class T, class Write>
  void answer(const Result<T>& result, Write&& write) {
    result ? write(*result) : fail(result.error());
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

/// Looks the command up, checks what its row says, and calls it. One reply is written.
void dispatch(Call& call);

}  // namespace semel::net
