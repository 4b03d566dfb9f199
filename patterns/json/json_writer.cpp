#include "patterns/json/json_writer.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "patterns/json/json_pointer.hpp"

namespace semel::patterns {

using Index = JsonTree::Index;

namespace {

constexpr Bytes set_name = "$set";
constexpr Bytes map_name = "$map";

}  // namespace

Status JsonWriter::choose(const JsonFields& fields) {
  if (fields.only.empty() && fields.except.empty()) return Done{};
  marks_.assign(tree_.size(), fields.only.empty() ? mark_all : 0);
  const JsonKind root = tree_.node(0).kind;
  if (root == JsonKind::object || root == JsonKind::array) marks_[0] |= mark_way;
  for (const Bytes pointer : fields.only) {
    const auto steps = steps_of(pointer);
    if (!steps) return no_pointer(pointer);
    const std::vector<Index> way = way_to(tree_, *steps);
    for (const Index index : way) marks_[index] |= mark_way;
    if (!way.empty()) marks_[way.back()] |= mark_all;
  }
  for (const Bytes pointer : fields.except) {
    const auto steps = steps_of(pointer);
    if (!steps) return no_pointer(pointer);
    const std::vector<Index> way = way_to(tree_, *steps);
    if (!way.empty()) marks_[way.back()] = mark_out;
  }
  if (!counts(0, false)) return Error{ErrorCode::bad_option, "nothing of the JSON is left"};
  return Done{};
}

void JsonWriter::write(Index index, bool all) {
  const JsonTree::Node& node = tree_.node(index);
  all = all || marks_.empty() || (marks_[index] & mark_all) != 0;
  switch (node.kind) {
    case JsonKind::null:
      text_ += "null";
      return;
    case JsonKind::yes:
      text_ += "true";
      return;
    case JsonKind::no:
      text_ += "false";
      return;
    case JsonKind::number:
      text_ += tree_.text_of(node);
      return;
    case JsonKind::string:
      write_string(tree_.text_of(node));
      return;
    case JsonKind::array:
      write_array(node, all);
      return;
    case JsonKind::object:
      write_object(node, all);
      return;
  }
}

Result<std::string> JsonWriter::take() {
  if (twice_.empty()) return std::move(text_);
  return Error{ErrorCode::syntax, "the key " + twice_.substr(0, 64) + " is in a map twice"};
}

bool JsonWriter::counts(Index index, bool all) const {
  if (marks_.empty()) return true;
  SEMEL_ASSERT(index < marks_.size());
  const std::uint8_t mark = marks_[index];
  return (mark & mark_out) == 0 && (all || mark != 0);
}

void JsonWriter::write_array(const JsonTree::Node& node, bool all) {
  text_ += '[';
  // Elements keep their places: an omitted element in front of one that counts is null.
  std::size_t left_out = 0;
  bool is_first = true;
  for (Index i = node.first; i != JsonTree::none; i = tree_.node(i).next) {
    if (!counts(i, all)) {
      ++left_out;
      continue;
    }
    for (; left_out > 0; --left_out, is_first = false) text_ += is_first ? "null" : ",null";
    if (!is_first) text_ += ',';
    is_first = false;
    write(i, all);
  }
  text_ += ']';
}

void JsonWriter::write_object(const JsonTree::Node& node, bool all) {
  if (types_ == Types::of_identity && node.first != JsonTree::none) {
    const JsonTree::Node& only = tree_.node(node.first);
    const Bytes name = tree_.name_of(only);
    const bool is_tag = only.next == JsonTree::none && only.kind == JsonKind::array &&
                        (name == set_name || (name == map_name && is_map(only)));
    if (is_tag && counts(node.first, all)) {
      return write_sorted(name, only, all || marks_.empty() || (marks_[node.first] & mark_all));
    }
  }
  text_ += '{';
  bool is_first = true;
  for (Index i = node.first; i != JsonTree::none; i = tree_.node(i).next) {
    if (!counts(i, all)) continue;
    if (!is_first) text_ += ',';
    is_first = false;
    write_string(tree_.name_of(tree_.node(i)));
    text_ += ':';
    write(i, all);
  }
  text_ += '}';
}

bool JsonWriter::is_map(const JsonTree::Node& node) const {
  for (Index i = node.first; i != JsonTree::none; i = tree_.node(i).next) {
    const JsonTree::Node& pair = tree_.node(i);
    const Index key = pair.kind == JsonKind::array ? pair.first : JsonTree::none;
    const Index value = key == JsonTree::none ? JsonTree::none : tree_.node(key).next;
    if (value == JsonTree::none || tree_.node(value).next != JsonTree::none) return false;
  }
  return true;
}

void JsonWriter::write_sorted(Bytes name, const JsonTree::Node& node, bool all) {
  std::vector<std::pair<std::string, std::string>> elements;  // the compared part; the rest
  const std::string before = std::exchange(text_, {});
  for (Index i = node.first; i != JsonTree::none; i = tree_.node(i).next) {
    if (!counts(i, all)) continue;
    auto& [key, value] = elements.emplace_back();
    // A pair of which only a part counts is compared as a whole.
    const JsonTree::Node& pair = tree_.node(i);
    const bool is_whole = all && marks_.empty();
    if (name == set_name || !is_whole) {
      write(i, all);
      key = std::exchange(text_, {});
      continue;
    }
    write(pair.first, all);
    key = std::exchange(text_, {});
    write(tree_.node(pair.first).next, all);
    value = std::exchange(text_, {});
  }
  std::sort(elements.begin(), elements.end());
  text_ = before;
  text_.append("{\"").append(name).append("\":[");
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const auto& [key, value] = elements[i];
    if (i > 0) text_ += ',';
    if (value.empty()) {
      text_ += key;
      continue;
    }
    if (i > 0 && elements[i - 1].first == key) twice_ = key;
    text_.append("[").append(key).append(",").append(value).append("]");
  }
  text_ += "]}";
}

void JsonWriter::write_string(Bytes string) {
  constexpr Bytes named = "\b\t\n\f\r\"\\";
  constexpr Bytes names = "btnfr\"\\";
  text_ += '"';
  for (const char c : string) {
    if (const std::size_t at = named.find(c); at != Bytes::npos) {
      text_ += '\\';
      text_ += names[at];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      text_.append("\\u00");
      text_ += "01"[(c >> 4) & 1];
      text_ += "0123456789abcdef"[c & 15];
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

}  // namespace semel::patterns
