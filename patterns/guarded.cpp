#include "semel/patterns/guarded.hpp"

#include <algorithm>
#include <vector>

namespace semel::detail {
namespace {

Error wrong(const std::string& what, std::size_t at) {
  return {ErrorCode::syntax, what + " at " + std::to_string(at)};
}

bool is_number(Bytes text) noexcept {
  return text.size() <= 3 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Result<std::string> numbered_format(Bytes format) {
  std::string numbered;
  std::size_t in_turn = 0;
  std::size_t written_out = 0;
  for (std::size_t at = 0; at < format.size(); ++at) {
    const char c = format[at];
    if (c != '{' && c != '}') {
      numbered += c;
      continue;
    }
    if (at + 1 < format.size() && format[at + 1] == c) {  // a brace
      numbered.append(2, c);
      ++at;
      continue;
    }
    const std::size_t end = c == '}' ? Bytes::npos : format.find('}', at);
    if (end == Bytes::npos) return wrong("a brace without its other half", at);
    const Bytes name = format.substr(at + 1, end - at - 1);
    if (!is_number(name)) return wrong("'" + std::string{name} + "' is no argument's number", at);
    name.empty() ? ++in_turn : ++written_out;
    if (in_turn != 0 && written_out != 0) return wrong("'{}' beside '{0}'", at);
    numbered += '{';
    numbered += name.empty() ? std::to_string(in_turn - 1) : std::string{name};
    numbered += '}';
    at = end;
  }
  if (in_turn + written_out == 0) {
    return Error{ErrorCode::key_empty, "'" + std::string{format} + "' names no argument"};
  }
  return numbered;
}

Error check_operation(Bytes operation) {
  if (operation.empty()) return {ErrorCode::key_empty, "the operation"};
  if (operation.size() <= limits::operation_bytes_max) return {};
  return {ErrorCode::key_too_long, "the operation has " + std::to_string(operation.size()) +
                                       " bytes; the limit is " +
                                       std::to_string(limits::operation_bytes_max)};
}

Fingerprint guarded_fingerprint(Bytes operation, std::span<const std::string> arguments) {
  std::vector<std::string> names(arguments.size());
  std::vector<KeyField> fields{{"operation", operation}};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    names[i] = std::to_string(i);
    fields.push_back({names[i], arguments[i]});
  }
  return fingerprint_of(fields);
}

Result<std::string> guarded_key(Bytes format, std::span<const std::string> values) {
  std::vector<std::string> names(values.size());
  std::vector<KeyField> fields(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    names[i] = std::to_string(i);
    fields[i] = {names[i], values[i]};
  }
  return format_key(format, fields);
}

}  // namespace semel::detail
