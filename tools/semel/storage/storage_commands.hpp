// The subcommands for operators of a storage. Each has its own file; this one has what they share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "semel/result.hpp"
#include "semel/storage_tools.hpp"
#include "tools/semel/shared/progress_line.hpp"

// Their headers take seconds to compile.
namespace boost::json {
class object;
}
namespace CLI {
class App;
}

namespace semel::tool {

/// Unlike those of dedup: scripts ask "is it sound", and a usage error must not look like an
/// answer.
enum class StorageExit : int {
  ok = 0,
  findings = 1,  ///< damage was found, or the command failed
  usage = 2,
  newer = 3,  ///< written by a later release
};

inline constexpr char storage_exit_help[] =
    "Exit codes: 0 fine, 1 something was found or not done, 2 usage, 3 written by a later release\n"
    "of Semel, 4 the heap has no memory left. With --json one JSON document goes to standard\n"
    "output, whatever the exit code.";

class StorageCommand {
 public:
  virtual ~StorageCommand() = default;
  [[nodiscard]] bool is_chosen() const;
  [[nodiscard]] std::string name() const;
  [[nodiscard]] virtual StorageExit run() const = 0;

 protected:
  StorageCommand(CLI::App& program, const char* name, const char* what);
  void add_directory(const char* name, std::string& directory, const char* what);
  void add_flag(const char* name, bool& flag, const char* what);
  /// --cold DIR.
  void add_cold(std::string& directory);
  void add_option(const char* name, std::string& value, const char* what);
  void add_option(const char* name, std::uint64_t& value, const char* what);
  /// The end of --help, before the exit codes.
  void set_footer(const std::string& text);
  /// Prints the document, if --json was given.
  void put_json(const boost::json::object& document) const;
  /// Prints the error, and returns the exit code for it.
  [[nodiscard]] StorageExit fail(const Error& error, const std::string& hint = {}) const;

  bool json_ = false;

 private:
  CLI::App* app_;
};

/// A progress line with rate and time left.
class WalkProgress {
 public:
  [[nodiscard]] TellProgress reporter();
  /// How far the reporter was at its last call.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  [[nodiscard]] std::string text_of(const StorageProgress& progress) const;

  ProgressLine line_{ProgressLine::Output::report};
  std::uint64_t bytes_ = 0;
};

[[nodiscard]] boost::json::object json_of(const StorageCheck& check);
void print_findings(const StorageCheck& check);
[[nodiscard]] std::size_t count_findings(const StorageCheck& check);
void print_unknown(const std::map<std::string, std::uint64_t>& namespaces);

using StorageCommands = std::vector<std::unique_ptr<StorageCommand>>;
/// Adds verify, repair, inspect, backup and restore. None without the storage.
[[nodiscard]] StorageCommands storage_commands(CLI::App& program);
/// The one on the command line, or null. Belongs to `commands`.
[[nodiscard]] const StorageCommand* chosen_storage_command(const StorageCommands& commands);

[[nodiscard]] std::unique_ptr<StorageCommand> verify_command(CLI::App& program);
[[nodiscard]] std::unique_ptr<StorageCommand> repair_command(CLI::App& program);
[[nodiscard]] std::unique_ptr<StorageCommand> inspect_command(CLI::App& program);
[[nodiscard]] std::unique_ptr<StorageCommand> backup_command(CLI::App& program);
[[nodiscard]] std::unique_ptr<StorageCommand> restore_command(CLI::App& program);

}  // namespace semel::tool
