// What commands share that look into a string: one step on it, with its errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/objects/object_command.hpp"
#include "net/settings/settings.hpp"
#include "semel/engine.hpp"

namespace semel::net {

/// The error of a step on a string; Redis has its own sentence for one that would grow too long.
inline void fail_string(Call& call, const Error& error) {
  if (error.code != ErrorCode::value_too_long) return call.fail(error);
  if (call.context().applies_log()) call.client.failures.push_back(error.code);
  std::string text{resp_prefix_of(error.code)};
  text += " string exceeds maximum allowed size (proto-max-bulk-len)";
  if (!error.detail.empty()) text += ": " + error.detail;
  call.fail(text);
}

/// `read(Bytes)` of the string at `key`, if there is one; else the event of a lookup that missed.
/// False: the error is the reply.
template <class Read>
[[nodiscard]] bool read_string(Call& call, Bytes key, Read&& read) {
  bool is_there = false;
  const Status done =
      engine::read_string(call.engine, {call.client.db, key}, [&](const Bytes* value) {
        is_there = value != nullptr;
        if (is_there) read(*value);
      });
  if (!done) return call.fail(done.error()), false;
  if (!is_there) call.notify('m', "keymiss", key);
  return true;
}

/// `change(engine::StringEdit&) -> ErrorCode` as engine::change_string() has it. None: the error is
/// the reply. Publishes the event of a new key; that of the command is the caller's.
template <class Change>
[[nodiscard]] std::optional<engine::ObjectChange> change_string(Call& call, Bytes key,
                                                                Change&& change) {
  const auto done =
      engine::change_string(call.engine, {call.client.db, key}, std::forward<Change>(change));
  if (!done.ok()) {
    fail_string(call, done.error());
    return std::nullopt;
  }
  if (done->is_new()) call.notify('n', "new", key);
  return *done;
}

/// A string is changed to have `bytes` bytes at least, the new ones 0. Not ok: it would be too
/// long.
inline ErrorCode grow_string(engine::StringEdit& edit, std::size_t bytes, std::size_t bytes_max) {
  if (bytes <= edit.before().size()) return ErrorCode::ok;
  if (bytes > bytes_max) {
    edit.would_be(bytes);
    return ErrorCode::value_too_long;
  }
  edit.value().resize(bytes, '\0');
  return ErrorCode::ok;
}

/// A section over `keys`, in which each is read and changed by a step of its own. None: the error
/// is the reply.
[[nodiscard]] inline std::optional<Section> section_of(Call& call,
                                                       std::span<const std::string_view> keys) {
  std::vector<KeyRef> refs;
  refs.reserve(keys.size());
  for (const Bytes key : keys) refs.push_back({call.client.db, key});
  Result<Section> section = call.engine.section(refs);
  if (!section.ok()) {
    call.fail(section.error());
    return std::nullopt;
  }
  return std::move(section).value();
}

/// A setting that decides what a write stores. The nodes of a group, which repeat each other's
/// writes, all go by `of_group`, whatever their own settings are.
[[nodiscard]] inline std::size_t setting_of_writes(const Call& call, Setting setting,
                                                   std::size_t of_group) noexcept {
  if (call.services.group != nullptr) return of_group;
  return static_cast<std::size_t>(call.services.settings.integer(setting));
}

/// Where a bit is, as SETBIT and BITFIELD have it: a number below 8 x proto-max-bulk-len. With
/// `bits`, "#5" is the fifth integer of so many bits. None: see bad_bit_offset.
[[nodiscard]] std::optional<std::uint64_t> bit_offset_of(const Call& call, std::string_view word,
                                                         unsigned bits);
inline constexpr std::string_view bad_bit_offset =
    "ERR bit offset is not an integer or out of range";

}  // namespace semel::net
