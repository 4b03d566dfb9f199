// One run of a known script: sends commands for it, and reads what they answer as Lua would.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "net/scripts/native_call.hpp"

namespace semel::net {

/// What a command has answered, as far as natives look at it.
struct NativeValue {
  enum class Kind : std::uint8_t { nothing, integer, text, other };
  Kind kind = Kind::nothing;
  std::int64_t number = 0;
  std::string_view text{};  ///< of a bulk; until the next command is sent

  [[nodiscard]] bool is(std::string_view other) const noexcept {
    return kind == Kind::text && text == other;
  }
  [[nodiscard]] bool is_nothing() const noexcept { return kind == Kind::nothing; }
  [[nodiscard]] bool is_one() const noexcept { return kind == Kind::integer && number == 1; }
};

/// As a number of Lua's comes back out of it: whole ones beyond 2^53 are rounded.
[[nodiscard]] std::int64_t through_lua(std::int64_t number) noexcept;
[[nodiscard]] std::int64_t through_lua(double number) noexcept;

class NativeRun {
 public:
  explicit NativeRun(const NativeCall& call) noexcept
      : call_(call), reply_(call.reply, call.invocation.dialect) {}

  [[nodiscard]] const lua::ScriptShape& shape() const noexcept { return call_.shape; }
  [[nodiscard]] const lua::KnownEntry& entry() const noexcept { return *call_.shape.entry; }
  [[nodiscard]] std::size_t key_count() const noexcept { return call_.invocation.keys.size(); }
  [[nodiscard]] std::string_view key(std::size_t index) const noexcept {
    return call_.invocation.keys[index];
  }
  [[nodiscard]] std::string_view argument(std::size_t index) const noexcept {
    return call_.invocation.args[index];
  }

  /// Sends a command; `site`: which of the calls in the script's text it is. An error has ended the
  /// script, and is its reply: see is_over().
  NativeValue send(std::size_t site, std::initializer_list<std::string_view> words);
  NativeValue send(std::size_t site, const lua::ScriptCommand& command);
  /// The same by redis.pcall: an error is nothing to care about.
  void try_send(std::initializer_list<std::string_view> words);
  [[nodiscard]] bool is_over() const noexcept { return is_over_; }

  void answer(const lua::ScriptAnswer& answer);
  void answer(std::int64_t number) { reply_.integer(through_lua(number)); }
  void answer_nothing() { reply_.null(); }
  void answer_pair(std::int64_t first, std::int64_t second);
  void answer_text(std::string_view text) { reply_.bulk(text); }
  void answer_array(std::size_t count) { reply_.array(count); }
  /// What the last command has answered.
  void answer_last();

 private:
  NativeValue send_words(std::size_t site, std::span<const std::string_view> words);
  void write_converted(std::string_view& rest);

  const NativeCall& call_;
  RespWriter reply_;
  std::string answered_;  // in RESP2, as scripts get it
  std::vector<std::string_view> words_;
  bool is_over_ = false;
};

}  // namespace semel::net
