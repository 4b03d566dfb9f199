// Reads one table of TOML. To be included behind "base/toml.hpp".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/toml.hpp"
#include "gateway/rules/limits.hpp"
#include "net/settings/setting_units.hpp"

namespace semel::gateway {

template <class Value>
using Choices = std::initializer_list<std::pair<std::string_view, Value>>;

/// Takes values out of one table by name, checks them, and at the end reports unknown names.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string where, std::vector<std::string>& errors)
      : table_(table), where_(std::move(where)), errors_(errors) {}

  void fail(const toml::node* node, const std::string& text) {
    const std::string line =
        node == nullptr ? std::string{} : ":" + std::to_string(node->source().begin.line);
    errors_.push_back(where_ + line + ": " + text);
  }
  [[nodiscard]] const toml::node* take(std::string_view name) {
    taken_.emplace(name);
    return table_.get(name);
  }
  bool text(std::string_view name, std::string& to) {
    const toml::node* const node = take(name);
    if (node == nullptr) return false;
    const auto* text = node->as_string();
    if (text == nullptr) return wrong(node, name, "is not a text");
    to = text->get();
    return true;
  }
  void boolean(std::string_view name, bool& to) {
    const toml::node* const node = take(name);
    if (node == nullptr) return;
    const auto* yes = node->as_boolean();
    if (yes == nullptr) {
      wrong(node, name, "is not true or false");
      return;
    }
    to = yes->get();
  }
  template <class Number>
  void number(std::string_view name, Number& to, Number from, Number up_to) {
    const toml::node* const node = take(name);
    if (node == nullptr) return;
    const auto* value = node->as_integer();
    ranged(node, name, value == nullptr ? std::nullopt : std::optional{value->get()}, to, from,
           up_to);
  }
  void bytes(std::string_view name, std::size_t& to, std::size_t from, std::size_t up_to) {
    const toml::node* const node = take(name);
    if (node == nullptr) return;
    ranged(node, name, amount(*node, [](std::string_view t) { return net::bytes_of(t); }), to, from,
           up_to);
  }
  void duration(std::string_view name, Millis& to, Millis from,
                Millis up_to = limits::duration_max) {
    const toml::node* const node = take(name);
    if (node == nullptr) return;
    std::int64_t ms = to.count();
    const auto read = [](std::string_view t) { return net::duration_of(t, "ms"); };
    ranged(node, name, amount(*node, read), ms, std::int64_t{from.count()},
           std::int64_t{up_to.count()});
    to = Millis{ms};
  }
  bool texts(std::string_view name, std::vector<std::string>& to, std::size_t count_max) {
    const toml::node* const node = take(name);
    if (node == nullptr) return false;
    const auto* array = node->as_array();
    if (array == nullptr) return wrong(node, name, "is not an array of texts");
    if (array->size() > count_max) {
      return wrong(node, name,
                   "has " + std::to_string(array->size()) + " elements; the limit is " +
                       std::to_string(count_max));
    }
    to.clear();
    for (const toml::node& each : *array) {
      const auto* text = each.as_string();
      if (text == nullptr || text->get().empty()) return wrong(node, name, "has no text in it");
      to.push_back(text->get());
    }
    return true;
  }
  /// False: the value is present, and is not one of `choices`.
  template <class Value>
  bool choice(std::string_view name, Value& to, Choices<Value> choices) {
    std::string word;
    if (find(name) == nullptr) return true;
    if (!text(name, word)) return false;
    std::string list;
    for (const auto& [known, value] : choices) {
      if (known == word) {
        to = value;
        return true;
      }
      list.append(list.empty() ? "" : ", ").append(known);
    }
    return wrong(table_.get(name), name, "is '" + word + "'; it is one of " + list);
  }
  /// Whether the table has the name, taken or not.
  [[nodiscard]] const toml::node* find(std::string_view name) const { return table_.get(name); }
  void finish() {
    for (const auto& [key, node] : table_) {
      if (taken_.count(key.str()) == 0) {
        fail(&node, "there is no setting '" + std::string{key.str()} + "' here");
      }
    }
  }
  bool wrong(const toml::node* node, std::string_view name, const std::string& what) {
    fail(node, std::string{name} + " " + what);
    return false;
  }

 private:
  template <class Read>
  static std::optional<std::int64_t> amount(const toml::node& node, Read read) {
    if (const auto* number = node.as_integer()) return number->get();
    const auto* text = node.as_string();
    return text == nullptr ? std::nullopt : read(std::string_view{text->get()});
  }
  template <class Number>
  void ranged(const toml::node* node, std::string_view name, std::optional<std::int64_t> value,
              Number& to, Number from, Number up_to) {
    if (!value) {
      wrong(node, name, "is not such an amount");
    } else if (*value < static_cast<std::int64_t>(from) ||
               *value > static_cast<std::int64_t>(up_to)) {
      wrong(node, name,
            "is " + std::to_string(*value) + "; it is from " + std::to_string(from) + " to " +
                std::to_string(up_to));
    } else {
      to = static_cast<Number>(*value);
    }
  }

  const toml::table& table_;
  std::string where_;
  std::vector<std::string>& errors_;
  std::set<std::string, std::less<>> taken_;
};

inline constexpr Millis shortest{1};
inline constexpr Millis longest_timeout{86'400'000};

}  // namespace semel::gateway
