// Reads a redis.conf. Known settings are applied, unknown lines give a warning; what would silently
// mean something else is an error, here or in load_config().
#include <algorithm>

#include "net/config/config_file.hpp"
#include "net/resp/resp_parser.hpp"
#include "net/resp/text.hpp"

namespace semel::net {
namespace {

class RedisConfReader {
 public:
  RedisConfReader(const std::string& path, std::vector<Assignment>& out, Findings& findings)
      : path_(path), out_(out), findings_(findings) {}

  void read(std::string_view content) {
    for (std::size_t number = 1; !content.empty(); ++number) {
      const std::size_t end = std::min(content.find('\n'), content.size());
      where_ = path_ + ":" + std::to_string(number);
      read_line(content.substr(0, end));
      content.remove_prefix(std::min(end + 1, content.size()));
    }
  }

 private:
  void fail(std::string_view word, std::string_view why) {
    findings_.errors.push_back(where_ + ": " + shown(word) + ": " + std::string{why});
  }
  void warn(const std::string& what) { findings_.warnings.push_back(where_ + ": " + what); }
  static std::string shown(std::string_view word) {
    constexpr std::size_t shown_max = 64;
    std::string text = "'" + std::string{word.substr(0, shown_max)} + "'";
    for (char& c : text) c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    return text;
  }

  void read_line(std::string_view line) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos || line[begin] == '#') return;
    line.remove_prefix(begin);
    // No line of a redis.conf begins like a RESP array.
    if (line.front() == '*') return warn("unknown line " + shown(line) + ", ignored");
    const auto words = words_of_redis_line(line);
    if (!words) {
      // Show only the keyword of the line, as the rest may hold a password.
      return fail(line.substr(0, line.find_first_of(" \t")), "quotes that do not close");
    }
    if (!words->empty()) take(*words);
  }

  void take(std::span<const std::string> words) {
    if (const std::string_view reason = reason_against(words[0]); !reason.empty()) {
      return fail(words[0], reason);
    }
    const auto found = find_redis_setting(words[0]);
    if (!found) {
      const std::string_view nearest = nearest_setting(words[0]);
      return warn("unknown line " + shown(words[0]) + ", ignored" +
                  (nearest.empty() ? "" : "; did you mean '" + std::string{nearest} + "'?"));
    }
    const SettingRow& row = row_of(found->setting);
    const bool takes_many = row.type == SettingType::list || row.detail == "output-limits" ||
                            (row.type == SettingType::text && !row.detail.empty());
    if (words.size() < 2 || (words.size() > 2 && !takes_many)) {
      // The check of promises names the reason.
      if (!row.has_one_value()) return fail(words[0], "wrong number of arguments");
    }
    std::string text;
    for (const std::string& word : words.subspan(1)) {
      text.append(text.empty() ? "" : " ").append(word);
    }
    assign(found->setting, text);
  }

  void assign(Setting setting, std::string text) {
    const SettingRow& row = row_of(setting);
    // In redis.conf port 0 means no port; here it means any free port.
    if ((setting == Setting::port || setting == Setting::tls_port) && text == "0") text = "-1";
    if (setting == Setting::maxmemory && bytes_of(text) == 0) {
      return fail(row.name, "0 would be unlimited; name a limit, as 1gb");
    }
    const Result<SettingValue> parsed = parse_setting(row, text, row.default_text);
    if (!parsed) {
      findings_.errors.push_back(value_error(where_, setting, text, parsed.error().detail));
      return;
    }
    out_.push_back({setting, std::move(text), {Origin::Kind::redis_conf, where_}});
  }

  const std::string& path_;
  std::vector<Assignment>& out_;
  Findings& findings_;
  std::string where_;
};

}  // namespace

std::optional<std::vector<std::string>> words_of_redis_line(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos || line[begin] == '#') return std::vector<std::string>{};
  line.remove_prefix(begin);
  // A request of RESP, not a line with quotes.
  if (line.front() == '*') return std::vector{std::string{line}};
  RespParser parser;
  const std::string request =
      std::string{line.substr(0, line.find_last_not_of(" \t\r") + 1)} + "\r\n";
  if (parser.parse(request, RequestLimits{}) != RespParser::Step::command) return std::nullopt;
  return std::vector<std::string>{parser.arguments().begin(), parser.arguments().end()};
}

void read_redis_conf(std::string_view content, const std::string& path,
                     std::vector<Assignment>& out, Findings& findings) {
  RedisConfReader{path, out, findings}.read(content);
}

}  // namespace semel::net
