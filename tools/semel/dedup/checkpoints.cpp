#include "tools/semel/dedup/checkpoints.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/file_text.hpp"
#include "tools/semel/records/output_file.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {
namespace {

namespace json = boost::json;

constexpr std::uint64_t checkpoint_format = 1;

std::string command_of(const DedupOptions& options) {
  const LineRule& rule = options.rule;
  return fmt::format(
      "fields {} names {} json {} delimiter {} csv {} quotes {} header {} fold {} "
      "end {} missing {} compression {} every {} output {}",
      fmt::join(rule.key_fields, ","), fmt::join(rule.key_names, ","),
      fmt::join(rule.key_pointers, ","), rule.delimiter ? static_cast<int>(*rule.delimiter) : -1,
      rule.is_csv, rule.takes_quotes, rule.has_header, rule.folds_case,
      static_cast<int>(rule.terminator), static_cast<int>(options.missing),
      static_cast<int>(options.compression), options.resume_every, options.output_path);
}

/// Size and time show whether a file is the one that was read before.
Result<std::string> inputs_of(const DedupOptions& options) {
  std::string text;
  for (const std::string& path : options.files) {
    struct stat file {};
    if (path == "-" || stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) {
      return usage_error(fmt::format("--resume needs files that can be read again; '{}' is {}",
                                     path, path == "-" ? "standard input" : "not a plain file"));
    }
    text += fmt::format("{} {} {}.{:09} {}\n", path, file.st_size, file.st_mtim.tv_sec,
                        file.st_mtim.tv_nsec, file.st_ino);
  }
  return text;
}

}  // namespace

Error Checkpoints::failed_with(const std::string& text) const {
  return file_error(fmt::format("--resume: {}", text));
}

Error Checkpoints::failed(const std::string& path) const {
  return failed_with(fmt::format("{}: {}", path, std::strerror(errno)));
}

Checkpoints::~Checkpoints() {
  if (directory_ >= 0) ::close(directory_);
}

Result<std::unique_ptr<Checkpoints>> Checkpoints::open(const DedupOptions& options) {
  std::unique_ptr<Checkpoints> made{new Checkpoints{options}};
  made->path_ = options.resume_path + "/checkpoint.json";
  std::error_code code;
  const std::filesystem::path output = resolved_path(options.output_path, code);
  if (code) return made->failed_with(fmt::format("{}: {}", options.output_path, code.message()));
  made->partial_ =
      (output.parent_path() / fmt::format(".{}.semel-partial", output.filename().string()))
          .string();
  made->command_ = command_of(options);
  struct stat there {};
  if (stat(options.output_path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    return usage_error(
        fmt::format("--resume: the output '{}' is not a plain file", options.output_path));
  }
  SEMEL_CHECK(made->lock());
  SEMEL_CHECK(made->read_last());
  return made;
}

Status Checkpoints::lock() {
  const std::string& path = options_.resume_path;
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return failed(path);
  directory_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory_ < 0) return failed(path);
  if (flock(directory_, LOCK_EX | LOCK_NB) == 0) return Done{};
  if (errno != EWOULDBLOCK) return failed(path);
  return failed_with(fmt::format("'{}' is in use by another run", path));
}

Status Checkpoints::read_last() {
  const std::optional<std::string> text = base::read_file(path_);
  if (!text && errno == ENOENT) {
    SEMEL_TRY(inputs, inputs_of(options_));
    inputs_ = inputs;
    return Done{};
  }
  json::error_code error;
  const json::value value = json::parse(text.value_or(""), error);
  const json::object* const content = error ? nullptr : value.if_object();
  const auto number = [&](const char* name) -> std::optional<std::uint64_t> {
    const json::value* const member = content == nullptr ? nullptr : content->if_contains(name);
    if (member == nullptr || !member->is_int64() || member->get_int64() < 0) return std::nullopt;
    return static_cast<std::uint64_t>(member->get_int64());
  };
  const auto is_text = [&](const char* name, const std::string& wanted) {
    const json::value* const member = content == nullptr ? nullptr : content->if_contains(name);
    return member != nullptr && member->is_string() && member->get_string() == wanted;
  };
  if (number("format") != checkpoint_format) {
    return data_error(
        fmt::format("--resume: {} is not a checkpoint of format {}", path_, checkpoint_format));
  }
  if (!is_text("command", command_)) {
    return usage_error(
        fmt::format("--resume: '{}' is of a run with other options or another "
                    "output; give the same ones, or remove it to begin again",
                    options_.resume_path));
  }
  Checkpoint last;
  const std::pair<const char*, std::uint64_t*> members[] = {
      {"input", &last.input},
      {"offset", &last.offset},
      {"newlines", &last.newlines},
      {"output_bytes", &last.output_bytes},
      {"lines", &last.counts.lines},
      {"first", &last.counts.first},
      {"duplicates", &last.counts.duplicates},
      {"without_key", &last.counts.without_key}};
  for (const auto& [name, into] : members) {
    const std::optional<std::uint64_t> member = number(name);
    if (!member) return data_error(fmt::format("--resume: {} has no '{}'", path_, name));
    *into = *member;
  }
  last.owes_newline = number("owes_newline") == 1;
  last.is_complete = number("complete") == 1;
  last_ = last;
  // The output may have been an input: when it is complete, no input is read any more.
  if (last.is_complete) return Done{};
  SEMEL_TRY(inputs, inputs_of(options_));
  inputs_ = inputs;
  if (is_text("inputs", inputs_)) return Done{};
  return data_error(
      fmt::format("--resume: an input of '{}' has another name, size or time than it "
                  "had; remove the directory to begin again",
                  options_.resume_path));
}

Status Checkpoints::save(const Checkpoint& checkpoint, int output) {
  if (fdatasync(output) != 0) return failed(partial_);
  const DedupCounts& counts = checkpoint.counts;
  const std::string text =
      json::serialize(json::object{{"format", static_cast<std::int64_t>(checkpoint_format)},
                                   {"command", command_},
                                   {"inputs", inputs_},
                                   {"input", checkpoint.input},
                                   {"offset", checkpoint.offset},
                                   {"newlines", checkpoint.newlines},
                                   {"output_bytes", checkpoint.output_bytes},
                                   {"owes_newline", checkpoint.owes_newline ? 1 : 0},
                                   {"complete", checkpoint.is_complete ? 1 : 0},
                                   {"lines", counts.lines},
                                   {"first", counts.first},
                                   {"duplicates", counts.duplicates},
                                   {"without_key", counts.without_key}}) +
      "\n";
  const std::string beside = path_ + ".new";
  const int descriptor =
      ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return failed(beside);
  const bool is_written =
      ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      fsync(descriptor) == 0;
  const Error error = failed(beside);
  ::close(descriptor);
  if (!is_written) return error;
  if (rename(beside.c_str(), path_.c_str()) != 0) return failed(path_);
  if (fsync(directory_) != 0) return failed(options_.resume_path);
  return Done{};
}

Status Checkpoints::remove() {
  if (unlink(path_.c_str()) != 0 && errno != ENOENT) return failed(path_);
  if (fsync(directory_) != 0) return failed(options_.resume_path);
  return Done{};
}

}  // namespace semel::tool
