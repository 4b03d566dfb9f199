#include "bindings/c/lengths.hpp"

namespace semel::c {

int say_too_long(ErrorCode code, const char* what, std::size_t length, std::size_t most) noexcept {
  return guarded([&] {
    return say(code, std::string{what} + " of " + std::to_string(length) + " bytes, at most " +
                         std::to_string(most));
  });
}

int check_bytes(const void* data, std::size_t length, const char* what, std::size_t most,
                ErrorCode code) noexcept {
  if (!is_sound(data, length)) return say_null(what);
  return length <= most ? int{SEMEL_OK} : say_too_long(code, what, length, most);
}

Bytes bounded(const void* data, std::size_t length, std::size_t most) noexcept {
  static constexpr char stand_in[limits::key_bytes_max + 1] = {};
  return length <= most ? bytes_of(data, length) : Bytes{stand_in, most + 1};
}

int say_outcome(ErrorCode code, const semel_engine& engine, std::size_t key_length,
                std::size_t payload_length) noexcept {
  if (code == ErrorCode::key_too_long) {
    return say_too_long(code, "key with its namespace", key_length, engine.key_bytes_max);
  }
  if (code == ErrorCode::value_too_long) {
    return say_too_long(code, "payload", payload_length, engine.value_bytes_max);
  }
  return say(code);
}

int read_fields(const semel_bytes* fields, std::size_t count, std::vector<Bytes>& list) {
  if (!is_sound(fields, count)) return say_null("fields");
  if (count > limits::batch_max) {
    return say(ErrorCode::too_many_keys,
               std::to_string(count) + " fields, at most " + std::to_string(limits::batch_max));
  }
  list.reserve(count);
  std::size_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto [data, length] = fields[i];
    if (const int error =
            check_bytes(data, length, "a field", limits::key_bytes_max, ErrorCode::key_too_long)) {
      return error;
    }
    total += length;
    if (total > limits::key_bytes_max) {
      return say_too_long(ErrorCode::key_too_long, "fields", total, limits::key_bytes_max);
    }
    list.push_back(bytes_of(data, length));
  }
  return SEMEL_OK;
}

}  // namespace semel::c
