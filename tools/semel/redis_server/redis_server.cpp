#include "tools/semel/redis_server/redis_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/commands/command.hpp"
#include "net/config/redis_start.hpp"
#include "net/handlers/info.hpp"
#include "net/server/process.hpp"
#include "net/settings/settings.hpp"
#include "tools/semel/node/node_run.hpp"
#include "tools/semel/redis_server/process_title.hpp"
#include "tools/semel/shared/output.hpp"

namespace semel::tool {
namespace {

constexpr std::string_view program_name = "redis-server";

constexpr std::string_view help_text =
    "semel redis-server [/path/to/redis.conf] [-] [--name value ...]; `-` reads standard input.\n"
    "It takes redis-server's directives as flags and in files, and flags of `semel node`. Unknown\n"
    "ones are named and ignored. A link by the name redis-server is this subcommand. Nothing is\n"
    "kept on disk without --storage-enabled. See docs/redis-for-tests.md.\n"
    "Exit codes: 0 done, 1 usage, 2 a file or the port cannot be used, 4 not enough memory.\n";

std::string version_text() {
  return fmt::format("Redis server v={} sha=00000000:0 malloc=semel bits={} build=0\n",
                     net::reported_redis_version, 8 * sizeof(void*));
}

/// The file with the number of the process; removed when the process ends in order.
class PidFile {
 public:
  explicit PidFile(std::string path) : path_(std::move(path)) {
    if (path_.empty()) return;
    const Status written = net::write_ready_file(path_, fmt::format("{}\n", getpid()));
    // As redis-server, which goes on without it.
    if (!written) print_error("semel redis-server: pidfile: {}\n", written.error().detail);
  }
  ~PidFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  const std::string path_;
};

/// Goes on in a child without a terminal, and ends this process. False: there is no child.
bool daemonize() {
  std::fflush(nullptr);  // or the child would write it again
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child > 0) _exit(static_cast<int>(Exit::ok));
  ::setsid();
  const int nothing = ::open("/dev/null", O_RDWR);
  if (nothing < 0) return true;
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    ::dup2(nothing, standard);
  }
  if (nothing > STDERR_FILENO) ::close(nothing);
  return true;
}

std::string all_of_input() {
  return {std::istreambuf_iterator<char>{std::cin}, {}};
}

/// Prints warnings and errors. False: the program must not start.
bool report_start(const net::RedisStart& start) {
  for (const std::string& line : start.warnings) print_error("semel redis-server: {}\n", line);
  for (const std::string& line : start.errors) print_error("semel redis-server: {}\n", line);
  return start.errors.empty();
}

/// Not loud: each of them is harmless in a test.
std::string quiet_line(const net::RedisStart& start) {
  std::string names;
  for (const std::string& name : start.without_effect) {
    names.append(names.empty() ? "" : ", ").append(name);
  }
  return names;
}

/// False: one is refused, and has been reported.
bool rename_commands(const net::RedisStart& start) {
  bool is_done = true;
  for (const net::CommandRename& rename : start.renames) {
    const std::string_view reason = net::rename_command(rename.from, rename.to);
    if (reason.empty()) continue;
    print_error("semel redis-server: {}: {} '{}'\n", rename.where, reason, rename.from);
    is_done = false;
  }
  return is_done;
}

/// The title of the process by a setting, from now on.
class FollowedTitle {
 public:
  FollowedTitle(const net::RedisStart& start, net::Settings& settings, std::span<char* const> words)
      : settings_(settings), called_(name_of(words)), file_(start.file), title_(words) {
    const auto show = [this] { return this->show(); };
    constexpr std::array of_title{net::Setting::proc_title_template};
    settings.apply_with(of_title, show);
    for (const net::Setting setting :
         {net::Setting::port, net::Setting::tls_port, net::Setting::bind}) {
      settings.on_change(setting, [this] { static_cast<void>(this->show()); });
    }
  }

  [[nodiscard]] Status show() {
    TitleFacts facts = title_facts(settings_);
    facts.title = called_;
    facts.config_file = file_;
    const auto text = title_of(settings_.text(net::Setting::proc_title_template), facts);
    if (!text) {
      return Error{ErrorCode::bad_option,
                   "template format is invalid or contains unknown variables"};
    }
    title_.show(*text);
    return Done{};
  }

 private:
  /// With the subcommand, where there is one.
  static std::string name_of(std::span<char* const> words) {
    const std::string_view path{words[0]};
    const bool is_link = path.substr(path.rfind('/') + 1) == program_name;
    return std::string{path} + (is_link ? "" : " " + std::string{program_name});
  }

  net::Settings& settings_;
  const std::string called_;
  const std::string file_;
  ProcessTitle title_;
};

Exit serve_redis(const net::RedisStart& start, net::Settings& settings,
                 std::span<char* const> words) {
  if (!start.directory.empty() && ::chdir(start.directory.c_str()) != 0) {
    print_error("semel redis-server: dir {}: {}\n", start.directory, std::strerror(errno));
    return Exit::usage;
  }
  if (const std::string names = quiet_line(start); !names.empty()) {
    print_error("semel redis-server: without effect here: {}\n", names);
  }
  if (start.daemonizes && !daemonize()) {
    print_error("semel redis-server: fork: {}\n", std::strerror(errno));
    return Exit::memory;
  }
  const PidFile pid_file{start.pidfile};
  std::optional<FollowedTitle> title;
  // A node of a group may begin anew, with the arguments that Linux shows.
  const bool is_alone = settings.integer(net::Setting::node_id) == 0;
  if (is_alone && settings.boolean(net::Setting::set_proc_title)) {
    if (const Status shown = title.emplace(start, settings, words).show(); !shown) {
      print_error("semel redis-server: proc-title-template: {}\n", shown.error().detail);
      return Exit::usage;
    }
  }
  return NodeRun{settings, "", start.file, {}}.run();
}

}  // namespace

std::optional<std::span<char* const>> redis_server_arguments(std::span<char* const> words) {
  if (words.empty()) return std::nullopt;
  const std::string_view path{words[0]};
  if (path.substr(path.rfind('/') + 1) == program_name) return words.subspan(1);
  if (words.size() < 2 || words[1] != program_name) return std::nullopt;
  const bool asks_for_help = words.size() == 3 && (std::string_view{words[2]} == "--help" ||
                                                   std::string_view{words[2]} == "-h");
  if (!asks_for_help) return words.subspan(2);  // CLI11 shows that of a subcommand
  return std::nullopt;
}

Exit run_redis_server(std::span<char* const> arguments, std::span<char* const> words) {
  const std::vector<std::string_view> flags{arguments.begin(), arguments.end()};
  if (flags.size() == 1) {
    if (flags[0] == "-v" || flags[0] == "--version") return write_out(version_text());
    if (flags[0] == "-h" || flags[0] == "--help") return write_out(help_text);
  }
  if (!flags.empty() &&
      (flags[0] == "--test-memory" || flags[0] == "--check-system" || flags[0] == "--sentinel")) {
    print_error("semel redis-server: {} is not there\n", flags[0]);
    return Exit::usage;
  }
  net::Settings settings;
  const net::RedisStart start = net::read_redis_start(flags, all_of_input, settings);
  if (!report_start(start) || !rename_commands(start)) return Exit::usage;
  return serve_redis(start, settings, words);
}

void add_redis_server(CLI::App& program) {
  CLI::App* const app =
      program.add_subcommand(std::string{program_name}, "Stand in for redis-server in tests");
  app->footer(std::string{help_text});
  // For the help alone: redis_server_arguments() takes everything else.
  const auto shown = [app](const std::string& name, const std::string& kind,
                           const std::string& text) {
    app->add_option(
           name, [](const CLI::results_t&) { return true; }, text)
        ->type_name(kind);
  };
  shown("--port", "NUMBER", "TCP port; 0: none, as redis-server; auto: a free one");
  shown("--daemonize", "[yes|no]", "Run in the background; --pidfile and --logfile name its files");
  shown("--ready-file", "FILE", "File that is written when connections are accepted, with port=N");
  shown("--strict", "[yes|no]", "Refuse what would be ignored");
  shown("--test-clock", "[yes|no]",
        "`no`: without SEMEL.CLOCK and SEMEL.FAULT, which are for tests");
}

}  // namespace semel::tool
