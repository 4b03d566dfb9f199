// The text of a script or library: its digest, and what stands in its first line.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/logged/library_table.hpp"
#include "lua_compat/matcher/known_scripts.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// What a script says of itself (`flags=` in its first line, or of register_function).
enum ScriptFlag : std::uint32_t {
  script_no_writes = 1U << 0U,
  script_allow_oom = 1U << 1U,
  script_allow_stale = 1U << 2U,
  script_no_cluster = 1U << 3U,
  script_allow_cross_slot = 1U << 4U,
};
/// None: there is no such flag.
[[nodiscard]] std::optional<std::uint32_t> script_flag(std::string_view name) noexcept;
/// Of `flags`, in the order of ScriptFlag.
[[nodiscard]] std::vector<std::string_view> script_flag_words(std::uint32_t flags);
static_assert(replication::library_flags_end == script_allow_cross_slot << 1U);

/// 40 small hex digits.
[[nodiscard]] std::string sha1_hex(std::string_view bytes);

/// One script; shared by threads, unchanging but for the last three.
struct Script {
  std::string sha;
  std::string text;
  std::size_t body_begin = 0;  ///< of `text`: behind the words of its first line, if that has "#!"
  bool has_shebang = false;
  std::uint32_t flags = 0;
  lua::ScriptShape shape;
  std::uint64_t number = 0;  ///< in the order in which scripts became known

  std::atomic<bool> loaded{false};     ///< by SCRIPT LOAD: kept until a flush
  std::atomic<bool> forgotten{false};  ///< by a flush, or as the one that was used least lately
  /// When last, on the node's ticks. Apart: it is written while others read the rest.
  alignas(64) std::atomic<std::int64_t> used_ns{0};

  [[nodiscard]] std::string_view body() const noexcept {
    return std::string_view{text}.substr(body_begin);
  }
  [[nodiscard]] bool is_forgotten() const noexcept {
    return forgotten.load(std::memory_order_relaxed);  // mo: relaxed: a use may be before the end
  }
  void used(std::int64_t now_ns) noexcept {
    // mo: relaxed: of uses at the same time any may be the last.
    if (used_ns.load(std::memory_order_relaxed) == now_ns) return;
    used_ns.store(now_ns, std::memory_order_relaxed);
  }
};

/// Reads the first line of `script.text`. The detail of an error is the whole reply.
[[nodiscard]] Status read_shebang(Script& script);

/// The first line of a library.
struct LibraryHead {
  std::string engine;
  std::string name;
  std::size_t body_begin = 0;
};
/// The detail of an error is the whole reply.
[[nodiscard]] Result<LibraryHead> read_library_head(std::string_view text);
using replication::is_library_name;
inline constexpr std::string_view library_name_error =
    "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least "
    "one character long";

}  // namespace semel::net
