// Functions that follow changes of settings. Thread-safe.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "net/settings/setting_table.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// Called without arguments after a change: it reads what it needs. See Settings::on_change.
using SettingObserver = std::function<void()>;
/// Makes a change take effect. The detail of an error is the reason for the reply.
using SettingApplier = std::function<Status()>;

class SettingFollowers {
 public:
  /// The appliers of a change, each with the name of its first setting.
  using Appliers = std::vector<std::pair<std::string_view, SettingApplier>>;

  void add(Setting setting, SettingObserver observer);
  void add(std::span<const Setting> settings, SettingApplier applier);

  /// In the order of their addition, each once.
  [[nodiscard]] std::vector<SettingObserver> observers_of(
      std::span<const FoundSetting> found) const;
  [[nodiscard]] Appliers appliers_of(std::span<const FoundSetting> found) const;
  [[nodiscard]] bool has_applier(Setting setting) const;

 private:
  struct Applied {
    std::vector<Setting> settings;
    SettingApplier apply;

    [[nodiscard]] bool is_of(Setting setting) const noexcept;
  };

  mutable base::Mutex mutex_;
  std::vector<std::pair<Setting, SettingObserver>> observers_ SEMEL_GUARDED_BY(mutex_);
  std::vector<Applied> appliers_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::net
