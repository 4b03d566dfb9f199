#include "net/settings/settings.hpp"

#include <algorithm>
#include <limits>
#include <memory>
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
  const SettingRow& row = row_of(setting);
  const bool is_shown = !row.has_one_value() || origin(setting).kind == Origin::Kind::config_set;
  return is_shown ? show_setting(row, value(setting)) : true_text(*this, setting);
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
      if (row.is('h')) continue;
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
  for (const FoundSetting& changed : found) {
    if (!row_of(changed.setting).needs_applier() || followers_.has_applier(changed.setting)) {
      continue;
    }
    return failed(changed.name, "this process cannot change it while it runs");
  }
  const SettingFollowers::Appliers appliers = followers_.appliers_of(found);
  if (appliers.empty()) {
    SEMEL_CHECK(change(pairs, found, appliers));
  } else {
    const base::MutexLock applying{applying_};
    SEMEL_CHECK(change(pairs, found, appliers));
  }
  // Without a lock: an observer may set.
  for (const Observer& observer : followers_.observers_of(found)) observer();
  return Done{};
}

Status Settings::change(std::span<const NamedView> pairs, std::span<const FoundSetting> found,
                        const SettingFollowers::Appliers& appliers) {
  std::vector<Before> before;
  {
    const base::MutexLock lock{mutex_};
    for (const FoundSetting& changed : found) {
      before.push_back(
          {changed.setting, value_locked(changed.setting), origins_[index_of(changed.setting)]});
    }
    SEMEL_CHECK(change_locked(pairs, found));
  }
  for (std::size_t i = 0; i < appliers.size(); ++i) {
    const Status applied = appliers[i].second();
    if (applied) continue;
    restore(std::move(before));
    // The appliers that were asked before read the former values, and so undo their part.
    for (std::size_t done = 0; done < i; ++done) static_cast<void>(appliers[done].second());
    return failed(appliers[i].first, applied.error().detail);
  }
  return Done{};
}

void Settings::restore(std::vector<Before>&& before) {
  const base::MutexLock lock{mutex_};
  for (Before& one : before) {
    store_locked(one.setting, std::move(one.value), std::move(one.origin));
  }
}

Status Settings::change_locked(std::span<const NamedView> pairs,
                               std::span<const FoundSetting> found) {
  std::vector<SettingValue> values;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const SettingRow& row = row_of(found[i].setting);
    const std::string_view present = texts_[index_of(found[i].setting)];
    Result<SettingValue> parsed = parse_setting(row, pairs[i].second, present);
    if (!parsed) return failed(found[i].name, parsed.error().detail);
    const Status promise = shows_any_value(*this, found[i].setting)
                               ? Status{Done{}}
                               : check_promise(*this, found[i].setting, *parsed);
    if (!promise) {
      return failed(found[i].name,
                    shown_value(row, pairs[i].second) + ' ' + promise.error().detail);
    }
    values.push_back(*std::move(parsed));
  }
  SEMEL_CHECK(check_locked(found, values));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!shows_any_value(*this, found[i].setting)) continue;
    store_locked(found[i].setting, std::move(values[i]), {.kind = Origin::Kind::config_set});
  }
  return Done{};
}

Status Settings::check_locked(std::span<const FoundSetting> found,
                              std::span<const SettingValue> values) const {
  const std::unique_ptr<Settings> trial{new Settings{Blank{}}};  // too large for a fibre's stack
  copy_locked(*trial);
  // Errors that existed before do not refuse this change.
  const std::vector<std::string> before = check_together(*trial);
  std::vector<Before> changed;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (row_of(found[i].setting).has_one_value()) continue;
    changed.push_back({found[i].setting, values[i], {.kind = Origin::Kind::config_set}});
  }
  trial->restore(std::move(changed));
  for (const std::string& error : check_together(*trial)) {
    if (std::find(before.begin(), before.end(), error) == before.end()) {
      return failed(found.front().name, error);
    }
  }
  return Done{};
}

void Settings::copy_locked(Settings& to) const {
  const base::MutexLock lock{to.mutex_};
  for (std::size_t i = 0; i < setting_count; ++i) {
    const auto setting = static_cast<Setting>(i);
    to.store_locked(setting, value_locked(setting), origins_[i]);
  }
}

void Settings::store_locked(Setting setting, SettingValue value, Origin origin) {
  // mo: relaxed: see numbers_.
  numbers_[index_of(setting)].store(value.number, std::memory_order_relaxed);
  texts_[index_of(setting)] = std::move(value.text);
  origins_[index_of(setting)] = std::move(origin);
}

Status Settings::assign(Setting setting, std::string_view text, Origin origin) {
  const SettingRow& row = row_of(setting);
  const base::MutexLock lock{mutex_};
  SEMEL_TRY(value, parse_setting(row, text, texts_[index_of(setting)]));
  const bool is_only_shown = row.has_one_value() && origin.kind == Origin::Kind::config_set &&
                             shows_any_value(*this, setting);
  if (!is_only_shown) SEMEL_CHECK(check_promise(*this, setting, value));
  if (is_only_shown || !row.has_one_value()) {
    store_locked(setting, std::move(value), std::move(origin));
  }
  return Done{};
}

}  // namespace semel::net
