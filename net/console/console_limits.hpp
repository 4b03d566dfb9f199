// The bounds of the console.
#pragma once

#include <cstddef>

#include "semel/clock.hpp"
#include "semel/types.hpp"

namespace semel::net::console_limits {

inline constexpr std::size_t sessions_max = 32;
inline constexpr std::size_t sessions_per_user_max = 8;  ///< one more ends the longest idle one
inline constexpr Millis session_idle_max{15 * 60 * 1'000};
inline constexpr Millis session_life_max{8 * 3'600 * 1'000};

// Logins: each takes one of these tries, which come back one after the other.
inline constexpr std::size_t tries_per_address = 5;
inline constexpr Millis try_of_address_after{6'000};
inline constexpr std::size_t tries_in_all = 20;
inline constexpr Millis try_in_all_after{1'000};
/// Addresses with a count of their own; all other addresses share one.
inline constexpr std::size_t addresses_max = 256;

inline constexpr std::size_t user_bytes_max = 1'024;
inline constexpr std::size_t password_bytes_max = 4'096;

inline constexpr std::size_t calls_waiting_max = 8;  ///< of one session
/// The answer after it is an unknown outcome, and the session ends.
inline constexpr Millis call_within{5'000};

inline constexpr std::size_t scan_records = 8'192;  ///< scanned in one slice, about
// Claims of each kind (in flight, over, poison) in one slice: those that end first.
inline constexpr std::size_t scan_found_max = 512;
inline constexpr std::size_t scan_bytes_max = 128 * 1'024;  ///< of their keys

// A page of the browser of keys: it ends with the step of the scan that reaches one of these.
inline constexpr std::size_t page_rows = 100;
inline constexpr std::size_t page_key_bytes = scan_bytes_max / 2;
inline constexpr std::size_t page_result_bytes = std::size_t{8} << 20;  ///< read and not shown
inline constexpr std::size_t step_records = 16;  ///< scanned between two looks at these, about
inline constexpr Millis slice_within{20};

/// Decisions of a slice, the newest ones; and the records scanned for them, about.
inline constexpr std::size_t decisions_max = 100;
inline constexpr std::size_t decision_records = 2'048;

/// Actions of all sessions in a second: fewer than the lines that the log writes of one event in a
/// second, so that each action has its own line.
inline constexpr std::size_t actions_per_second = 5;

inline constexpr std::size_t payload_bytes_shown = 1'024;  ///< of a result or failure

inline constexpr Millis sample_every{10'000};
inline constexpr std::size_t samples_max = 360;  ///< an hour
inline constexpr std::size_t samples_between_counts = 6;
inline constexpr std::size_t counts_max = samples_max / samples_between_counts + 1;

/// Bytes of a request: a key of 64 KiB, with each byte as an escape of five.
inline constexpr std::size_t body_bytes_max = 384 * 1'024;

inline constexpr std::size_t origins_max = 8;
inline constexpr std::size_t origin_bytes_max = 255;

}  // namespace semel::net::console_limits
