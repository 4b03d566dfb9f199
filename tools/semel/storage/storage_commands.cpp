#include "tools/semel/storage/storage_commands.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <boost/json.hpp>

#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {

namespace json = boost::json;

StorageCommand::StorageCommand(CLI::App& program, const char* name, const char* what)
    : app_(program.add_subcommand(name, what)) {
  app_->add_flag("--json", json_, "Write the result as one JSON document");
}

bool StorageCommand::is_chosen() const {
  return app_->parsed();
}

std::string StorageCommand::name() const {
  return app_->get_name();
}

void StorageCommand::add_directory(const char* name, std::string& directory, const char* what) {
  app_->add_option(name, directory, what)->required()->type_name("");
}

void StorageCommand::add_flag(const char* name, bool& flag, const char* what) {
  app_->add_flag(name, flag, what);
}

void StorageCommand::add_cold(std::string& directory) {
  app_->add_option("--cold", directory,
                   "Directory of the storage's cold store, if it is not DIR/cold")
      ->type_name("COLD");
}

void StorageCommand::add_option(const char* name, std::string& value, const char* what) {
  app_->add_option(name, value, what);
}

void StorageCommand::add_option(const char* name, std::uint64_t& value, const char* what) {
  app_->add_option(name, value, what);
}

void StorageCommand::set_footer(const std::string& text) {
  app_->footer(text + "\n\n" + storage_exit_help);
}

void StorageCommand::put_json(const json::object& document) const {
  if (json_) print_out("{}\n", json::serialize(document));
}

StorageExit StorageCommand::fail(const Error& error, const std::string& hint) const {
  std::string text = error.message();
  if (error.code == ErrorCode::storage_in_use && !hint.empty()) text += ". " + hint;
  put_json(
      {{"done", false}, {"error", {{"code", std::string{name_of(error.code)}}, {"text", text}}}});
  print_error("semel {}: {}\n", name(), text);
  return error.code == ErrorCode::storage_newer ? StorageExit::newer : StorageExit::findings;
}

TellProgress WalkProgress::reporter() {
  return [this](const StorageProgress& progress) {
    bytes_ = progress.bytes;
    line_.show([&] { return text_of(progress); });
  };
}

std::string WalkProgress::text_of(const StorageProgress& progress) const {
  const double seconds = line_.seconds();
  const auto bytes = static_cast<double>(progress.bytes);
  const auto total = static_cast<double>(std::max(progress.bytes_total, progress.bytes));
  std::string text = fmt::format("{} of {}, {}/s", format_bytes(progress.bytes),
                                 format_bytes(progress.bytes_total),
                                 format_bytes(static_cast<std::uint64_t>(bytes / seconds)));
  if (bytes > 0) text += fmt::format(", ETA {:.0f} s", seconds * (total - bytes) / bytes);
  return text;
}

namespace {

json::array json_of(const std::vector<StorageFinding>& all) {
  json::array findings;
  for (const StorageFinding& finding : all) {
    json::object one{{"file", finding.file}, {"what", finding.what}};
    if (finding.offset) one["offset"] = *finding.offset;
    if (finding.records_lost) one["records_lost"] = *finding.records_lost;
    if (finding.bytes_lost) one["bytes_lost"] = *finding.bytes_lost;
    findings.push_back(std::move(one));
  }
  return findings;
}

json::object json_of(const ColdCheck& check) {
  return {{"directory", check.directory},       {"id", check.id},
          {"generation", check.generation},     {"parts", check.parts},
          {"records", check.records},           {"bytes", check.bytes},
          {"findings", json_of(check.findings)}};
}

void print_finding(const StorageFinding& finding) {
  std::string lost;
  if (finding.records_lost) lost += fmt::format("{} records", format_count(*finding.records_lost));
  if (finding.bytes_lost) {
    lost += fmt::format("{}{} bytes", lost.empty() ? "" : ", ", format_count(*finding.bytes_lost));
  }
  print_out("{}{}: {}\n    lost: {}\n", finding.file,
            finding.offset ? fmt::format(", offset {}", *finding.offset) : "", finding.what,
            lost.empty() ? "not known" : lost);
}

}  // namespace

json::object json_of(const StorageCheck& check) {
  return {{"sound", check.is_sound()},
          {"findings", json_of(check.findings)},
          {"cold", json_of(check.cold)},
          {"unknown_namespaces", json::value_from(check.unknown_namespaces)},
          {"findings_left_off", check.findings_left_off},
          {"segments", check.segments},
          {"records", check.records},
          {"unfinished", check.unfinished},
          {"bytes_skipped", check.bytes_skipped},
          {"files", check.files},
          {"blobs", check.blobs},
          {"mutations", check.mutations},
          {"bytes", check.bytes}};
}

void print_findings(const StorageCheck& check) {
  for (const StorageFinding& finding : check.findings) print_finding(finding);
  if (check.findings_left_off != 0) {
    print_out("and {} more\n", format_count(check.findings_left_off));
  }
  for (const StorageFinding& finding : check.cold.findings) print_finding(finding);
  print_unknown(check.unknown_namespaces);
}

std::size_t count_findings(const StorageCheck& check) {
  return check.findings.size() + check.unknown_namespaces.size() + check.cold.findings.size();
}

void print_unknown(const std::map<std::string, std::uint64_t>& namespaces) {
  for (const auto& [name, claims] : namespaces) {
    print_out(
        "namespace {}: its policy is lost, and {} claims of it are alive; open the storage with "
        "accept-unknown-namespaces, and declare it as it was\n",
        name, format_count(claims));
  }
}

StorageCommands storage_commands(CLI::App& program) {
  StorageCommands commands;
  for (const auto make :
       {verify_command, repair_command, inspect_command, backup_command, restore_command}) {
    commands.push_back(make(program));
  }
  return commands;
}

const StorageCommand* chosen_storage_command(const StorageCommands& commands) {
  for (const auto& command : commands) {
    if (command->is_chosen()) return command.get();
  }
  return nullptr;
}

}  // namespace semel::tool
