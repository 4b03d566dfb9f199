#include "net/config/rewrite.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include "net/config/config_file.hpp"
#include "net/config/config_text.hpp"
#include "net/config/toml_edit.hpp"
#include "net/resp/reply_error.hpp"

namespace semel::net {
namespace {

Error failed(std::string_view why) {
  return reply_error("ERR Rewriting config file: " + std::string{why});
}

Error cannot_place() {
  return {ErrorCode::bad_option, "the values changed cannot be put into it; write them by hand"};
}

std::string reason(int error) {
  return std::error_code{error, std::generic_category()}.message();
}

/// The offset behind the line "[section]", which may have blanks and a comment; npos: not found.
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

/// Sets one value in the text. False: there is no safe position for it.
bool put(std::string& content, const SettingRow& row, const std::string& value) {
  const TomlLocation location = find_in_toml(content, row);
  if (!location.is_toml) return false;
  if (location.has_value) {
    content.replace(location.begin, location.end - location.begin, value);
    return true;
  }
  if (!content.empty() && !content.ends_with('\n')) content += '\n';
  const std::string line = std::string{row.name} + " = " + value + "\n";
  const std::size_t at = behind_header(content, row.section);
  if (at != std::string::npos) {
    content.insert(at, line);
    return true;
  }
  if (location.has_section) return false;  // as an inline table, or with dotted keys
  content += (content.empty() ? "[" : "\n[") + std::string{row.section} + "]\n" + line;
  return true;
}

/// Replaces a file by a new one, which is written beside it first. Removes the new one if that
/// fails.
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

  /// Returns 0 or an errno. After a crash the disk has one of the two files, complete.
  [[nodiscard]] int fill_and_rename(std::string_view content) {
    struct stat old {};
    if (file_ < 0 || ::stat(path_.c_str(), &old) != 0 || ::fchmod(file_, old.st_mode) != 0) {
      return errno;
    }
    // A user who may write the file but does not own it becomes its owner; that is acceptable.
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

/// The setting of a line of redis.conf; none: it is of no setting.
std::optional<Setting> setting_of_line(std::string_view line) {
  const auto words = words_of(line);
  if (words.empty() || words[0].starts_with('#')) return std::nullopt;
  const auto found = find_redis_setting(words[0]);
  return found ? std::optional{found->setting} : std::nullopt;
}

/// In quotes, with bytes that would end them written as redis-server reads them.
std::string in_quotes(std::string_view text) {
  constexpr char marks[] = "0123456789abcdef";
  std::string line{'"'};
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      line.append("\\").push_back(c);
    } else if (byte < ' ' || byte > '~') {
      line.append("\\x").push_back(marks[byte >> 4U]);
      line += marks[byte & 15U];
    } else {
      line += c;
    }
  }
  return line += '"';
}

std::string redis_line(const Settings& settings, Setting setting) {
  const SettingRow& row = row_of(setting);
  std::string text = show_setting(row, settings.value(setting));
  const bool is_port = setting == Setting::port || setting == Setting::tls_port;
  if (is_port && text == "-1") text = "0";
  const bool is_plain = row.is_number() && !text.empty();
  return std::string{words_of(row.redis_names)[0]} + ' ' + (is_plain ? text : in_quotes(text)) +
         '\n';
}

/// Replaces the file of the path, which may be a link to it.
Status replace_target(const std::string& path, std::string_view content) {
  std::error_code error;
  const auto real = std::filesystem::canonical(path, error);
  if (error) return failed(error.message());
  const int number = Replacement{real.string()}.fill_and_rename(content);
  return number == 0 ? Status{Done{}} : failed(reason(number));
}

}  // namespace

Result<std::string> rewritten_redis_conf(const Settings& settings, std::string_view content) {
  std::vector<Setting> left;
  for (std::size_t i = 0; i < setting_count; ++i) {
    const auto setting = static_cast<Setting>(i);
    if (settings.origin(setting).kind != Origin::Kind::config_set) continue;
    const bool is_shown = shows_any_value(settings, setting);
    if (!is_shown) continue;  // a start would refuse it
    if (row_of(setting).redis_names.empty()) {
      if (settings.text(setting) != row_of(setting).default_text) return cannot_place();
      continue;
    }
    left.push_back(setting);
  }
  const std::vector<Setting> changed = left;
  std::string result;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t end = std::min(content.find('\n', at), content.size() - 1) + 1;
    const std::string_view line = content.substr(at, end - at);
    at = end;
    const auto setting = setting_of_line(line);
    if (!setting || std::find(changed.begin(), changed.end(), *setting) == changed.end()) {
      result += line;
    } else if (std::erase(left, *setting) != 0) {
      result += redis_line(settings, *setting);
    }
  }
  if (!left.empty() && !result.empty() && !result.ends_with('\n')) result += '\n';
  for (const Setting setting : left) result += redis_line(settings, setting);
  return result;
}

Status rewrite_redis_conf(const Settings& settings, const std::string& path) {
  const Result<std::string> old = read_config_bytes(path);
  if (!old.ok()) return failed(old.error().detail);
  const Result<std::string> content = rewritten_redis_conf(settings, *old);
  if (!content.ok()) return failed(content.error().detail);
  return *content == *old ? Status{Done{}} : replace_target(path, *content);
}

Result<std::string> rewritten(const Settings& settings, std::string content) {
  const std::string before = content;
  std::vector<const SettingRow*> changed;
  std::vector<SettingValue> values;  // read once, as a concurrent CONFIG SET may change them
  for (std::size_t i = 0; i < setting_count; ++i) {
    const auto setting = static_cast<Setting>(i);
    if (settings.origin(setting).kind != Origin::Kind::config_set) continue;
    if (row_of(setting).has_one_value()) continue;  // a start would refuse it
    changed.push_back(&row_of(setting));
    values.push_back(settings.value(setting));
    if (!put(content, *changed.back(), toml_value(*changed.back(), values.back()))) {
      return cannot_place();
    }
  }
  // Read the result back: the file may have a form that put() does not handle.
  if (!is_same_toml(before, content, changed)) return cannot_place();
  std::vector<Assignment> read;
  Findings findings;
  read_toml(content, "", read, findings);
  for (std::size_t i = 0; i < changed.size(); ++i) {
    const auto is_it = [&](const Assignment& one) {
      if (&row_of(one.setting) != changed[i]) return false;
      const auto parsed = parse_setting(*changed[i], one.text, changed[i]->default_text);
      return parsed && *parsed == values[i];
    };
    if (std::none_of(read.begin(), read.end(), is_it)) return cannot_place();
  }
  return content;
}

Status rewrite_config(const Settings& settings, const std::string& path) {
  if (path.empty()) {
    return Error{ErrorCode::bad_option, "ERR The server is running without a config file"};
  }
  const Result<std::string> old = read_config_bytes(path);
  if (!old.ok()) return failed(old.error().detail);
  const Result<std::string> content = rewritten(settings, *old);
  if (!content.ok()) return failed(content.error().detail);
  if (*content == *old) return Done{};
  return replace_target(path, *content);
}

}  // namespace semel::net
