// The bounds of users and their rights. redis-server has none of them but the last three.
#pragma once

#include <cstddef>
#include <cstdint>

namespace semel::net::acl_limits {

inline constexpr std::size_t users_max = 10'000;
inline constexpr std::size_t name_bytes_max = 1'024;
inline constexpr std::size_t passwords_max = 64;    ///< of one user
inline constexpr std::size_t selectors_max = 64;    ///< of one user
inline constexpr std::size_t patterns_max = 4'096;  ///< of keys, and of channels, of one selector
inline constexpr std::size_t pattern_bytes_max = 16'384;
inline constexpr std::size_t arguments_max = 1'024;  ///< "+select|0", of one selector
inline constexpr std::size_t argument_bytes_max = 1'024;
inline constexpr std::size_t file_error_bytes_max = 65'536;  ///< of what LOAD says about a file
inline constexpr std::size_t logged_bytes_max = 1'024;       ///< of each text in the log of denials

inline constexpr std::size_t log_entries_usual = 128;
inline constexpr std::int64_t log_grouping_ms = 60'000;
inline constexpr std::int64_t password_bits_max = 4'096;

}  // namespace semel::net::acl_limits
