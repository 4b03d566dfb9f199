#include "tools/semel/transfer/transfer_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "tools/semel/records/output_file.hpp"
#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/progress_line.hpp"
#include "tools/semel/shared/stop_signals.hpp"
#include "tools/semel/shared/units.hpp"
#include "tools/semel/transfer/file_export.hpp"
#include "tools/semel/transfer/file_import.hpp"
#include "tools/semel/transfer/importer.hpp"
#include "tools/semel/transfer/tally.hpp"

namespace semel::tool {

namespace {

constexpr char transfer_exit_help[] =
    "Exit codes: 0 done, 1 a file or the other side cannot be used, 2 usage, 3 something was\n"
    "refused, or the input is damaged, 4 no memory left. 128 + N: stopped by signal N.";

/// Prints how it ended. Returns the exit code.
Exit report(const Status& ended, const Tally& tally, const char* done, int signal) {
  if (!ended && signal == 0) {
    const Error& error = ended.error();
    print_error("{}: {}\n", tally.program(), error.detail.empty() ? error.message() : error.detail);
  }
  print_out("{}{}: {}\n", ended ? "" : "incomplete: ", done, tally.summary());
  const Exit written = finish_out();
  if (signal != 0) return static_cast<Exit>(128 + signal);
  if (!ended) return exit_of(ended.error().code);
  return tally.refused() != 0 ? Exit::data : written;
}

/// Whether the other side has no key.
Result<bool> is_empty(Endpoint& to) {
  SEMEL_TRY(info, to.ask_one({"INFO", "keyspace"}));
  if (info.is_error()) return file_error("INFO: " + info.text);
  return info.text.find(":keys=") == std::string::npos;
}

Status flush(Endpoint& to) {
  for (const Words& request : {Words{"FLUSHALL"}, Words{"FUNCTION", "FLUSH"}}) {
    SEMEL_TRY(reply, to.ask_one(request));
    if (reply.is_error()) return file_error(request.front() + ": " + reply.text);
  }
  return Done{};
}

}  // namespace

// --- flags --------------------------------------------------------------------------------------

void EndpointFlags::add(CLI::App& app, const char* address, const char* directory_text) {
  auto* const to =
      app.add_option(address, options_.address, "A node or a redis-server")->type_name("HOST:PORT");
  auto* const directory =
      app.add_option("--dir", options_.directory, directory_text)->type_name("DIR");
  to->excludes(directory);
  app.add_option("--memory", memory_,
                 "With --dir: memory for the records. Default: half of the machine's")
      ->type_name("SIZE");
  app.add_option("--wait", patience_, "Bound of the wait for one answer. Default: 60s")
      ->type_name("DURATION");
  add_login_options(app, options_.client);
}

Result<EndpointOptions> EndpointFlags::options() const {
  EndpointOptions options = options_;
  const auto wait = parse_window(patience_);
  if (!wait.ok()) return usage_error("--wait: " + wait.error().detail);
  options.patience = std::chrono::duration_cast<std::chrono::seconds>(*wait);
  options.memory_bytes = default_memory_bytes();
  if (!memory_.empty()) {
    const auto memory = parse_memory(memory_);
    if (!memory.ok()) return usage_error("--memory: " + memory.error().detail);
    options.memory_bytes = *memory;
  }
  if (options.address.empty() && options.directory.empty()) options.address = "127.0.0.1:6379";
  return options;
}

// --- import -------------------------------------------------------------------------------------

ImportCommand::ImportCommand(CLI::App& program)
    : app_(program.add_subcommand("import", "Take the data of a redis-server from its files")) {
  auto* const rdb =
      app_->add_option("--rdb", rdb_, "RDB file, versions 1 to 11; - is stdin")->type_name("FILE");
  auto* const aof =
      app_->add_option("--aof", aof_, "Append-only file, or the directory of one (appendonlydir)")
          ->type_name("PATH");
  rdb->excludes(aof);
  to_.add(*app_, "--to", "A storage that no process uses; made if it is not there");
  app_->add_flag("--replace", replaces_, "Replace keys that are there; else they stay");
  app_->add_flag("--flush", flushes_, "Remove all keys and functions of the other side first");
  app_->footer(
      std::string{
          "Files compressed with gzip or zstd are unpacked. Without --to and --dir the keys go to\n"
          "127.0.0.1:6379. An interrupted import of an RDB file may be repeated: the keys that\n"
          "are there stay, or are put again with --replace. An append-only file needs an empty\n"
          "other side, as its commands change what they find: repeat it with --flush.\n\n"} +
      transfer_exit_help);
}

bool ImportCommand::is_chosen() const {
  return app_->parsed();
}

Status ImportCommand::import(Tally& tally, const StopSignals& signals) const {
  if (rdb_.empty() == aof_.empty()) return usage_error("one of --rdb and --aof is needed");
  SEMEL_TRY(options, to_.options());
  options.makes_directory = true;
  std::vector<std::string> files{rdb_};
  if (!aof_.empty()) {
    SEMEL_TRY(found, aof_files(aof_));
    files = std::move(found);
  }
  std::uint64_t total = 0;
  for (const std::string& file : files) {
    std::error_code code;
    const auto bytes = std::filesystem::file_size(file, code);
    if (!code) total += bytes;
  }
  SEMEL_TRY(to, open_endpoint(options));
  if (flushes_) SEMEL_CHECK(flush(*to));
  if (!aof_.empty()) {
    SEMEL_TRY(empty, is_empty(*to));
    if (!empty) return usage_error("--aof needs a side without keys, or --flush");
  }
  ProgressLine line{ProgressLine::Output::report};
  std::uint64_t before = 0;
  const ImportProgress progress = [&](std::uint64_t bytes) {
    line.show(
        [&] { return fmt::format("{} of {}", format_bytes(before + bytes), format_bytes(total)); });
    return signals.received() == 0;
  };
  Importer importer{*to, {.replaces = replaces_}, tally};
  for (const std::string& file : files) {
    SEMEL_CHECK(aof_.empty() ? import_rdb(file, importer, progress)
                             : import_aof(file, importer, progress));
    std::error_code code;
    const auto bytes = std::filesystem::file_size(file, code);
    if (!code) before += bytes;
  }
  return Done{};
}

Exit ImportCommand::run() const {
  Tally tally{"semel import"};
  const StopSignals signals;
  const Status ended = import(tally, signals);
  return report(ended, tally, "imported", signals.received());
}

// --- export -------------------------------------------------------------------------------------

ExportCommand::ExportCommand(CLI::App& program)
    : app_(program.add_subcommand("export", "Write the data as a file that redis-server loads")) {
  app_->add_option("--rdb", rdb_, "File to write; it gets its name when it is complete")
      ->required()
      ->type_name("FILE");
  from_.add(*app_, "--from", "A storage that no process uses");
  app_->footer(
      std::string{
          "Without --from and --dir the keys come from 127.0.0.1:6379. While others write there,\n"
          "each key with its ttl is as it was at one instant during the export; no instant is\n"
          "that of all keys. Claims have no form in such a file, and are counted as refused.\n\n"} +
      transfer_exit_help);
}

bool ExportCommand::is_chosen() const {
  return app_->parsed();
}

Status ExportCommand::write(Tally& tally, const StopSignals& signals) const {
  SEMEL_TRY(options, from_.options());
  SEMEL_TRY(from, open_endpoint(options));
  SEMEL_TRY(file, OutputFile::open(rdb_));
  ProgressLine line{ProgressLine::Output::report};
  SEMEL_CHECK(export_rdb(*from, *file, tally, [&](std::uint64_t keys, std::uint64_t total) {
    line.show([&] {
      return fmt::format("{} of about {} keys", format_count(keys), format_count(total));
    });
    return signals.received() == 0;
  }));
  return file->commit();
}

Exit ExportCommand::run() const {
  Tally tally{"semel export"};
  const StopSignals signals;
  const Status ended = write(tally, signals);
  return report(ended, tally, "exported", signals.received());
}

}  // namespace semel::tool
