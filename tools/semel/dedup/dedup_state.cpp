#include "tools/semel/dedup/dedup_state.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/file_text.hpp"
#include "semel/storage.hpp"
#include "semel/storage_tools.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

constexpr const char* description_name =
    "dedup.json";  // written first: it names the owner of the state
constexpr std::int64_t state_format = 1;

/// The remembered keys, as the options that choose them.
std::string key_of(const DedupOptions& options) {
  const LineRule& rule = options.rule;
  std::string text = "whole lines";
  if (!rule.key_fields.empty()) text = fmt::format("--fields {}", fmt::join(rule.key_fields, ","));
  for (std::size_t i = 0; i < rule.key_pointers.size(); ++i) {
    text = i == 0 ? "" : text + " ";
    text += "--json " + rule.key_pointers[i];
  }
  if (!rule.key_names.empty()) text = fmt::format("--fields {}", fmt::join(rule.key_names, ","));
  if (rule.is_csv) text = "--csv " + text;
  if (!(rule.key_fields.empty() && rule.key_names.empty()) && rule.delimiter) {
    text += fmt::format(" --delimiter \\x{:02x}", static_cast<unsigned char>(*rule.delimiter));
  }
  if (rule.missing_is_key) text += " --missing key";
  if (rule.folds_case) text += " --ignore-case";
  if (rule.terminator == '\0') text += " -z";
  return text;
}

const char* time_of(const DedupOptions& options) {
  return options.rule.time_format ? "time of the lines" : "time of arrival";
}

Error error_of_file(const std::string& path) {
  return file_error(fmt::format("--state: {}: {}", path, std::strerror(errno)));
}

/// Atomic: written beside, synced, renamed.
Status write_file(const std::string& path, const std::string& text) {
  const std::string beside = path + ".new";
  const int descriptor = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) return error_of_file(beside);
  Status written = Done{};
  if (write(descriptor, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      fsync(descriptor) != 0) {
    written = error_of_file(beside);
  }
  close(descriptor);
  SEMEL_CHECK(written);
  if (rename(beside.c_str(), path.c_str()) != 0) return error_of_file(path);
  return Done{};
}

Error error_of_storage(const Error& error) {
  std::string text = "--state: " + error.message();
  const bool has_own_exit = error.code == ErrorCode::storage_newer ||
                            error.code == ErrorCode::storage_damaged ||
                            error.code == ErrorCode::memory_full;
  if (has_own_exit) return {error.code, std::move(text)};
  return file_error(std::move(text));
}

class StoredState final : public DedupState {
 public:
  explicit StoredState(const DedupOptions& options) : options_(options) {}

  [[nodiscard]] Status open() {
    const std::string& directory = options_.state_path;
    std::error_code code;
    if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
      return error_of_file(directory);
    }
    const bool has_storage = fs::exists(directory + "/mark", code);
    std::int64_t line_ms = 0;
    if (has_storage) {
      const Result<StorageInfo> info = inspect_storage(directory);
      if (!info) return error_of_storage(info.error());
      line_ms = info->line_ms;
    }
    SEMEL_CHECK(check_options(has_storage));
    if (options_.rule.time_format) {
      // A line at 1 has seen nothing yet.
      const std::int64_t start = std::max<std::int64_t>(line_ms, 1);
      if (start > 1) watermark_ = start - event_bias_ms;
      event_clock_.emplace(Millis{start}, start);
    }
    const Clock& clock = event_clock_ ? static_cast<const Clock&>(*event_clock_) : clock_;
    auto storage = Storage::open({.directory = directory,
                                  .log_bytes = std::size_t{16} << 20,
                                  .span = Millis{60'000},
                                  .own_files = {description_name}},
                                 clock);
    if (!storage) return error_of_storage(storage.error());
    storage_ = *std::move(storage);
    return Done{};
  }

  void prepare(Options& options) override {
    options.clock = event_clock_ ? static_cast<const Clock*>(&*event_clock_) : &clock_;
    options.journal = storage_.get();
    // Not for the promise of `logged`: at this level callers wait for a full journal and are not
    // refused.
    options.durability = Durability::logged;
    options.value_bytes_max = 1024;  // no key has a value, and the journal's groups are small
    options.first_version = storage_->first_version();
  }

  [[nodiscard]] Status recover(Engine& engine) override {
    const Result<RecoveryReport> report = storage_->recover(engine);
    if (!report) return error_of_storage(report.error());
    return Done{};
  }

  [[nodiscard]] Status finish(Engine& engine) override {
    // Drained, so that the time line is stored at its present point, and the next run finds an
    // empty journal.
    Status status = storage_->drain();
    if (status) status = engine.confirm(Durability::synced);
    if (!status) return error_of_storage(status.error());
    return Done{};
  }

  [[nodiscard]] ManualClock* event_clock() override {
    return event_clock_ ? &*event_clock_ : nullptr;
  }
  [[nodiscard]] std::optional<std::int64_t> watermark() const override { return watermark_; }

 private:
  /// The keys and times of this run must mean what those in the state do.
  [[nodiscard]] Status check_options(bool has_storage) const {
    const std::string path = options_.state_path + "/" + description_name;
    const std::string key = key_of(options_);
    const std::string time = time_of(options_);
    std::error_code code;
    if (!fs::exists(path, code)) {
      if (has_storage) {
        return usage_error(fmt::format("--state: '{}' is a storage, but not one of semel dedup",
                                       options_.state_path));
      }
      const json::object content{{"format", state_format}, {"key", key}, {"time", time}};
      return write_file(path, json::serialize(content) + "\n");
    }
    json::error_code error;
    const json::value value = json::parse(base::read_file(path).value_or(""), error);
    const json::object* const content = error ? nullptr : value.if_object();
    const auto member = [&](const char* name) -> const json::value* {
      return content == nullptr ? nullptr : content->if_contains(name);
    };
    const json::value* const format = member("format");
    const json::value* const was_key = member("key");
    const json::value* const was_time = member("time");
    if (format == nullptr || !format->is_int64() || was_key == nullptr || !was_key->is_string() ||
        was_time == nullptr || !was_time->is_string()) {
      return data_error(fmt::format("--state: {} was not written by semel dedup", path));
    }
    if (format->as_int64() > state_format) {
      return data_error(fmt::format("--state: {} has format {}; this release reads {}", path,
                                    format->as_int64(), state_format));
    }
    if (was_key->as_string() == key && was_time->as_string() == time) return Done{};
    return usage_error(fmt::format("--state: '{}' remembers {} by {}; this run asks for {} by {}",
                                   options_.state_path, std::string{was_key->as_string()},
                                   std::string{was_time->as_string()}, key, time));
  }

  const DedupOptions& options_;
  SystemClock clock_;
  std::optional<ManualClock> event_clock_;
  std::optional<std::int64_t> watermark_;
  std::unique_ptr<Storage> storage_;
};

}  // namespace

bool has_dedup_state() {
  return true;
}

Result<std::unique_ptr<DedupState>> open_dedup_state(const DedupOptions& options) {
  auto state = std::make_unique<StoredState>(options);
  SEMEL_CHECK(state->open());
  return std::unique_ptr<DedupState>{std::move(state)};
}

}  // namespace semel::tool
