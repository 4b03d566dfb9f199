#include "tools/semel/redis_server/process_title.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace semel::tool {

namespace {

using net::Setting;

const std::string* fact_of(std::string_view variable, const TitleFacts& facts) {
  static const std::string nothing;  // of a node that is not in a group
  const std::array<std::pair<std::string_view, const std::string*>, 7> variables{{
      {"title", &facts.title},
      {"listen-addr", &facts.listen_addr},
      {"server-mode", &nothing},
      {"port", &facts.port},
      {"tls-port", &facts.tls_port},
      {"unixsocket", &facts.unix_socket},
      {"config-file", &facts.config_file},
  }};
  for (const auto& [name, fact] : variables) {
    if (name == variable) return fact;
  }
  return nullptr;
}

/// The end of `word` if it begins at `end`; null: something else lies there.
char* end_behind(char* end, char* word) {
  return word == end ? end + std::strlen(word) + 1 : nullptr;
}

}  // namespace

std::optional<std::string> title_of(std::string_view title_template, const TitleFacts& facts) {
  if (title_template.empty()) return std::nullopt;
  std::string title;
  while (!title_template.empty()) {
    const std::size_t text = std::min(title_template.find('{'), title_template.size());
    title += title_template.substr(0, text);
    title_template.remove_prefix(text);
    if (title_template.empty()) break;
    if (title_template.starts_with("{{")) {
      title += '{';
      title_template.remove_prefix(2);
      continue;
    }
    const std::size_t end = title_template.find('}');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string* const fact = fact_of(title_template.substr(1, end - 1), facts);
    if (fact == nullptr) return std::nullopt;
    title += *fact;
    title_template.remove_prefix(end + 1);
  }
  title.erase(title.find_last_not_of(' ') + 1);
  return title;
}

TitleFacts title_facts(const net::Settings& settings) {
  const auto port_of = [&](Setting setting) {
    return std::to_string(std::max<std::int64_t>(settings.integer(setting), 0));
  };
  TitleFacts facts{.port = port_of(Setting::port),
                   .tls_port = port_of(Setting::tls_port),
                   .unix_socket = settings.text(Setting::unix_socket)};
  const std::string& port = facts.port != "0" ? facts.port : facts.tls_port;
  if (port == "0") {
    facts.listen_addr = "unixsocket:" + facts.unix_socket;
  } else {
    const auto addresses = settings.list(Setting::bind);
    facts.listen_addr = (addresses.empty() ? "*" : addresses.front()) + ":" + port;
  }
  return facts;
}

ProcessTitle::ProcessTitle(std::span<char* const> words) {
  if (words.empty()) return;
  char* const begin = words[0];
  char* end = begin;
  for (char* const word : words) {
    char* const behind = end_behind(end, word);
    if (behind == nullptr) break;
    end = behind;
  }
  // Those that somebody has set since lie elsewhere, and stay there.
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    char* const behind = end_behind(end, *variable);
    char* const moved = behind == nullptr ? nullptr : ::strdup(*variable);
    if (moved == nullptr) break;
    *variable = moved;
    end = behind;
  }
  const base::MutexLock lock{mutex_};
  room_ = {begin, static_cast<std::size_t>(end - begin)};
}

void ProcessTitle::show(std::string_view title) {
  const base::MutexLock lock{mutex_};
  if (room_.empty()) return;
  const std::size_t bytes = std::min(title.size(), room_.size() - 1);
  std::memcpy(room_.data(), title.data(), bytes);
  std::memset(room_.data() + bytes, 0, room_.size() - bytes);
}

}  // namespace semel::tool
