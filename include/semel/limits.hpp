// Every bound of an engine in one place. A test holds each at n and at n + 1.
#pragma once

#include <cstddef>
#include <cstdint>

#include "semel/types.hpp"

namespace semel::limits {

inline constexpr Version version_max = (Version{1} << 59) - 1;  ///< also the largest epoch
inline constexpr std::size_t key_bytes_max = 64 * 1024;  ///< hard cap of Options::key_bytes_max
inline constexpr std::size_t value_bytes_max =
    16 * 1024 * 1024;  ///< hard cap of Options::value_bytes_max
inline constexpr std::size_t value_bytes_default = 1024 * 1024;
inline constexpr Millis ttl_max{std::int64_t{100} * 366 * 24 * 3600 * 1000};  ///< 100 years
/// Of an engine's clock, 348 years: one that is later when an engine is opened is refused, and
/// one that gets there later stands still for the engine.
inline constexpr Millis time_max{11'000'000'000'000};
inline constexpr unsigned db_count = 16;

inline constexpr std::size_t memory_bytes_min = std::size_t{4} << 20;
inline constexpr std::size_t memory_bytes_max = std::size_t{256} << 30;
inline constexpr std::size_t memory_bytes_default = std::size_t{1} << 30;

inline constexpr unsigned shard_count_max = 64;

inline constexpr std::size_t namespace_name_max = 64;
inline constexpr std::size_t namespace_list_max = 65'536;  ///< namespaces listed by one call
inline constexpr std::size_t owner_label_max = 64;
inline constexpr std::size_t decisions_per_key_max = 8;  ///< that Claims::explain() knows of
inline constexpr std::size_t decision_log_bytes_max = std::size_t{1} << 30;
inline constexpr std::size_t counted_namespaces_max = 100;  ///< by their own name
inline constexpr std::size_t claim_id_bytes = 16;
inline constexpr std::size_t step_name_max = 256;  ///< bytes
inline constexpr std::size_t memos_max = 1'024;    ///< of one claim, of all its payloads together
/// Of the memos of one claim together, with their names; never more than Options::value_bytes_max.
inline constexpr std::size_t memos_bytes_max = std::size_t{1} << 20;
/// That are open at once in a group; each may have any number of claims.
inline constexpr std::size_t sessions_max = 1'000'000;
inline constexpr std::size_t batch_max = 65'536;         ///< operations in one batch call
inline constexpr std::size_t section_keys_max = 65'536;  ///< keys of one atomic section
inline constexpr std::size_t waiters_per_key_max = 1'024;
inline constexpr std::size_t waiters_total_max = 65'536;
inline constexpr std::size_t callbacks_max = 1'048'576;  ///< that wait for one storage's disk
inline constexpr std::size_t scan_count_max = 65'536;    ///< records examined by one scan call

inline constexpr std::size_t hash_scan_whole_max = 512;   ///< fields that HSCAN returns at once
inline constexpr std::size_t hash_picks_max = 1'048'576;  ///< of HRANDFIELD, if they may repeat
inline constexpr std::size_t hash_picks_bytes_max = std::size_t{64} << 20;  ///< the same, together

/// Of a hash, list, set, sorted set or stream in an engine that neither writes nor sends its
/// records: no journal, cold store or group. Elsewhere Options::value_bytes_max holds, as for other
/// records.
inline constexpr std::size_t object_bytes_max = std::size_t{4'000} << 20;
/// Bytes of the shortest record of an object whose changes a journal is offered by themselves
/// (Mutation::trail).
inline constexpr std::size_t trail_record_bytes_min = 1'024;

inline constexpr std::size_t json_bytes_max = std::size_t{16} << 20;  ///< of one JSON text
inline constexpr std::size_t json_depth_max = 128;                    ///< objects in arrays in ..
inline constexpr std::size_t json_values_max = 1'048'576;  ///< of one text, all levels together
/// Decimal places in front of the point and behind it of an exact number (identity.hpp).
inline constexpr std::size_t json_places_max = 10'000;
inline constexpr std::size_t operation_bytes_max = 512;  ///< of the name of an operation

inline constexpr std::size_t signed_caller_max = 256;                  ///< bytes
inline constexpr std::size_t signed_nonce_max = 256;                   ///< bytes
inline constexpr std::size_t signed_parameters_max = 1'024;            ///< of one request
inline constexpr std::size_t signed_bytes_max = std::size_t{1} << 20;  ///< of them, together
inline constexpr std::size_t signed_token_max = 128;                   ///< bytes of a token's text

}  // namespace semel::limits
