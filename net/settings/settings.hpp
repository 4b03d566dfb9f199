// The settings of a node, and CONFIG GET and CONFIG SET.
//
// Goals: a read on a hot path is one load; a change takes effect as a whole or not at all; each
// value has an origin. Files, flags and the environment are read elsewhere (config_file.hpp,
// flags.hpp), which call assign().
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "net/settings/setting_followers.hpp"
#include "net/settings/setting_forms.hpp"
#include "net/settings/setting_table.hpp"
#include "net/settings/setting_value.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// Where a value came from.
struct Origin {
  enum class Kind : std::uint8_t { builtin, redis_conf, file, environment, flag, config_set };
  Kind kind = Kind::builtin;
  std::string where{};  ///< "path:line", "SEMEL_PORT", "--port"

  /// "default", "semel.toml:3", "SEMEL_PORT", "--port", "CONFIG SET"
  [[nodiscard]] std::string text() const;
};

class Settings {
 public:
  using Observer = SettingObserver;
  using Applier = SettingApplier;
  using NamedText = std::pair<std::string, std::string>;
  using NamedView = std::pair<std::string_view, std::string_view>;

  Settings();  ///< everything at its default
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  // --- reads for code; from any thread ------------------------------------------------------

  /// Of an integer, of bytes, of a duration in its unit, of a choice the index of its word.
  [[nodiscard]] std::int64_t integer(Setting setting) const noexcept {
    // mo: relaxed: a number stands for itself; on_change() reports each change.
    return numbers_[index_of(setting)].load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool boolean(Setting setting) const noexcept { return integer(setting) != 0; }
  /// The word of a choice, as an enumeration in the order of the table's words.
  template <class Enum>
  [[nodiscard]] Enum choice(Setting setting) const noexcept {
    return static_cast<Enum>(integer(setting));
  }
  /// Of a duration; a negative one means what the table says. At most 2^63 - 1 us.
  [[nodiscard]] std::chrono::microseconds duration(Setting setting) const noexcept;
  /// Of any type, as CONFIG GET shows it. A copy, under a lock.
  /// Of one of Redis' settings that has one value: that value.
  [[nodiscard]] std::string text(Setting setting) const;
  [[nodiscard]] std::vector<std::string> list(Setting setting) const;
  [[nodiscard]] OutputLimits output_limits() const;
  [[nodiscard]] std::uint32_t event_classes() const;  ///< of EventClass
  [[nodiscard]] SettingValue value(Setting setting) const;
  [[nodiscard]] Origin origin(Setting setting) const;

  // --- CONFIG GET and CONFIG SET ------------------------------------------------------------

  /// What matches any of the globs, each name once: under Redis' names, also older ones, and under
  /// our own what Redis has no name for. A name without a wildcard finds both, and is answered as
  /// it was written.
  [[nodiscard]] std::vector<NamedText> get(std::span<const std::string_view> globs) const;

  /// Changes all of them or, with an error, none; the detail is the whole reply. Refuses what
  /// check_together() does, so that a start takes what this takes. Then calls the
  /// observers of each, in this thread, without a lock. Also for an unchanged value: naming a file
  /// again reads it again.
  [[nodiscard]] Status set(std::span<const NamedView> pairs);

  /// `observer` is called after each successful set() of `setting`, perhaps by several threads at
  /// once, and then reads at least as new a value. It may read and set. It is kept for as long as
  /// this lives.
  void on_change(Setting setting, Observer observer) {
    followers_.add(setting, std::move(observer));
  }
  /// `applier` is called once in each set() that has one of `settings`, before any observer, by one
  /// thread at a time; it reads the new values. If it fails, set() restores all values, asks the
  /// appliers that came before it again, and fails with its error. It must not set. It is kept for
  /// as long as this lives.
  void apply_with(std::span<const Setting> settings, Applier applier) {
    followers_.add(settings, std::move(applier));
  }

  // --- the start ----------------------------------------------------------------------------

  /// Changes any setting, also those that CONFIG SET cannot change. Calls no observer. The detail
  /// of an error is the reason against `text`. The settings that true_text() reads are assigned
  /// first. With the origin CONFIG SET it takes the values that CONFIG SET takes, for a node that
  /// stands in for redis-server.
  [[nodiscard]] Status assign(Setting setting, std::string_view text, Origin origin);

 private:
  struct Blank {};
  explicit Settings(Blank) {}  ///< no values yet: for a copy
  [[nodiscard]] static constexpr std::size_t index_of(Setting setting) noexcept {
    return static_cast<std::size_t>(setting);
  }
  [[nodiscard]] SettingValue value_locked(Setting setting) const SEMEL_REQUIRES(mutex_);
  struct Before {
    Setting setting;
    SettingValue value;
    Origin origin;
  };
  /// set() but for the observers. Under applying_ if any applier is asked.
  [[nodiscard]] Status change(std::span<const NamedView> pairs, std::span<const FoundSetting> found,
                              const SettingFollowers::Appliers& appliers);
  void restore(std::vector<Before>&& before);
  [[nodiscard]] Status change_locked(std::span<const NamedView> pairs,
                                     std::span<const FoundSetting> found) SEMEL_REQUIRES(mutex_);
  /// Refuses `values` if they contradict others, or each other.
  [[nodiscard]] Status check_locked(std::span<const FoundSetting> found,
                                    std::span<const SettingValue> values) const
      SEMEL_REQUIRES(mutex_);
  void copy_locked(Settings& to) const SEMEL_REQUIRES(mutex_);
  void store_locked(Setting setting, SettingValue value, Origin origin) SEMEL_REQUIRES(mutex_);

  // mo: relaxed throughout: written under mutex_, read without it; stale for as long as a store
  // takes to arrive, which a client cannot tell from having asked a moment earlier.
  std::array<std::atomic<std::int64_t>, setting_count> numbers_{};
  mutable base::Mutex mutex_;
  std::array<std::string, setting_count> texts_ SEMEL_GUARDED_BY(mutex_);
  std::array<Origin, setting_count> origins_ SEMEL_GUARDED_BY(mutex_);
  SettingFollowers followers_;
  base::Mutex applying_;  // before mutex_; held while an applier is asked
};

/// The one value of one of Redis' settings (has_one_value) that is true of this node. It depends on
/// storage-enabled, durability and node-id.
[[nodiscard]] std::string true_text(const Settings& settings, Setting setting);
/// Whether CONFIG SET takes each value of the setting and CONFIG GET shows it: not of one that has
/// one value, unless the node stands in for redis-server and no promise is lost.
[[nodiscard]] bool shows_any_value(const Settings& settings, Setting setting);
/// Refuses a value that promises what this node does not do. The detail of an error is what to do
/// instead, without the name and the value.
[[nodiscard]] Status check_promise(const Settings& settings, Setting setting,
                                   const SettingValue& value);

/// Which settings contradict each other: a line for the operator each. Of each start, and of each
/// Settings::set().
[[nodiscard]] std::vector<std::string> check_together(const Settings& settings);

}  // namespace semel::net
