#include "net/settings/settings.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "base/ascii.hpp"
#include "base/checked.hpp"
#include "net/resp/reply_error.hpp"
#include "net/resp/text.hpp"
#include "semel/store.hpp"

namespace semel::net {
namespace {

Error failed(std::string_view name, std::string_view reason) {
  return reply_error("ERR CONFIG SET failed (possibly related to argument '" + std::string{name} +
                     "') - " + std::string{reason});
}

/// The settings of the names, all of which can be changed.
Result<std::vector<FoundSetting>> find_changeable(std::span<const Settings::NamedView> pairs) {
  std::vector<FoundSetting> found;
  std::set<std::string_view> names;
  for (const auto& [name, text] : pairs) {
    const auto setting = find_setting(name);
    if (!setting) {
      return reply_error("ERR Unknown option or number of arguments for CONFIG SET - '" +
                         std::string{name} + "'");
    }
    const SettingRow& row = row_of(setting->setting);
    if (row.is_protected()) return failed(setting->name, "can't set protected config");
    if (!row.changes_at_run_time()) return failed(setting->name, "can't set immutable config");
    if (!names.insert(setting->name).second) return failed(setting->name, "duplicate parameter");
    found.push_back(*setting);
  }
  return found;
}

}  // namespace

std::string Origin::text() const {
  switch (kind) {
    case Kind::builtin:
      return "default";
    case Kind::config_set:
      return "CONFIG SET";
    case Kind::redis_conf:
    case Kind::file:
    case Kind::environment:
    case Kind::flag:
      break;
  }
  return where;
}

Settings::Settings() {
  for (std::size_t i = 0; i < setting_count; ++i) {
    const auto setting = static_cast<Setting>(i);
    const SettingRow& row = row_of(setting);
    store_locked(setting, parse_setting(row, row.default_text, {}).value(), {});
  }
}

std::chrono::microseconds Settings::duration(Setting setting) const noexcept {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::string_view unit = row_of(setting).detail;
  const std::int64_t size = unit == "s" ? 1'000'000 : unit == "ms" ? 1'000 : 1;
  const std::int64_t count = integer(setting);
  return std::chrono::microseconds{base::checked_mul(count, size).value_or(most)};
}

SettingValue Settings::value_locked(Setting setting) const {
  return {.number = integer(setting), .text = texts_[index_of(setting)]};
}

SettingValue Settings::value(Setting setting) const {
  const base::MutexLock lock{mutex_};
  return value_locked(setting);
}

std::string Settings::text(Setting setting) const {
  return show_setting(row_of(setting), value(setting));
}

std::vector<std::string> Settings::list(Setting setting) const {
  const std::string words = text(setting);
  std::vector<std::string> list;
  for (const std::string_view word : words_of(words)) list.emplace_back(word);
  return list;
}

OutputLimits Settings::output_limits() const {
  return output_limits_of(text(Setting::client_output_buffer_limit));
}

std::uint32_t Settings::event_classes() const {
  return event_classes_of(text(Setting::notify_keyspace_events)).value_or(0);
}

Origin Settings::origin(Setting setting) const {
  const base::MutexLock lock{mutex_};
  return origins_[index_of(setting)];
}

std::vector<Settings::NamedText> Settings::get(std::span<const std::string_view> globs) const {
  std::vector<NamedText> answer;
  std::set<std::string, std::less<>> seen;
  const auto add = [&](std::string_view name, Setting setting) {
    if (seen.emplace(name).second) answer.emplace_back(name, text(setting));
  };
  for (const std::string_view glob : globs) {
    if (glob.find_first_of("[*?") == std::string_view::npos) {
      if (const auto found = find_setting(glob)) add(glob, found->setting);
      continue;
    }
    const std::string small = base::lower_of(glob);
    for (std::size_t i = 0; i < setting_count; ++i) {
      const auto setting = static_cast<Setting>(i);
      const SettingRow& row = row_of(setting);
      for (const std::string_view name :
           words_of(row.redis_names.empty() ? row.name : row.redis_names)) {
        if (glob_match(small, name)) add(name, setting);
      }
    }
  }
  return answer;
}

Status Settings::set(std::span<const NamedView> pairs) {
  SEMEL_TRY(found, find_changeable(pairs));
  const Asked asked = appliers_of(found);
  std::vector<Observer> to_notify;
  if (asked.empty()) {
    SEMEL_CHECK(change(pairs, found, asked, to_notify));
  } else {
    const base::MutexLock applying{applying_};
    SEMEL_CHECK(change(pairs, found, asked, to_notify));
  }
  for (const Observer& observer : to_notify) observer();  // without a lock: an observer may set
  return Done{};
}

Status Settings::change(std::span<const NamedView> pairs, std::span<const FoundSetting> found,
                        const Asked& asked, std::vector<Observer>& to_notify) {
  std::vector<Before> before;
  {
    const base::MutexLock lock{mutex_};
    for (const FoundSetting& changed : found) {
      before.push_back(
          {changed.setting, value_locked(changed.setting), origins_[index_of(changed.setting)]});
    }
    SEMEL_CHECK(change_locked(pairs, found));
    for (const auto& [setting, observer] : observers_) {
      for (const FoundSetting& changed : found) {
        if (changed.setting != setting) continue;
        to_notify.push_back(observer);
        break;  // two names of one setting are one change
      }
    }
  }
  for (const auto& [name, apply] : asked) {
    const Status applied = apply();
    if (applied) continue;
    restore(std::move(before));
    return failed(name, applied.error().detail);
  }
  return Done{};
}

Settings::Asked Settings::appliers_of(std::span<const FoundSetting> found) const {
  Asked asked;
  const base::MutexLock lock{mutex_};
  for (const Applied& applied : appliers_) {
    const auto is_its = [&](const FoundSetting& changed) {
      return std::find(applied.settings.begin(), applied.settings.end(), changed.setting) !=
             applied.settings.end();
    };
    const auto first = std::find_if(found.begin(), found.end(), is_its);
    if (first != found.end()) asked.emplace_back(first->name, applied.apply);
  }
  return asked;
}

void Settings::restore(std::vector<Before>&& before) {
  const base::MutexLock lock{mutex_};
  for (Before& one : before) {
    store_locked(one.setting, std::move(one.value), std::move(one.origin));
  }
}

namespace {

/// Refuses a value of a setting without effect that promises what the node does not do. The default
/// promises nothing. Where data is kept anyway, a value that asks for that is accepted.
Status check_promise(const SettingRow& row, Setting setting, const SettingValue& value,
                     bool keeps_data) {
  const auto refused = [](const char* reason) { return Error{ErrorCode::bad_option, reason}; };
  if (!row.is_without_effect() || show_setting(row, value) == row.default_text) return Done{};
  switch (setting) {
    case Setting::maxmemory_policy:
      return refused(
          "nothing is evicted: the only value is noeviction, and a full node refuses writes");
    case Setting::min_replicas_to_write:
      return refused("writes do not wait for replicas: the only value is 0");
    case Setting::appendonly:
    case Setting::save:
      if (keeps_data) return Done{};
      return refused(
          "nothing is kept on disk: storage-enabled, dir and durability, given at start, do that");
    case Setting::appendfsync:
      return refused("when the log is synced is up to durability and sync-every, given at start");
    default:
      return Done{};
  }
}

}  // namespace

Status Settings::change_locked(std::span<const NamedView> pairs,
                               std::span<const FoundSetting> found) {
  std::vector<SettingValue> values;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const SettingRow& row = row_of(found[i].setting);
    const std::string_view present = texts_[index_of(found[i].setting)];
    Result<SettingValue> parsed = parse_setting(row, pairs[i].second, present);
    if (!parsed) return failed(found[i].name, parsed.error().detail);
    const bool keeps_data = integer(Setting::storage_enabled) != 0;
    const Status promise = check_promise(row, found[i].setting, *parsed, keeps_data);
    if (!promise) return failed(found[i].name, promise.error().detail);
    values.push_back(*std::move(parsed));
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (row_of(found[i].setting).keeps_default()) continue;
    store_locked(found[i].setting, std::move(values[i]), {.kind = Origin::Kind::config_set});
  }
  return Done{};
}

void Settings::store_locked(Setting setting, SettingValue value, Origin origin) {
  // mo: relaxed: see numbers_.
  numbers_[index_of(setting)].store(value.number, std::memory_order_relaxed);
  texts_[index_of(setting)] = std::move(value.text);
  origins_[index_of(setting)] = std::move(origin);
}

void Settings::on_change(Setting setting, Observer observer) {
  const base::MutexLock lock{mutex_};
  observers_.emplace_back(setting, std::move(observer));
}

void Settings::apply_with(std::span<const Setting> settings, Applier applier) {
  const base::MutexLock lock{mutex_};
  appliers_.push_back({{settings.begin(), settings.end()}, std::move(applier)});
}

Status Settings::assign(Setting setting, std::string_view text, Origin origin) {
  const SettingRow& row = row_of(setting);
  const base::MutexLock lock{mutex_};
  SEMEL_TRY(value, parse_setting(row, text, texts_[index_of(setting)]));
  if (!row.keeps_default()) store_locked(setting, std::move(value), std::move(origin));
  return Done{};
}

}  // namespace semel::net
