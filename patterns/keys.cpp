#include "semel/patterns/keys.hpp"

#include <algorithm>

#include "base/percent.hpp"

namespace semel {

namespace {

constexpr Bytes lone_empty_field = "\\e";

// --- formats ------------------------------------------------------------------------------------

/// Separators of two values: none of these is in a value as it stands in a key. The proof that two
/// sets of values never give one key needs it: the first of them behind a value is the format's.
constexpr Bytes separators = ":|/,;#=&{}\\ ";

bool is_escaped(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f || c == '%' || separators.find(c) != Bytes::npos;
}

void append_value(Bytes value, std::string& key) {
  for (const char c : value) {
    if (is_escaped(c)) {
      base::append_percent(key, c);
    } else {
      key += c;
    }
  }
}

Error at(ErrorCode code, std::string what, std::size_t position) {
  return {code, what.append(" at position ").append(std::to_string(position))};
}

std::string in_quotes(Bytes name) {
  return std::string{"'"}.append(name).append("'");
}

/// Fills in one format, from left to right.
class Formatter {
 public:
  Formatter(Bytes format, std::span<const KeyField> fields) : format_(format), fields_(fields) {}

  Result<std::string> run() {
    if (format_.empty()) return Error{ErrorCode::key_empty, "the format is empty"};
    while (at_ < format_.size()) {
      const char c = format_[at_];
      if (c != '{' && c != '}') {
        literal(c, 1);
      } else if (at_ + 1 < format_.size() && format_[at_ + 1] == c) {
        literal(c, 2);
      } else if (c == '}') {
        return at(ErrorCode::syntax, "'}' without '{'", at_);
      } else if (const Status put = value(); !put) {
        return put.error();
      }
    }
    return std::move(key_);
  }

 private:
  void literal(char c, std::size_t taken) {
    parted_ = parted_ || separators.find(c) != Bytes::npos;
    key_ += c;
    at_ += taken;
  }

  Status value() {
    const std::size_t end = format_.find_first_of("{}", at_ + 1);
    if (end == Bytes::npos || format_[end] == '{') {
      return at(ErrorCode::syntax, "'{' without '}'", at_);
    }
    const Bytes name = format_.substr(at_ + 1, end - at_ - 1);
    if (name.empty()) return at(ErrorCode::syntax, "a name is missing", at_);
    if (!parted_) {
      return at(ErrorCode::syntax,
                in_quotes(name) + " is not parted from the name before it by a blank or one of " +
                    std::string{separators.substr(0, separators.size() - 1)},
                at_);
    }
    const auto named = [&](const KeyField& field) { return field.name == name; };
    const auto found = std::find_if(fields_.begin(), fields_.end(), named);
    if (found == fields_.end()) {
      return at(ErrorCode::bad_option, "there is no field " + in_quotes(name), at_);
    }
    if (std::find_if(found + 1, fields_.end(), named) != fields_.end()) {
      return at(ErrorCode::bad_option, "there are two fields " + in_quotes(name), at_);
    }
    if (found->value.empty()) {
      return at(ErrorCode::key_empty, "the value of " + in_quotes(name), at_);
    }
    append_value(found->value, key_);
    parted_ = false;
    at_ = end + 1;
    return Done{};
  }

  Bytes format_;
  std::span<const KeyField> fields_;
  std::size_t at_ = 0;
  bool parted_ = true;  // from the value before, if there is one
  std::string key_;
};

}  // namespace

// --- joined fields ------------------------------------------------------------------------------

std::string composite_key(std::span<const Bytes> fields) {
  if (fields.size() == 1 && fields[0].empty()) return std::string{lone_empty_field};
  std::string key;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) key += '|';
    for (const char c : fields[i]) {
      if (c == '|' || c == '\\') key += '\\';
      key += c;
    }
  }
  return key;
}

std::string composite_key(std::initializer_list<Bytes> fields) {
  return composite_key(std::span{fields.begin(), fields.size()});
}

Result<std::vector<std::string>> split_composite_key(Bytes key) {
  std::vector<std::string> fields;
  if (key.empty()) return fields;
  fields.emplace_back();
  if (key == lone_empty_field) return fields;
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (key[i] == '|') {
      fields.emplace_back();
      continue;
    }
    if (key[i] == '\\') {
      ++i;
      if (i == key.size() || (key[i] != '|' && key[i] != '\\')) {
        return at(ErrorCode::syntax, "'\\' before neither '|' nor '\\'", i - 1);
      }
    }
    fields.back() += key[i];
  }
  return fields;
}

Result<std::string> scoped_key(const Scope& scope, Bytes id) {
  if (scope.needs_tenant && scope.tenant.empty()) {
    return Error{ErrorCode::key_empty, "the scope needs a tenant"};
  }
  if (scope.needs_user && scope.user.empty()) {
    return Error{ErrorCode::key_empty, "the scope needs a user"};
  }
  if (id.empty()) return Error{ErrorCode::key_empty, "the id"};
  return composite_key({scope.tenant, scope.user, id});
}

Result<std::string> format_key(Bytes format, std::span<const KeyField> fields) {
  return Formatter{format, fields}.run();
}

Result<std::string> format_key(Bytes format, std::initializer_list<KeyField> fields) {
  return format_key(format, std::span{fields.begin(), fields.size()});
}

}  // namespace semel
