// Lengths and counts that a caller hands in, looked at before any memory is read.
#pragma once

#include "bindings/c/handles.hpp"

namespace semel::c {

/// No bytes are longer: more than this no engine can hold.
inline constexpr std::size_t bytes_max = limits::memory_bytes_max;
/// No struct is larger: a larger size means that it was never initialised.
inline constexpr std::size_t struct_bytes_max = 4096;

/// "`what` of 70000 bytes, at most 65536", and the number of `code`.
int say_too_long(ErrorCode code, const char* what, std::size_t length, std::size_t most) noexcept;

/// Bytes of at most `most`. Errors: bad_option (NULL with a length), `code` (longer).
int check_bytes(const void* data, std::size_t length, const char* what,
                std::size_t most = bytes_max, ErrorCode code = ErrorCode::bad_option) noexcept;

inline int check_key(const semel_engine& engine, const void* key, std::size_t length) noexcept {
  return check_bytes(key, length, "key", engine.key_bytes_max, ErrorCode::key_too_long);
}
inline int check_value(const semel_engine& engine, const void* value, std::size_t length,
                       const char* what = "value") noexcept {
  return check_bytes(value, length, what, engine.value_bytes_max, ErrorCode::value_too_long);
}

/// The caller's bytes. Of more than `most`, which is at most limits::key_bytes_max, other bytes
/// that are one too many: they are refused as too long where every call refuses what it is given,
/// in its outcome, and nothing is read that may not be there.
[[nodiscard]] Bytes bounded(const void* data, std::size_t length, std::size_t most) noexcept;
[[nodiscard]] inline Bytes bounded_key(const void* key, std::size_t length) noexcept {
  return bounded(key, length, limits::key_bytes_max);
}

/// What an outcome's error has to say of its key and its payload.
int say_outcome(ErrorCode code, const semel_engine& engine, std::size_t key_length,
                std::size_t payload_length = 0) noexcept;

/// The same of a report, which may say more.
inline int say_report(const Error& error, const semel_engine& engine,
                      std::size_t key_length) noexcept {
  const bool lacks_detail = error.code == ErrorCode::key_too_long && error.detail.empty();
  return lacks_detail ? say_outcome(error.code, engine, key_length) : say(error);
}

/// The fields of a key. Errors: bad_option, too_many_keys (fields), key_too_long (one, or
/// together).
int read_fields(const semel_bytes* fields, std::size_t count, std::vector<Bytes>& list);

}  // namespace semel::c
