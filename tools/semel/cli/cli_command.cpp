#include "tools/semel/cli/cli_command.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>

#include "net/acl/rules.hpp"
#include "net/commands/command.hpp"
#include "net/commands/command_docs.hpp"
#include "tools/semel/cli/line_editor.hpp"
#include "tools/semel/cli/reply_text.hpp"
#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {

namespace {

constexpr std::string_view semel_prefix = "semel.";
constexpr std::size_t reply_bytes_max = std::size_t{512} << 20;
constexpr Millis watch_min{100};
constexpr Millis wait_max{std::int64_t{24} * 3600 * 1000};

/// "claim" for SEMEL.CLAIM, where Redis has no command of that name.
std::string full_name(const std::string& word) {
  if (net::find_command(word) != nullptr) return word;
  const net::CommandRow* const row = net::find_command(std::string{semel_prefix} + word);
  return row != nullptr ? std::string{row->name} : word;
}

/// What the first word of a line may be.
std::string names() {
  std::string all = "help exit";
  for (const net::CommandRow& row : net::all_commands()) {
    if (row.name.find('|') != std::string_view::npos) continue;
    all.append(" ").append(row.name);
    if (!row.name.starts_with(semel_prefix)) continue;
    const std::string_view short_name = row.name.substr(semel_prefix.size());
    if (net::find_command(short_name) == nullptr) all.append(" ").append(short_name);
  }
  return all;
}

/// Commands that answer more than once, or never.
bool goes_on(const std::string& name) {
  const net::CommandRow* const row = net::find_command(name);
  if (row == nullptr) return false;
  constexpr std::string_view several[] = {"monitor",    "subscribe",    "psubscribe",
                                          "ssubscribe", "unsubscribe",  "punsubscribe",
                                          "sync",       "sunsubscribe", "psync"};
  return std::find(std::begin(several), std::end(several), row->name) != std::end(several);
}

std::string help_of(const std::string& word) {
  std::string name = full_name(word);
  const net::CommandRow* const row = net::find_full_name(name);
  if (row == nullptr) return fmt::format("no command '{}'", word);
  const net::CommandDocs& docs = net::docs_of(*row);
  std::string text = std::string{row->name};
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char letter) {
    return letter == '|' ? ' ' : static_cast<char>(std::toupper(letter));
  });
  if (!docs.words.empty()) text.append(" ").append(docs.words);
  text.append("\n  ").append(docs.summary);
  if (!docs.complexity.empty()) text.append("\n  ").append(docs.complexity);
  if (!docs.deviation.empty()) text.append("\n  Redis: ").append(docs.deviation);
  return text;
}

/// One node and how its replies are shown.
class Session {
 public:
  Session(std::unique_ptr<GroupClient> client, std::string at, Millis wait, bool as_json)
      : client_(std::move(client)), at_(std::move(at)), wait_(wait), as_json_(as_json) {}

  /// Prints the reply; an error reply, or why there is none, goes to standard error.
  [[nodiscard]] Exit ask(std::vector<std::string> words) {
    words.front() = full_name(words.front());
    if (goes_on(words.front())) {
      return refuse(fmt::format("'{}' answers more than once: use redis-cli", words.front()));
    }
    const Deadline until = std::chrono::steady_clock::now() + wait_;
    std::vector<std::vector<std::string>> requests;
    if (!is_greeted_) requests.push_back({"HELLO", "3"});  // maps are maps
    requests.push_back(std::move(words));
    auto replies = client_->ask_all(at_, requests, reply_bytes_max, until);
    is_greeted_ = replies.ok();
    if (!replies.ok()) {
      const Error& error = replies.error();
      static_cast<void>(refuse(error.detail.empty() ? std::string{error.message()} : error.detail));
      return exit_of(error.code);
    }
    return show(replies->back());
  }

 private:
  [[nodiscard]] static Exit refuse(const std::string& text) {
    print_error("semel cli: {}\n", text);
    return Exit::usage;
  }
  [[nodiscard]] Exit show(const Reply& reply) const {
    const std::string text = as_json_ ? reply_json(reply) : reply_text(reply);
    if (reply.is_error() && !as_json_) {
      print_error("{}\n", text);
    } else {
      append_out(text + "\n");
    }
    return reply.is_error() ? Exit::file : Exit::ok;
  }

  const std::unique_ptr<GroupClient> client_;
  const std::string at_;
  const Millis wait_;
  const bool as_json_;
  bool is_greeted_ = false;
};

/// The words of a typed line. None: its quotes are not closed.
std::optional<std::vector<std::string>> words_of(const std::string& line) {
  return net::split_quoted(line);
}

/// Secrets stay out of the history.
bool is_secret(const std::vector<std::string>& words) {
  const net::CommandRow* const row = net::find_command(words.front());
  if (row == nullptr) return false;
  const std::vector<std::string_view> views{words.begin(), words.end()};
  const net::CommandRow* const meant = net::find_row(views);
  const net::SecretWords& secrets = (meant != nullptr ? *meant : *row).facts.secrets;
  return secrets.from != 0 || secrets.settings_from != 0 || !secrets.option.empty();
}

Exit talk(Session& session, const std::string& at) {
  LineEditor editor{names()};
  Exit last = Exit::ok;
  while (const auto line = editor.read(at + "> ")) {
    const auto words = words_of(*line);
    if (!words) {
      print_error("semel cli: a quote is not closed\n");  // the line may hold a password
      last = Exit::usage;
      continue;
    }
    if (words->empty()) continue;
    if (words->front() == "exit" || words->front() == "quit") break;
    if (!is_secret(*words)) editor.remember(*line);
    if (words->front() == "help") {
      append_out(help_of(words->size() > 1 ? words->at(1) : "claim") + "\n");
      last = Exit::ok;
    } else {
      last = session.ask(*words);
    }
    if (editor.is_interactive()) static_cast<void>(finish_out());
  }
  const Exit written = finish_out();
  return last == Exit::ok ? written : last;
}

Exit watch(Session& session, const std::vector<std::string>& words, Millis every) {
  for (;;) {
    append_out("\x1b[H\x1b[2J");
    const Exit exit = session.ask(words);
    const Exit written = finish_out();
    if (exit != Exit::ok || written != Exit::ok) return exit != Exit::ok ? exit : written;
    static_cast<void>(poll(nullptr, 0, static_cast<int>(every.count())));
  }
}

}  // namespace

CliCommand::CliCommand(CLI::App& program)
    : app_(program.add_subcommand("cli", "Ask a node, and see its claims")) {
  app_->add_option("--at", at_, "The node, host:port. Default: 127.0.0.1:6379")
      ->type_name("ADDRESS");
  app_->add_option("--wait", wait_, "Bound of the wait for a reply. Default: 60s")
      ->type_name("DURATION");
  app_->add_option("--watch", watch_, "Ask again and again, with so much time in between")
      ->type_name("DURATION");
  app_->add_flag("--json", as_json_, "Print each reply as one line of JSON");
  add_login_options(*app_, client_);
  app_->prefix_command();  // flags behind the first word belong to the command
                           // flags
  app_->footer(
      "A name that Redis does not have needs no 'SEMEL.': 'semel cli claim orders o-1',\n"
      "'semel cli explain orders o-1', 'semel cli --watch 1s inflight orders'. Without a\n"
      "command it reads lines; 'help NAME' explains a command, 'exit' ends. Flags come before\n"
      "the command.\n\n"
      "Exit codes: 0 answered, 1 an error reply, or a node that cannot be used, 2 usage,\n"
      "4 the heap has no memory left.");
}

Exit CliCommand::run() const {
  const auto fail = [](const Error& error) {
    print_error("semel cli: {}\n", error.detail.empty() ? error.message() : error.detail);
    return exit_of(error.code);
  };
  auto wait = parse_window(wait_);
  if (!wait.ok()) return fail(usage_error("--wait: " + wait.error().detail));
  if (*wait > wait_max) return fail(usage_error("--wait: '" + wait_ + "' is more than 24h"));
  auto client = GroupClient::open(client_);
  if (!client.ok()) return fail(client.error());
  Session session{*std::move(client), at_, *wait, as_json_};
  const std::vector<std::string> words = app_->remaining();
  if (!words.empty() && words.front().starts_with('-')) {
    return fail(usage_error("no flag '" + words.front() + "'"));
  }
  if (!watch_.empty()) {
    auto every = parse_window(watch_);
    if (!every.ok()) return fail(usage_error("--watch: " + every.error().detail));
    if (*every < watch_min) return fail(usage_error("--watch: '" + watch_ + "' is below 100ms"));
    if (*every > wait_max) return fail(usage_error("--watch: '" + watch_ + "' is more than 24h"));
    if (words.empty()) return fail(usage_error("--watch needs a command"));
    return watch(session, words, *every);
  }
  if (words.empty()) return talk(session, at_);
  const Exit exit = session.ask(words);
  const Exit written = finish_out();
  return exit != Exit::ok ? exit : written;
}

}  // namespace semel::tool
