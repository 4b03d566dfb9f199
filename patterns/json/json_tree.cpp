#include "patterns/json/json_tree.hpp"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <optional>

#include "base/assert.hpp"
#include "patterns/json/json_number.hpp"
#include "semel/limits.hpp"

namespace semel::patterns {

namespace json = boost::json;

namespace {

/// UTF-16 puts what it writes as surrogates (UTF-8 with a first byte of F0..F4) before U+E000 to
/// U+FFFF (EE, EF); everything else is in the order of its UTF-8. Two valid texts first differ in
/// bytes of the same rank, so it is enough to know where a first byte goes.
unsigned utf16_rank(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte == 0xee || byte == 0xef ? byte + 0x10U : byte;
}

bool is_before_in_utf16(Bytes one, Bytes other) noexcept {
  return std::lexicographical_compare(one.begin(), one.end(), other.begin(), other.end(),
                                      [](char a, char b) { return utf16_rank(a) < utf16_rank(b); });
}

Error too_many(const char* what, std::size_t limit) {
  return {ErrorCode::value_too_long,
          std::string{"more than "}.append(std::to_string(limit)).append(what)};
}

}  // namespace

/// Builds the tree from the parser's events, in the form that Boost.JSON asks for.
class JsonTreeBuilder {
 public:
  // The parser's own limits; ours are smaller and reached first.
  static constexpr std::size_t max_object_size = limits::json_bytes_max;
  static constexpr std::size_t max_array_size = limits::json_bytes_max;
  static constexpr std::size_t max_key_size = limits::json_bytes_max;
  static constexpr std::size_t max_string_size = limits::json_bytes_max;

  explicit JsonTreeBuilder(JsonNumbers numbers) noexcept : numbers_(numbers) {}

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code& ec) { return open(JsonKind::object, ec); }
  bool on_array_begin(json::error_code& ec) { return open(JsonKind::array, ec); }
  bool on_array_end(std::size_t, json::error_code&) {
    SEMEL_ASSERT(!open_.empty() && tree_.node(open_.back().node).kind == JsonKind::array);
    open_.pop_back();
    return true;
  }
  bool on_object_end(std::size_t, json::error_code& ec) {
    SEMEL_ASSERT(!open_.empty() && tree_.node(open_.back().node).kind == JsonKind::object);
    const JsonTree::Index object = open_.back().node;
    open_.pop_back();
    return sort_members(object, ec);
  }

  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool on_key(json::string_view part, std::size_t, json::error_code&) {
    text_.append(part.data(), part.size());
    name_at_ = keep(text_);
    name_size_ = static_cast<JsonTree::Index>(text_.size());
    text_.clear();
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool on_string(json::string_view part, std::size_t, json::error_code& ec) {
    text_.append(part.data(), part.size());
    return add_text(JsonKind::string, ec);
  }
  bool on_number_part(json::string_view part, json::error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool on_int64(std::int64_t, json::string_view part, json::error_code& ec) {
    return number(part, ec);
  }
  bool on_uint64(std::uint64_t, json::string_view part, json::error_code& ec) {
    return number(part, ec);
  }
  bool on_double(double, json::string_view part, json::error_code& ec) { return number(part, ec); }
  bool on_bool(bool value, json::error_code& ec) {
    return add(value ? JsonKind::yes : JsonKind::no, ec);
  }
  bool on_null(json::error_code& ec) { return add(JsonKind::null, ec); }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

  [[nodiscard]] const Error& error() const noexcept { return error_; }
  [[nodiscard]] JsonTree take() {
    SEMEL_ASSERT(open_.empty() && tree_.size() > 0);
    return std::move(tree_);
  }

 private:
  struct Open {
    JsonTree::Index node;
    JsonTree::Index last;  // child
  };

  bool fail(Error error, json::error_code& ec) {
    error_ = std::move(error);
    ec = json::error::input_error;
    return false;
  }

  JsonTree::Index keep(Bytes text) {
    const auto at = static_cast<JsonTree::Index>(tree_.texts_.size());
    tree_.texts_.append(text);
    return at;
  }

  bool add(JsonKind kind, json::error_code& ec) {
    if (tree_.nodes_.size() == limits::json_values_max) {
      return fail(too_many(" values", limits::json_values_max), ec);
    }
    const JsonTree::Index index = tree_.size();
    JsonTree::Node& node = tree_.nodes_.emplace_back();
    node.kind = kind;
    SEMEL_ASSERT(open_.empty() == (index == 0));  // one root
    if (open_.empty()) return true;
    Open& parent = open_.back();
    if (tree_.node(parent.node).kind == JsonKind::object) {
      node.name_at = name_at_;
      node.name_size = name_size_;
    }
    JsonTree::Index& before = parent.last == JsonTree::none ? tree_.nodes_[parent.node].first
                                                            : tree_.nodes_[parent.last].next;
    before = index;
    parent.last = index;
    return true;
  }

  bool add_text(JsonKind kind, json::error_code& ec) {
    if (!add(kind, ec)) return false;
    tree_.nodes_.back().text_at = keep(text_);
    tree_.nodes_.back().text_size = static_cast<JsonTree::Index>(text_.size());
    text_.clear();
    return true;
  }

  bool number(json::string_view part, json::error_code& ec) {
    text_.append(part.data(), part.size());
    printed_.clear();
    if (!print_number()) {
      return fail({ErrorCode::syntax, "the number " + text_.substr(0, 40) + " is out of range"},
                  ec);
    }
    text_.swap(printed_);
    return add_text(JsonKind::number, ec);
  }

  [[nodiscard]] bool print_number() {
    if (numbers_ == JsonNumbers::exact) return append_exact_number(text_, printed_);
    const std::optional<double> value = read_json_number(text_);
    if (value) append_json_number(*value, printed_);
    return value.has_value();
  }

  bool open(JsonKind kind, json::error_code& ec) {
    if (!add(kind, ec)) return false;
    open_.push_back({tree_.size() - 1, JsonTree::none});
    return true;
  }

  bool sort_members(JsonTree::Index object, json::error_code& ec) {
    members_.clear();
    for (auto i = tree_.node(object).first; i != JsonTree::none; i = tree_.node(i).next) {
      members_.push_back(i);
    }
    const auto name = [this](JsonTree::Index i) { return tree_.name_of(tree_.node(i)); };
    std::sort(members_.begin(), members_.end(), [&](JsonTree::Index one, JsonTree::Index other) {
      return is_before_in_utf16(name(one), name(other));
    });
    JsonTree::Index* before = &tree_.nodes_[object].first;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (i > 0 && name(members_[i - 1]) == name(members_[i])) {
        const std::string twice{name(members_[i]).substr(0, 64)};
        return fail({ErrorCode::syntax, "the name '" + twice + "' is there twice"}, ec);
      }
      *before = members_[i];
      before = &tree_.nodes_[members_[i]].next;
    }
    *before = JsonTree::none;
    return true;
  }

  const JsonNumbers numbers_;
  JsonTree tree_;
  std::vector<Open> open_;
  std::vector<JsonTree::Index> members_;  // of the object that ends
  std::string text_;                      // of a value that arrives in parts
  std::string printed_;                   // of a number
  JsonTree::Index name_at_ = 0;           // of the member that comes
  JsonTree::Index name_size_ = 0;
  Error error_;
};

namespace {

/// "0", "0.0": "00" and "0." are no numbers.
bool is_whole_mantissa(Bytes zeros) noexcept {
  return zeros == "0" || (zeros.starts_with("0.") && zeros.size() > 2 &&
                          zeros.find_first_not_of('0', 2) == Bytes::npos);
}

constexpr Bytes digits = "0123456789";
constexpr Bytes of_numbers = "0123456789+-.eE";

/// Boost.JSON refuses an exponent of ten digits before its handler sees the number, also behind a
/// mantissa of zero. `json` with each such number as "0" and blanks, so that positions stay. None:
/// there is none.
std::optional<std::string> without_powers_of_zero(Bytes json) {
  std::string text{json};
  bool has_changed = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
      }
      continue;
    }
    if (digits.find(text[i]) == Bytes::npos) continue;
    const std::size_t end = std::min(text.find_first_not_of(of_numbers, i), text.size());
    const Bytes number = Bytes{text}.substr(i, end - i);
    const std::size_t e = number.find_first_of("eE");
    const std::size_t sign = e != Bytes::npos && number.find_first_of("+-", e) == e + 1 ? 1 : 0;
    const bool is_zero = e != Bytes::npos && number.find_first_not_of("0.") == e &&
                         e + 1 + sign < number.size() &&
                         number.find_first_not_of(digits, e + 1 + sign) == Bytes::npos;
    if (is_zero && is_whole_mantissa(number.substr(0, e))) {
      text.replace(i, number.size(), number.size(), ' ');
      text[i] = '0';
      has_changed = true;
    }
    i = end - 1;
  }
  if (!has_changed) return std::nullopt;
  return text;
}

std::size_t read(Bytes text, json::basic_parser<JsonTreeBuilder>& parser, json::error_code& ec) {
  const std::size_t read = parser.write_some(false, text.data(), text.size(), ec);
  if (!ec && read < text.size()) ec = json::error::extra_data;
  return read;
}

}  // namespace

Result<JsonTree> JsonTree::parse(Bytes json_text, JsonNumbers numbers) {
  if (json_text.size() > limits::json_bytes_max) {
    return too_many(" bytes of JSON", limits::json_bytes_max);
  }
  json::parse_options options;
  options.max_depth = limits::json_depth_max;
  std::optional<std::string> shortened;
  for (;;) {
    json::basic_parser<JsonTreeBuilder> parser{options, numbers};
    json::error_code ec;
    const std::size_t at = read(shortened ? Bytes{*shortened} : json_text, parser, ec);
    if (parser.handler().error().code != ErrorCode::ok) return parser.handler().error();
    if (!ec) return parser.handler().take();
    if (ec == json::error::exponent_overflow && !shortened) {
      shortened = without_powers_of_zero(json_text);
      if (shortened) continue;
    }
    if (ec == json::error::too_deep) return too_many(" levels of JSON", limits::json_depth_max);
    return Error{ErrorCode::syntax, ec.message() + " at position " + std::to_string(at)};
  }
}

}  // namespace semel::patterns
