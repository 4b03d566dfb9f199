#include "tools/semel/records/json_key.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "base/ascii.hpp"
#include "tools/semel/records/exact_number.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

namespace json = boost::json;

namespace {

constexpr std::size_t scratch_bytes = 16 * 1024;

/// Integers up to here are exact in a double; beyond it two numbers may share one.
constexpr double exact_integer_max = 9'007'199'254'740'992.0;

Bytes to_bytes(json::string_view text) {
  return {text.data(), text.size()};
}

void append_sized(char tag, Bytes bytes, KeyBuffer& key) {
  const std::uint64_t size = bytes.size();
  char head[1 + sizeof size];
  head[0] = tag;
  std::memcpy(head + 1, &size, sizeof size);
  key.append({head, sizeof head});
  key.append(bytes);
}

template <class Number>
void append_number(char tag, Number number, KeyBuffer& key) {
  char bytes[1 + sizeof number];
  bytes[0] = tag;
  std::memcpy(bytes + 1, &number, sizeof number);
  key.append({bytes, sizeof bytes});
}

/// Numbers that a double cannot hold, with their texts.
using ExactTexts = std::unordered_map<const json::value*, std::string>;

/// Appends values. Without `texts`, a number that is not exact ends it.
class KeyForm {
 public:
  KeyForm(KeyBuffer& key, const ExactTexts* texts, bool folds_case)
      : key_(key), texts_(texts), folds_case_(folds_case) {}

  [[nodiscard]] bool append(const json::value& value) {
    switch (value.kind()) {
      case json::kind::null:
        key_.append("n");
        return true;
      case json::kind::bool_:
        key_.append(value.get_bool() ? "t" : "f");
        return true;
      case json::kind::int64:
        append_number('i', value.get_int64(), key_);
        return true;
      case json::kind::uint64:
        append_number('u', value.get_uint64(), key_);
        return true;
      case json::kind::double_:
        return append_double(value);
      case json::kind::string:
        append_string({value.get_string().data(), value.get_string().size()});
        return true;
      case json::kind::array:
        append_number('a', static_cast<std::uint64_t>(value.get_array().size()), key_);
        return std::all_of(value.get_array().begin(), value.get_array().end(),
                           [this](const json::value& item) { return append(item); });
      case json::kind::object:
        return append_object(value.get_object());
    }
    return false;
  }

 private:
  void append_string(Bytes text) {
    if (!folds_case_) return append_sized('s', text, key_);
    std::string folded{text};
    std::transform(folded.begin(), folded.end(), folded.begin(), base::to_lower);
    append_sized('s', folded, key_);
  }

  /// One number, one form: 1, 1.0 and 1e0 are the same key.
  bool append_double(const json::value& value) {
    const double number = value.get_double();
    if (!(std::fabs(number) < exact_integer_max)) {
      if (texts_ == nullptr) return false;
      const auto found = texts_->find(&value);
      return found != texts_->end() && append_exact_number(found->second, key_);
    }
    if (number == std::trunc(number)) {
      append_number('i', static_cast<std::int64_t>(number), key_);
    } else {
      append_number('d', number, key_);
    }
    return true;
  }

  /// Depth is bounded by the parser's limit.
  bool append_object(const json::object& object) {
    std::vector<const json::key_value_pair*> members;
    members.reserve(object.size());
    for (const json::key_value_pair& member : object) members.push_back(&member);
    std::sort(members.begin(), members.end(),
              [](const auto* one, const auto* other) { return one->key() < other->key(); });
    append_number('o', static_cast<std::uint64_t>(members.size()), key_);
    for (const json::key_value_pair* member : members) {
      append_sized('k', to_bytes(member->key()), key_);
      if (!append(member->value())) return false;
    }
    return true;
  }

  KeyBuffer& key_;
  const ExactTexts* texts_;
  bool folds_case_;
};

/// The doubles of a document, in its order.
void collect_doubles(const json::value& value, std::vector<const json::value*>& found) {
  if (value.is_double()) found.push_back(&value);
  if (const json::array* const array = value.if_array()) {
    for (const json::value& item : *array) collect_doubles(item, found);
  }
  if (const json::object* const object = value.if_object()) {
    for (const json::key_value_pair& member : *object) collect_doubles(member.value(), found);
  }
}

}  // namespace

bool is_json_pointer(Bytes text) {
  if (!text.empty() && text.front() != '/') return false;
  for (std::size_t at = text.find('~'); at != Bytes::npos; at = text.find('~', at + 1)) {
    if (at + 1 == text.size() || (text[at + 1] != '0' && text[at + 1] != '1')) return false;
  }
  return true;
}

struct JsonLine::Impl {
  Bytes line;
  bool folds_case = false;
  // The document of a line lives in `memory`, which starts in `scratch` and is emptied by the next
  // line: an ordinary line costs no allocation.
  unsigned char scratch[scratch_bytes];
  json::monotonic_resource memory{scratch, sizeof scratch};
  json::parser parser;
  std::optional<json::value> document;

  const json::value* find(const std::string& pointer) const {
    json::error_code error;
    return document->find_pointer(pointer, error);
  }

  /// Empty: they cannot be distinguished.
  ExactTexts exact_texts() const {
    std::vector<std::string> texts = long_numbers_of(line);
    std::vector<const json::value*> numbers;
    collect_doubles(*document, numbers);
    ExactTexts found;
    // A member that is named twice is in the line twice, and in the document once.
    if (numbers.size() != texts.size()) return found;
    for (std::size_t i = 0; i < texts.size(); ++i) found.emplace(numbers[i], std::move(texts[i]));
    return found;
  }
};

JsonLine::JsonLine(bool folds_case) : impl_(std::make_unique<Impl>()) {
  impl_->folds_case = folds_case;
}
JsonLine::~JsonLine() = default;

Status JsonLine::parse(Bytes line) {
  impl_->document.reset();
  impl_->parser.reset();
  impl_->memory.release();
  impl_->parser.reset(&impl_->memory);
  json::error_code error;
  impl_->parser.write(line.data(), line.size(), error);
  if (error) {
    return data_error(error == json::error::incomplete
                          ? "the JSON value is not complete"
                          : fmt::format("not JSON: {}", error.message()));
  }
  impl_->document.emplace(impl_->parser.release());
  impl_->line = line;
  return Done{};
}

JsonLine::Found JsonLine::append_key(const std::string& pointer, KeyBuffer& key) const {
  const json::value* const found = impl_->find(pointer);
  if (found == nullptr) return Found::missing;
  if (found->is_null()) return Found::null;
  const KeyBuffer::Mark before = key.mark();
  if (KeyForm{key, nullptr, impl_->folds_case}.append(*found)) return Found::ok;
  key.rewind(before);
  const ExactTexts texts = impl_->exact_texts();
  return KeyForm{key, &texts, impl_->folds_case}.append(*found) ? Found::ok : Found::inexact;
}

void JsonLine::append_missing(KeyBuffer& key) {
  key.append("m");
}
void JsonLine::append_null(KeyBuffer& key) {
  key.append("n");  // as KeyForm has it
}

JsonLine::Time JsonLine::time(const std::string& pointer, const TimeFormat& format) const {
  const json::value* const found = impl_->find(pointer);
  if (found == nullptr || found->is_null()) return {};
  Time time;
  if (const std::int64_t* const integer = found->if_int64()) {
    time.unix_ms = format.from_integer(*integer);
  } else if (const double* const number = found->if_double()) {
    time.unix_ms = format.from_double(*number);
  } else if (const json::string* const text = found->if_string()) {
    const Bytes bytes{text->data(), text->size()};
    const std::optional<TimeFormat::Reading> reading = format.read(bytes);
    if (reading && reading->size == bytes.size()) time.unix_ms = reading->unix_ms;
  }
  if (!time.unix_ms) time.text = json::serialize(*found);
  return time;
}

}  // namespace semel::tool
