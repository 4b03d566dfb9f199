// The rows of settings.def, and how a setting is found by what it is called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace semel::net {

enum class Setting : std::uint16_t {
#define X(id, redis, section, type, value, low, high, flags, detail, doc) id,
#include "net/settings/settings.def"
#undef X
};

inline constexpr std::size_t setting_count = 0
#define X(id, redis, section, type, value, low, high, flags, detail, doc) +1
#include "net/settings/settings.def"
#undef X
    ;

/// What a node does without if it is asked for another value of one of Redis' settings than the one
/// that is true here. A program that stands in for redis-server may go on after `speed` or `disk`.
enum class Loss : std::uint8_t { none, speed, disk, promise };

enum class SettingType : std::uint8_t { boolean, integer, bytes, duration, text, choice, list };

struct SettingRow {
  std::string_view name;
  std::string_view redis_names;  ///< the present one, then older ones; empty: none
  std::string_view section;
  SettingType type;
  std::string_view default_text;  ///< as CONFIG GET shows it
  std::int64_t low;
  std::int64_t high;
  std::string_view flags;
  std::string_view detail;
  std::string_view doc;

  [[nodiscard]] constexpr bool is(char flag) const noexcept {
    return flags.find(flag) != std::string_view::npos;
  }
  [[nodiscard]] constexpr bool changes_at_run_time() const noexcept { return is('r'); }
  /// A change takes effect by an applier (Settings::apply_with); without one it is refused.
  [[nodiscard]] constexpr bool needs_applier() const noexcept { return is('a'); }
  [[nodiscard]] constexpr bool is_protected() const noexcept { return is('p'); }
  [[nodiscard]] constexpr bool is_secret() const noexcept { return is('s'); }
  /// Of Redis only: one value is true here, which is shown, and any other is refused.
  [[nodiscard]] constexpr bool has_one_value() const noexcept { return is('c'); }
  [[nodiscard]] constexpr Loss loss() const noexcept {
    return is('q') ? Loss::speed : is('d') ? Loss::disk : is('x') ? Loss::promise : Loss::none;
  }
  [[nodiscard]] constexpr bool is_number() const noexcept {
    return type != SettingType::text && type != SettingType::list;
  }
};

/// In the order of Setting.
[[nodiscard]] std::span<const SettingRow> all_settings() noexcept;
[[nodiscard]] const SettingRow& row_of(Setting setting) noexcept;

struct FoundSetting {
  Setting setting;
  std::string_view name;  ///< the one of its names that was asked for, as the table writes it
};

/// By its own name or one of Redis', in any case of letters.
[[nodiscard]] std::optional<FoundSetting> find_setting(std::string_view name);
/// By one of Redis' names only.
[[nodiscard]] std::optional<FoundSetting> find_redis_setting(std::string_view name);

/// A word of redis.conf that is no setting and is refused.
struct RefusedWord {
  std::string_view word;
  std::string_view reason;
};
[[nodiscard]] std::span<const RefusedWord> refused_words() noexcept;
/// The reason why the word is refused; empty: it is none of these.
[[nodiscard]] std::string_view reason_against(std::string_view word);

/// Each section once, in the order of the table.
[[nodiscard]] std::vector<std::string_view> all_sections();

/// The one of `names` that is most like `name`; empty: none is like it.
[[nodiscard]] std::string_view nearest_of(std::string_view name,
                                          std::span<const std::string_view> names);
/// The own name of the setting that may be meant by `name`: that of Redis' name, or the nearest.
[[nodiscard]] std::string_view nearest_setting(std::string_view name);

/// The words of `text` between blanks, as views into it.
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view text);

}  // namespace semel::net
