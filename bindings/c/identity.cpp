// Identity of calls and payloads: canonical texts, fingerprints, and keys out of a format.
#include <cstring>
#include <vector>

#include "bindings/c/sized.hpp"
#include "semel/patterns/keys.hpp"
#if SEMEL_WITH_JSON
#include "semel/patterns/identity.hpp"
#endif

using namespace semel;

namespace {

void fill(semel_fingerprint& print, const Fingerprint& made) noexcept {
  print.algorithm = made.algorithm;
  std::memcpy(print.digest, made.digest.data(), made.digest.size());
}

int put_text(semel_buffer& buffer, const Result<std::string>& made) {
  if (!made.ok()) return c::say(made.error());
  return c::put(buffer, *made) ? int{SEMEL_OK} : c::say_unknown_outcome("no memory");
}

#if SEMEL_WITH_JSON

int put_print(semel_fingerprint& print, const Result<Fingerprint>& made) {
  if (!made.ok()) return c::say(made.error());
  fill(print, *made);
  return SEMEL_OK;
}

/// Reads the caller's struct and hands `use` the call.
template <class Use>
int with_call(const semel_call_identity* from, Use&& use) {
  if (from == nullptr) return c::say_null("call");
  semel_call_identity given;
  if (const int error = c::read_sized(from, given)) return error;
  const struct {
    const void* data;
    std::size_t length;
    const char* name;
  } fields[] = {{given.operation, given.operation_length, "operation"},
                {given.tenant, given.tenant_length, "tenant"},
                {given.user, given.user_length, "user"},
                {given.arguments, given.arguments_length, "arguments"}};
  for (const auto& field : fields) {
    if (const int error = c::check_bytes(field.data, field.length, field.name)) return error;
  }
  CallIdentity call;
  call.operation = c::bytes_of(given.operation, given.operation_length);
  call.scope.tenant = c::bytes_of(given.tenant, given.tenant_length);
  call.scope.user = c::bytes_of(given.user, given.user_length);
  call.arguments = c::bytes_of(given.arguments, given.arguments_length);
  return c::guarded([&] { return use(call); });
}

#else

int without_json() noexcept {
  return c::say(ErrorCode::refused, "this library was built without Boost");
}

#endif

}  // namespace

int semel_format_key(const void* format, size_t length, const semel_bytes* names,
                     const semel_bytes* values, size_t count, semel_buffer* key) {
  if (key == nullptr) return c::say_null("key");
  if (const int error = c::check_bytes(format, length, "format", limits::key_bytes_max,
                                       ErrorCode::key_too_long)) {
    return error;
  }
  return c::guarded([&] {
    std::vector<Bytes> given_names;
    std::vector<Bytes> given_values;
    if (const int error = c::read_fields(names, count, given_names)) return error;
    if (const int error = c::read_fields(values, count, given_values)) return error;
    std::vector<KeyField> fields;
    fields.reserve(count);
    for (std::size_t i = 0; i < count; ++i) fields.push_back({given_names[i], given_values[i]});
    return put_text(*key, format_key(c::bytes_of(format, length), fields));
  });
}

int semel_fingerprint_of(const void* payload, size_t length, semel_fingerprint* print) {
  if (print == nullptr) return c::say_null("print");
  if (const int error = c::check_bytes(payload, length, "payload")) return error;
  fill(*print, fingerprint_of(c::bytes_of(payload, length)));
  return SEMEL_OK;
}

#if SEMEL_WITH_JSON

int semel_fingerprint_json(const void* json, size_t length, semel_fingerprint* print) {
  if (print == nullptr) return c::say_null("print");
  if (const int error = c::check_bytes(json, length, "json")) return error;
  return c::guarded([&] { return put_print(*print, fingerprint_json(c::bytes_of(json, length))); });
}

int semel_identity_json(const void* json, size_t length, semel_buffer* text) {
  if (text == nullptr) return c::say_null("text");
  if (const int error = c::check_bytes(json, length, "json")) return error;
  return c::guarded([&] { return put_text(*text, identity_json(c::bytes_of(json, length))); });
}

int semel_identity_text(const semel_call_identity* call, semel_buffer* text) {
  if (text == nullptr) return c::say_null("text");
  return with_call(call,
                   [&](const CallIdentity& read) { return put_text(*text, identity_text(read)); });
}

int semel_fingerprint_identity(const semel_call_identity* call, semel_fingerprint* print) {
  if (print == nullptr) return c::say_null("print");
  return with_call(call, [&](const CallIdentity& read) {
    return put_print(*print, fingerprint_identity(read));
  });
}

#else

int semel_fingerprint_json(const void*, size_t, semel_fingerprint*) {
  return without_json();
}
int semel_identity_json(const void*, size_t, semel_buffer*) {
  return without_json();
}
int semel_identity_text(const semel_call_identity*, semel_buffer*) {
  return without_json();
}
int semel_fingerprint_identity(const semel_call_identity*, semel_fingerprint*) {
  return without_json();
}

#endif
