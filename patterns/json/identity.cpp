#include "semel/patterns/identity.hpp"

#include "patterns/json/json_tree.hpp"
#include "patterns/json/json_writer.hpp"
#include "semel/limits.hpp"

namespace semel {

using patterns::JsonNumbers;
using patterns::JsonTree;
using patterns::JsonWriter;

std::string json_string(Bytes text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json.append(1, '\\').append(1, c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json.append("\\u00").append(1, "01"[(c >> 4) & 1]).append(1, "0123456789abcdef"[c & 15]);
    } else {
      json += c;
    }
  }
  json += '"';
  return json;
}

namespace {

void append_scope(const Scope& scope, std::string& json) {
  if (scope.tenant.empty() && scope.user.empty()) {
    json += "null";
    return;
  }
  json += '{';
  if (!scope.tenant.empty()) {
    json.append("\"tenant\":").append(json_string(scope.tenant));
  }
  if (!scope.user.empty()) {
    json.append(scope.tenant.empty() ? "" : ",").append("\"user\":");
    json.append(json_string(scope.user));
  }
  json += '}';
}

Status check(const CallIdentity& call) {
  if (call.operation.empty()) return Error{ErrorCode::key_empty, "the operation has no name"};
  if (call.operation.size() > limits::operation_bytes_max) {
    return Error{ErrorCode::key_too_long,
                 "the operation's name has " + std::to_string(call.operation.size()) +
                     " bytes, more than " + std::to_string(limits::operation_bytes_max)};
  }
  if (call.scope.needs_tenant && call.scope.tenant.empty()) {
    return Error{ErrorCode::key_empty, "the scope needs a tenant"};
  }
  if (call.scope.needs_user && call.scope.user.empty()) {
    return Error{ErrorCode::key_empty, "the scope needs a user"};
  }
  return Done{};
}

}  // namespace

Result<std::string> identity_json(Bytes json, const JsonFields& fields) {
  SEMEL_TRY(tree, JsonTree::parse(json, JsonNumbers::exact));
  JsonWriter writer{tree, JsonWriter::Types::of_identity};
  SEMEL_CHECK(writer.choose(fields));
  writer.write(0, false);
  return writer.take();
}

Result<std::string> identity_text(const CallIdentity& call) {
  SEMEL_CHECK(check(call));
  // Each part is made canonical by itself: arguments like `1],[2` must not end the array.
  SEMEL_TRY(operation, identity_json(json_string(call.operation)));
  std::string whose;
  append_scope(call.scope, whose);
  SEMEL_TRY(scope, identity_json(whose));
  SEMEL_TRY(arguments, identity_json(call.arguments));
  std::string text = "[";
  text.append(operation).append(",").append(scope).append(",").append(arguments).append("]");
  return text;
}

Result<Fingerprint> fingerprint_identity(const CallIdentity& call) {
  SEMEL_TRY(text, identity_text(call));
  Fingerprint made = fingerprint_of(Bytes{text});
  made.algorithm = static_cast<std::uint8_t>(FingerprintAlgorithm::xxh3_identity);
  return made;
}

}  // namespace semel
