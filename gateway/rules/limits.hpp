// Every bound of the gateway that is not a setting, and the ranges of those that are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "semel/limits.hpp"
#include "semel/types.hpp"

namespace semel::gateway::limits {

inline constexpr std::size_t routes_max = 256;
inline constexpr std::size_t signing_keys_max = 256;
inline constexpr std::size_t secret_bytes_min = 16;
inline constexpr std::size_t route_name_max = 40;
inline constexpr std::size_t path_segments_max = 64;   ///< of a pattern
inline constexpr std::size_t methods_max = 16;         ///< of a route
inline constexpr std::size_t chosen_headers_max = 16;  ///< of a route's fingerprint or scope

inline constexpr std::size_t idempotency_key_max = 255;  ///< characters of Idempotency-Key
inline constexpr std::size_t fields_max = 128;           ///< header fields of a message
inline constexpr std::size_t target_bytes_max = std::size_t{8} * 1024;
inline constexpr std::size_t head_buffer_free = 8'192;  ///< of a connection; not counted
inline constexpr std::size_t head_bytes_min = 1024;
inline constexpr std::size_t head_bytes_max = std::size_t{256} * 1024;
inline constexpr std::size_t reply_head_bytes_max = std::size_t{64} * 1024;  ///< of the upstream

/// A recorded reply is one value of the engine.
inline constexpr std::size_t record_bytes_max = semel::limits::value_bytes_max;
inline constexpr std::size_t body_bytes_max = std::size_t{64} << 20;

inline constexpr std::size_t connections_max = 100'000;
inline constexpr std::size_t upstream_connections_max = 4'096;
inline constexpr std::size_t upstream_queue_max = 65'536;
inline constexpr unsigned threads_max = 64;
inline constexpr std::size_t admin_hosts_max = 16;
inline constexpr std::size_t log_queue_max = 8'192;  ///< lines of the access log that wait
inline constexpr std::size_t log_queue_bytes_max = std::size_t{8} << 20;  ///< of all of them

inline constexpr std::size_t store_nodes_max = 16;
inline constexpr std::size_t store_queue_max = 65'536;
inline constexpr std::size_t store_password_bytes_max = 4'096;
/// Limit of a recorded reply at a node: a request of a group has 8 MiB at most.
inline constexpr std::size_t node_record_bytes_max = std::size_t{4} << 20;

inline constexpr Millis duration_max{std::int64_t{366} * 86'400'000};

}  // namespace semel::gateway::limits
