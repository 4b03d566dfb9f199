// What the commands that run scripts and functions have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "net/commands/command.hpp"

namespace semel::net {

/// EVAL, the script, and the number of keys.
inline constexpr std::size_t script_words_fixed = 3;
/// Of a request that has them. None: the handler will refuse their number.
[[nodiscard]] std::optional<std::span<const std::string_view>> script_keys(
    std::span<const std::string_view> words);
/// The number of keys in words[2]. None: an error has been written.
[[nodiscard]] std::optional<std::size_t> key_count_of(
    Call& call, std::string_view not_a_number = "ERR value is not an integer or out of range");
/// By the setting `scripts`. True: an error has been written.
[[nodiscard]] bool scripts_are_off(Call& call);
/// Why a script or function may not run now, by its flags (script_text.hpp); none: it has no "#!".
/// Empty: it may.
[[nodiscard]] std::string_view refusal_of_run(const Call& call, std::optional<std::uint32_t> flags);

}  // namespace semel::net
