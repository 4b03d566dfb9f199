// What loads of servers share that speak Redis' protocol: requests, and where a reply ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace semel::bench {

inline std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end != 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

inline void append_head(std::string& out, char type, std::size_t count) {
  char head[32];
  const int bytes = std::snprintf(head, sizeof head, "%c%zu\r\n", type, count);
  out.append(head, static_cast<std::size_t>(bytes));
}

inline void append_word(std::string& out, std::string_view word) {
  append_head(out, '$', word.size());
  out.append(word).append("\r\n");
}

template <class... Words>
void append_request(std::string& out, const Words&... words) {
  append_head(out, '*', sizeof...(words));
  (append_word(out, words), ...);
}

inline void append_words(std::string& out, const std::vector<std::string>& words) {
  append_head(out, '*', words.size());
  for (const std::string& word : words) append_word(out, word);
}

inline std::string key_of(std::uint64_t number) {
  char key[32];
  std::snprintf(key, sizeof key, "key:%012llu", static_cast<unsigned long long>(number));
  return key;
}

/// The bytes of the reply at the front, 0: not whole. Arrays count their items.
inline std::size_t reply_bytes(std::string_view input) {
  const std::size_t end = input.find("\r\n");
  if (end == std::string_view::npos) return 0;
  const char type = input[0];
  std::size_t at = end + 2;
  if (type == '+' || type == '-' || type == ':' || type == '_') return at;
  const long number = std::strtol(input.data() + 1, nullptr, 10);
  if (type == '$') {
    if (number < 0) return at;
    at += static_cast<std::size_t>(number) + 2;
    return at <= input.size() ? at : 0;
  }
  for (long i = type == '%' ? number * 2 : number; i > 0; --i) {
    if (at >= input.size()) return 0;
    const std::size_t item = reply_bytes(input.substr(at));
    if (item == 0) return 0;
    at += item;
  }
  return at;
}

}  // namespace semel::bench
