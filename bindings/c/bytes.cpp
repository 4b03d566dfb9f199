// Bytes that go to the caller, and keys.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bindings/c/sized.hpp"
#include "semel/patterns/keys.hpp"

namespace semel::c {

bool put(semel_buffer& buffer, Bytes bytes) noexcept {
  semel_buffer_free(&buffer);
  char* const data = static_cast<char*>(std::malloc(bytes.size() + 1));
  if (data == nullptr) return false;
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  data[bytes.size()] = '\0';
  buffer = {data, bytes.size()};
  return true;
}

}  // namespace semel::c

using namespace semel;

void semel_buffer_free(semel_buffer* buffer) {
  if (buffer == nullptr) return;
  std::free(buffer->data);
  *buffer = {nullptr, 0};
}

int semel_out_write(semel_out* out, const void* data, size_t length) {
  if (out == nullptr) return c::say_null("out");
  if (const int error = c::check_bytes(data, length, "data")) return error;
  try {
    out->bytes.append(c::bytes_of(data, length));
    return SEMEL_OK;
  } catch (const std::exception&) {  // nothing was appended
    return c::say(ErrorCode::memory_full);
  }
}

int semel_composite_key(const semel_bytes* fields, size_t count, semel_buffer* key) {
  if (key == nullptr) return c::say_null("key");
  return c::guarded([&] {
    std::vector<Bytes> list;
    if (const int error = c::read_fields(fields, count, list)) return error;
    if (!c::put(*key, composite_key(list))) return c::say_unknown_outcome("no memory");
    return int{SEMEL_OK};
  });
}
