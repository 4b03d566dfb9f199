#include "net/commands/audit.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "net/commands/measure.hpp"
#include "net/node/node.hpp"

namespace semel::net {
namespace {

constexpr std::size_t words_max = 16;
constexpr std::size_t word_bytes_max = 128;

constexpr std::array<std::string_view, 32> audited = {
    "acl|deluser",     "acl|load",        "acl|log",        "acl|save",         "acl|setuser",
    "client|kill",     "client|pause",    "client|unpause", "config|resetstat", "config|rewrite",
    "config|set",      "debug",           "failover",       "flushall",         "flushdb",
    "function|delete", "function|flush",  "function|kill",  "function|load",    "function|restore",
    "latency|reset",   "monitor",         "replicaof",      "script|flush",     "script|kill",
    "semel.forget",    "semel.namespace", "semel.resolve",  "shutdown",         "slaveof",
    "slowlog|reset",   "swapdb"};

std::vector<bool> audited_rows() {
  const auto rows = all_commands();
  std::vector<bool> found(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    found[i] = std::find(audited.begin(), audited.end(), rows[i].name) != audited.end();
  }
  return found;
}

}  // namespace

bool is_audited(const CommandRow& row) noexcept {
  static const std::vector<bool> rows = audited_rows();
  return rows[index_of(row)];
}

void audit(const Call& call, std::string_view reply) {
  if (!call.node.hooks.event) return;
  if (call.row->name == "acl|log" && call.words.size() == 2) return;  // that only reads
  std::string name{call.row->name};
  for (char& c : name) {
    if (c == '|' || c == '.') c = '_';
  }
  // Its words, and of an error the code alone: the rest may repeat what is secret.
  std::string text;
  std::vector<std::string_view> words = without_secrets(*call.row, call.words);
  if (call.row->name == "acl|setuser") words[2] = call.words[2];  // whose rights, but not which
  for (std::size_t i = 0; i < std::min(words.size(), words_max); ++i) {
    if (i != 0) text += ' ';
    text += words[i].substr(0, word_bytes_max);
    if (words[i].size() > word_bytes_max) text += "...";
  }
  if (words.size() > words_max) {
    text += " ... (" + std::to_string(words.size() - words_max) + " more arguments)";
  }
  if (reply.starts_with('-')) {
    text += " -> ";
    text += reply.substr(1, std::min(reply.find_first_of(" \r"), word_bytes_max) - 1);
  }
  call.node.tell({.level = LogLevel::notice,
                  .name = name,
                  .address = call.client.handle->origin.address,
                  .user = call.client.user.user().name(),
                  .text = text});
}

}  // namespace semel::net
