#include "net/config/redis_start.hpp"

#include <glob.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/ascii.hpp"
#include "net/config/config_file.hpp"
#include "net/resp/text.hpp"

namespace semel::net {
namespace {

constexpr std::size_t include_depth_max = 16;

/// A line of a file, or a flag with the arguments behind it.
struct Directive {
  std::vector<std::string> words;
  std::string where;

  [[nodiscard]] std::string_view name() const { return words.front(); }
  [[nodiscard]] std::string text() const {
    std::string text;
    for (std::size_t i = 1; i < words.size(); ++i) {
      text.append(i == 1 ? "" : " ").append(words[i]);
    }
    return text;
  }
};

/// redis-server's, where nothing sets them.
constexpr std::string_view default_save_points = "3600 1 300 100 60 10000";

/// As redis-server names a line: 'port "6379" "6380"'. A password is not shown.
std::string shown_line(const Directive& directive) {
  std::string text = "'" + std::string{directive.name()};
  const bool is_secret = is_word(directive.name(), "requirepass") ||
                         is_word(directive.name(), "masterauth") ||
                         is_word(directive.name(), "user");
  for (std::size_t i = 1; i < directive.words.size() && !is_secret; ++i) {
    text.append(" \"").append(directive.words[i]).append("\"");
  }
  return text + "'";
}

/// The settings that a test has of redis-server, which a node for production has not.
constexpr std::array<std::pair<Setting, std::string_view>, 8> stand_in_settings{{
    {Setting::stand_in, "yes"},
    {Setting::log_format, "redis"},
    {Setting::test_clock, "yes"},
    {Setting::scripts, "any"},
    {Setting::monitor, "yes"},
    {Setting::cache_databases, "all"},
    {Setting::io_threads, "1"},
    {Setting::shards, "4"},  // for one thread; each takes memory when the node starts
}};

class RedisStartReader {
 public:
  RedisStartReader(RedisStart& start, Settings& settings) : start_(start), settings_(settings) {}

  void read(std::span<const std::string_view> arguments,
            const std::function<std::string()>& read_input) {
    for (const auto& [setting, text] : stand_in_settings) assign(setting, text);
    std::error_code unknown;
    show(Setting::save, default_save_points);
    const std::string here = std::filesystem::current_path(unknown).string();
    if (!here.empty()) assign(Setting::dir, here);
    std::vector<Directive> given;
    bool reads_input = false;
    read_arguments(arguments, given, reads_input);
    for (const Directive& flag : given) {
      if (is_word(flag.name(), "strict")) is_strict_ = flag.text().empty() || flag.text() == "yes";
    }
    if (!start_.file.empty()) read_file(start_.file, 0);
    if (reads_input) read_lines(read_input(), "standard input", 0);
    for (const Directive& flag : given) apply(flag);
    finish();
  }

 private:
  void fail(std::string text) { start_.errors.push_back(std::move(text)); }
  void fail_arity(const Directive& directive) {
    fail(directive.where + ": " + shown_line(directive) + ": wrong number of arguments");
  }
  void fail_value(const Directive& directive, Setting setting, const std::string& text,
                  const std::string& why) {
    fail(value_error(directive.where + ": " + shown_line(directive), setting, text, why));
  }
  /// Reports a directive that has no place here.
  void ignore(std::string text) {
    (is_strict_ ? start_.errors : start_.warnings)
        .push_back(std::move(text) + (is_strict_ ? "" : "; ignored"));
  }
  void assign(Setting setting, std::string_view text) {
    // Of defaults, and of values that were parsed.
    static_cast<void>(settings_.assign(setting, text, {Origin::Kind::redis_conf, "redis-server"}));
  }

  /// CONFIG GET shows `text` from now on, as far as shows_any_value() allows it.
  void show(Setting setting, std::string_view text) {
    // Of values that were parsed; a promise is not shown.
    static_cast<void>(settings_.assign(setting, text, {.kind = Origin::Kind::config_set}));
  }

  void read_arguments(std::span<const std::string_view> arguments, std::vector<Directive>& given,
                      bool& reads_input);
  void read_file(const std::string& path, std::size_t depth);
  void read_lines(std::string_view content, const std::string& path, std::size_t depth);
  void include(const Directive& directive, std::size_t depth);
  void apply(const Directive& directive);
  [[nodiscard]] bool apply_own(const Directive& directive);
  void apply_setting(const Directive& directive, Setting setting);
  void show_setting_of(const Directive& directive, Setting setting, const std::string& text);
  void finish();

  RedisStart& start_;
  Settings& settings_;
  std::vector<std::string> save_points_;
  std::set<std::string> users_;
  bool has_save_ = false;
  bool is_strict_ = false;
};

/// Without a value it is on.
bool may_be_bare(std::string_view name) {
  if (is_word(name, "strict")) return true;
  const auto found = find_setting(name);
  return found && row_of(found->setting).redis_names.empty() &&
         row_of(found->setting).type == SettingType::boolean;
}

// --- arguments and files --------------------------------------------------------------------

void RedisStartReader::read_arguments(std::span<const std::string_view> arguments,
                                      std::vector<Directive>& given, bool& reads_input) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    const bool is_outermost = i == 0 || i + 1 == arguments.size();
    if (i == 0 && !word.empty() && !word.starts_with('-')) {
      std::error_code failed;
      start_.file = std::filesystem::absolute(std::string{word}, failed).string();
      continue;
    }
    if (word == "-" && is_outermost) {
      reads_input = true;
      continue;
    }
    const bool lacks_value = !given.empty() && given.back().words.size() == 1;
    const bool is_flag = word.starts_with("--") && word.size() > 2;
    // As redis-server: a flag has at least one value, which may begin with dashes. `--save` alone
    // is an empty one.
    const bool needs_value = lacks_value && !may_be_bare(given.back().name()) &&
                             !(is_flag && is_word(given.back().name(), "save"));
    if (is_flag && !needs_value) {
      auto words = words_of_redis_line(word.substr(2));
      if (!words || words->empty()) {
        fail(std::string{word.substr(0, word.find(' '))} + ": quotes that do not close");
        return;
      }
      std::string where = "--" + words->front();
      given.push_back({*std::move(words), std::move(where)});
    } else if (given.empty() && !word.empty() && !word.starts_with('-')) {
      given.push_back({{std::string{word}}, std::string{word}});  // redis-server takes it as well
    } else if (given.empty()) {
      fail("'" + std::string{word} + "' belongs to no flag");
      return;
    } else {
      given.back().words.emplace_back(word);
    }
  }
}

void RedisStartReader::read_file(const std::string& path, std::size_t depth) {
  const Result<std::string> content = read_config_bytes(path);
  if (!content) return fail(path + ": " + content.error().detail);
  read_lines(*content, path, depth);
}

void RedisStartReader::read_lines(std::string_view content, const std::string& path,
                                  std::size_t depth) {
  for (std::size_t number = 1; !content.empty(); ++number) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    const std::string where = path + ":" + std::to_string(number);
    auto words = words_of_redis_line(line);
    // The rest of the line may hold a password.
    if (!words) {
      fail(where + ": quotes that do not close");
    } else if (!words->empty()) {
      const Directive directive{*std::move(words), where};
      is_word(directive.name(), "include") ? include(directive, depth) : apply(directive);
    }
  }
}

void RedisStartReader::include(const Directive& directive, std::size_t depth) {
  if (depth == include_depth_max) {
    return fail(directive.where + ": include is nested more than " +
                std::to_string(include_depth_max) + " files deep");
  }
  for (std::size_t i = 1; i < directive.words.size(); ++i) {
    const std::string& pattern = directive.words[i];
    glob_t found{};
    const int result = ::glob(pattern.c_str(), 0, nullptr, &found);
    for (std::size_t n = 0; n < found.gl_pathc; ++n) read_file(found.gl_pathv[n], depth + 1);
    ::globfree(&found);
    const bool is_pattern = pattern.find_first_of("*?[") != std::string::npos;
    if (result != 0 && !is_pattern) read_file(pattern, depth + 1);  // which reports the reason
  }
  if (directive.words.size() < 2) fail(directive.where + ": include: a file is missing");
}

// --- directives -----------------------------------------------------------------------------

/// Those that are about the process, and are no settings of a node.
bool RedisStartReader::apply_own(const Directive& directive) {
  const std::string_view name = directive.name();
  const std::string text = directive.text();
  if (is_word(name, "strict")) return true;
  if (is_word(name, "rename-command")) {
    const std::vector<std::string>& words = directive.words;
    if (words.size() != 3) return fail_arity(directive), true;
    start_.renames.push_back({directive.where, words[1], words[2]});
    return true;
  }
  if (is_word(name, "user") && directive.words.size() > 1 &&
      !users_.insert(directive.words[1]).second) {
    fail(directive.where + ": Duplicate user '" + directive.words[1] + "'");
    return true;
  }
  if (is_word(name, "daemonize") || is_word(name, "pidfile")) {
    const auto setting = find_setting(name)->setting;
    if (directive.words.size() != 2) return fail_arity(directive), true;
    const auto parsed = parse_setting(row_of(setting), text, {});
    if (!parsed) {
      fail(value_error(directive.where, setting, text, parsed.error().detail));
    } else if (is_word(name, "daemonize")) {
      start_.daemonizes = parsed->number != 0;
    } else {
      start_.pidfile = text;
    }
    show(setting, text);
    return true;
  }
  return false;
}

void RedisStartReader::apply(const Directive& directive) {
  const std::string_view name = directive.name();
  if (apply_own(directive)) return;
  const auto found = find_setting(name);
  if (found) return apply_setting(directive, found->setting);
  constexpr std::size_t shown_max = 64;
  const std::string shown{name.substr(0, shown_max)};
  const std::string_view reason = reason_against(name);
  if (!reason.empty()) return ignore(directive.where + ": " + shown + ": " + std::string{reason});
  const std::string_view nearest = nearest_setting(name);
  ignore(directive.where + ": unknown directive '" + shown + "'" +
         (nearest.empty() ? "" : ", did you mean '" + std::string{nearest} + "'?"));
}

void RedisStartReader::apply_setting(const Directive& directive, Setting setting) {
  const SettingRow& row = row_of(setting);
  std::string text = directive.text();
  if (directive.words.size() == 1) {
    if (setting == Setting::save) {
      text.clear();
    } else if (may_be_bare(directive.name())) {
      text = "yes";
    } else if (row.type != SettingType::list) {
      return fail_arity(directive);
    }
  }
  const bool has_one_word = row.is_number() || row.type == SettingType::choice;
  if (has_one_word && directive.words.size() > 2) return fail_arity(directive);
  if (setting == Setting::replicaof && directive.words.size() != 3) return fail_arity(directive);
  if (row.has_one_value()) return show_setting_of(directive, setting, text);
  const bool is_port = setting == Setting::port || setting == Setting::tls_port;
  if (is_port && text == "0") text = "-1";  // none
  if (is_port && is_word(text, "auto")) text = "0";
  if (setting == Setting::maxmemory && bytes_of(text) == 0) return;  // the default stays
  if (setting == Setting::dir) {
    std::error_code failed;
    start_.directory = text = std::filesystem::absolute(text, failed).lexically_normal().string();
  }
  const Status assigned =
      settings_.assign(setting, text, {Origin::Kind::redis_conf, directive.where});
  if (!assigned) fail_value(directive, setting, text, assigned.error().detail);
}

/// CONFIG GET shows a directive without an effect here, unless the directive promises something.
void RedisStartReader::show_setting_of(const Directive& directive, Setting setting,
                                       const std::string& text) {
  const SettingRow& row = row_of(setting);
  const auto parsed = parse_setting(row, text, row.default_text);
  if (!parsed) return fail_value(directive, setting, text, parsed.error().detail);
  if (setting == Setting::save) {  // lines add up, and an empty one removes those before it
    has_save_ = true;
    if (text.empty()) save_points_.clear();
    if (!text.empty()) save_points_.push_back(text);
    return;
  }
  if (check_promise(settings_, setting, *parsed)) {
    show(setting, text);  // may take back an earlier value
    return;
  }
  if (shows_any_value(settings_, setting)) {
    show(setting, text);  // parsed above
    if (setting == Setting::proc_title_template || setting == Setting::set_proc_title) return;
    start_.without_effect.emplace_back(row.redis_names.substr(0, row.redis_names.find(' ')));
    return;
  }
  ignore(directive.where + ": " + std::string{row.redis_names} + " " + shown_value(row, text) +
         ": " + std::string{row.doc});
}

void RedisStartReader::finish() {
  if (has_save_) {
    std::string text;
    for (const std::string& point : save_points_) {
      text.append(text.empty() ? "" : " ").append(point);
    }
    if (!text.empty()) start_.without_effect.emplace_back("save");
    show(Setting::save, text);  // each part was parsed
  }
  std::sort(start_.without_effect.begin(), start_.without_effect.end());
  const auto repeated = std::unique(start_.without_effect.begin(), start_.without_effect.end());
  start_.without_effect.erase(repeated, start_.without_effect.end());
  if (start_.daemonizes && start_.pidfile.empty()) start_.pidfile = "/var/run/redis.pid";
  if (!start_.errors.empty()) return;
  start_.errors = check_together(settings_);
  if (!start_.renames.empty() && settings_.integer(Setting::node_id) != 0) {
    fail(start_.renames.front().where + ": rename-command: the nodes of a group share their log");
  }
}

}  // namespace

RedisStart read_redis_start(std::span<const std::string_view> arguments,
                            const std::function<std::string()>& read_input, Settings& settings) {
  RedisStart start;
  RedisStartReader{start, settings}.read(arguments, read_input);
  return start;
}

}  // namespace semel::net
