#include "net/config/rewrite.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "net/config/config_file.hpp"
#include "net/config/config_text.hpp"
#include "net/config/toml_edit.hpp"

namespace semel::net {
namespace {

std::string failed(std::string_view why) {
  return "ERR Rewriting config file: " + std::string{why};
}

std::string reason(int error) {
  return std::error_code{error, std::generic_category()}.message();
}

/// Behind the line "[section]", whatever blanks and comment it has; npos: there is no such line.
std::size_t behind_header(std::string_view content, std::string_view section) {
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t end = std::min(content.find('\n', at), content.size());
    std::string_view line = content.substr(at, end - at);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::string header = "[" + std::string{section} + "]";
    if (line.starts_with(header)) return std::min(end + 1, content.size());
    at = end + 1;
  }
  return std::string_view::npos;
}

/// False: there is no place for it that is safe.
bool put(std::string& content, const SettingRow& row, const std::string& value) {
  const TomlPlace place = find_in_toml(content, row);
  if (!place.is_toml) return false;
  if (place.has_value) {
    content.replace(place.begin, place.end - place.begin, value);
    return true;
  }
  if (!content.empty() && !content.ends_with('\n')) content += '\n';
  const std::string line = std::string{row.name} + " = " + value + "\n";
  const std::size_t at = behind_header(content, row.section);
  if (at != std::string::npos) {
    content.insert(at, line);
    return true;
  }
  if (place.has_section) return false;  // in one line, or by keys with dots
  content += (content.empty() ? "[" : "\n[") + std::string{row.section} + "]\n" + line;
  return true;
}

/// A new file beside the old one that takes its place. Removed where that did not come to be.
class Replacement {
 public:
  explicit Replacement(std::string path) : path_(std::move(path)), name_(path_ + ".XXXXXX") {
    file_ = ::mkostemp(name_.data(), O_CLOEXEC);
  }
  ~Replacement() {
    if (file_ < 0) return;
    ::close(file_);
    if (!is_done_) ::unlink(name_.c_str());
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  /// 0 or what went wrong. On success the disk has either file.
  [[nodiscard]] int fill_and_rename(std::string_view content) {
    struct stat old {};
    if (file_ < 0 || ::stat(path_.c_str(), &old) != 0 || ::fchmod(file_, old.st_mode) != 0) {
      return errno;
    }
    // Whoever may write the file but does not own it makes it his own; that is no reason to refuse.
    if (::fchown(file_, old.st_uid, old.st_gid) != 0 && errno != EPERM) return errno;
    while (!content.empty()) {
      const ssize_t written = ::write(file_, content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return errno;
      content.remove_prefix(static_cast<std::size_t>(written));
    }
    if (::fsync(file_) != 0 || ::rename(name_.c_str(), path_.c_str()) != 0) return errno;
    is_done_ = true;
    return sync_directory();
  }

 private:
  [[nodiscard]] int sync_directory() const {
    const std::string directory = std::filesystem::path{path_}.parent_path().string();
    const int file = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return errno;
    const int error = ::fsync(file) == 0 ? 0 : errno;
    ::close(file);
    return error;
  }

  const std::string path_;
  std::string name_;
  int file_ = -1;
  bool is_done_ = false;
};

}  // namespace

std::optional<std::string> rewritten(const Settings& settings, std::string content) {
  const std::string before = content;
  std::vector<const SettingRow*> changed;
  std::vector<SettingValue> values;  // once, so that a CONFIG SET meanwhile does not mix them
  for (std::size_t i = 0; i < setting_count; ++i) {
    const auto setting = static_cast<Setting>(i);
    if (settings.origin(setting).kind != Origin::Kind::config_set) continue;
    changed.push_back(&row_of(setting));
    values.push_back(settings.value(setting));
    if (!put(content, *changed.back(), toml_value(*changed.back(), values.back()))) {
      return std::nullopt;
    }
  }
  // It is believed only when it was read: a file may be of a form nobody thought of.
  if (!is_same_toml(before, content, changed)) return std::nullopt;
  std::vector<Assignment> read;
  Findings findings;
  read_toml(content, "", read, findings);
  for (std::size_t i = 0; i < changed.size(); ++i) {
    const auto is_it = [&](const Assignment& one) {
      return &row_of(one.setting) == changed[i] &&
             parse_setting(*changed[i], one.text, changed[i]->default_text).value == values[i];
    };
    if (std::none_of(read.begin(), read.end(), is_it)) return std::nullopt;
  }
  return content;
}

std::optional<std::string> rewrite_config(const Settings& settings, const std::string& path) {
  if (path.empty()) return "ERR The server is running without a config file";
  const FileContent old = read_config_bytes(path);
  if (!old.error.empty()) return failed(old.error);
  const auto content = rewritten(settings, old.bytes);
  if (!content) return failed("the values changed cannot be put into it; write them by hand");
  if (*content == old.bytes) return std::nullopt;
  std::error_code error;
  // Where the path is a link, the file it leads to is replaced, not the link.
  const auto real = std::filesystem::canonical(path, error);
  if (error) return failed(error.message());
  if (const int number = Replacement{real.string()}.fill_and_rename(*content)) {
    return failed(reason(number));
  }
  return std::nullopt;
}

}  // namespace semel::net
