#include "net/commands/audit.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "net/commands/measure.hpp"
#include "net/commands/node_hooks.hpp"

namespace semel::net {
namespace {

constexpr std::size_t words_max = 16;
constexpr std::size_t word_bytes_max = 128;

}  // namespace

void audit(const Call& call, std::string_view reply) {
  if (!call.services.hooks.event) return;
  const bool is_subcommand = call.row->name.find('|') != std::string_view::npos;
  const std::size_t name_words = is_subcommand ? 2 : 1;
  if (!call.row->has(fact_audited) && call.args.size() == name_words) return;  // that only reads
  std::string name{call.row->name};
  for (char& c : name) {
    if (c == '|' || c == '.') c = '_';
  }
  // The command's words, and only the code of an error: the rest of it may repeat secrets.
  std::string text;
  std::vector<std::string_view> words = without_secrets(*call.row, call.args);
  // The name of the user whose rights change, but not the rights.
  if (const std::size_t at = call.row->facts.secrets.name_at; at != 0) words[at] = call.args[at];
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
  call.services.hooks.report({.level = LogLevel::notice,
                              .name = name,
                              .address = call.client.handle->origin.address,
                              .user = call.client.user.user().name(),
                              .text = text});
}

}  // namespace semel::net
