#include "net/settings/setting_followers.hpp"

#include <algorithm>

namespace semel::net {

bool SettingFollowers::Applied::is_of(Setting setting) const noexcept {
  return std::find(settings.begin(), settings.end(), setting) != settings.end();
}

void SettingFollowers::add(Setting setting, SettingObserver observer) {
  const base::MutexLock lock{mutex_};
  observers_.emplace_back(setting, std::move(observer));
}

void SettingFollowers::add(std::span<const Setting> settings, SettingApplier applier) {
  const base::MutexLock lock{mutex_};
  appliers_.push_back({{settings.begin(), settings.end()}, std::move(applier)});
}

std::vector<SettingObserver> SettingFollowers::observers_of(
    std::span<const FoundSetting> found) const {
  std::vector<SettingObserver> observers;
  const base::MutexLock lock{mutex_};
  for (const auto& [setting, observer] : observers_) {
    // Two names of one setting are one change.
    const bool is_changed =
        std::any_of(found.begin(), found.end(),
                    [of = setting](const FoundSetting& changed) { return changed.setting == of; });
    if (is_changed) observers.push_back(observer);
  }
  return observers;
}

SettingFollowers::Appliers SettingFollowers::appliers_of(
    std::span<const FoundSetting> found) const {
  Appliers appliers;
  const base::MutexLock lock{mutex_};
  for (const Applied& applied : appliers_) {
    const auto first = std::find_if(found.begin(), found.end(), [&](const FoundSetting& changed) {
      return applied.is_of(changed.setting);
    });
    if (first != found.end()) appliers.emplace_back(first->name, applied.apply);
  }
  return appliers;
}

bool SettingFollowers::has_applier(Setting setting) const {
  const base::MutexLock lock{mutex_};
  return std::any_of(appliers_.begin(), appliers_.end(),
                     [&](const Applied& applied) { return applied.is_of(setting); });
}

}  // namespace semel::net
