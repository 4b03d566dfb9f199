#include "tools/semel/shared/units.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <iterator>

#include "semel/limits.hpp"

namespace semel::tool {
namespace {

struct Unit {
  Bytes name;
  std::uint64_t factor;
};

constexpr Unit time_units[] = {
    {"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};

constexpr Unit size_units[] = {
    {"", 1},
    {"B", 1},
    {"K", std::uint64_t{1} << 10},
    {"KiB", std::uint64_t{1} << 10},
    {"M", std::uint64_t{1} << 20},
    {"MiB", std::uint64_t{1} << 20},
    {"G", std::uint64_t{1} << 30},
    {"GiB", std::uint64_t{1} << 30},
    {"T", std::uint64_t{1} << 40},
    {"TiB", std::uint64_t{1} << 40},
    {"kB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
};

enum class Parsed { ok, malformed, too_large };

template <std::size_t count>
Parsed parse_with_unit(Bytes text, const Unit (&units)[count], std::uint64_t& out) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) return Parsed::too_large;
  if (error != std::errc{}) return Parsed::malformed;
  const Bytes suffix{end, static_cast<std::size_t>(text.data() + text.size() - end)};
  const Unit* unit = std::find_if(std::begin(units), std::end(units),
                                  [&](const Unit& each) { return each.name == suffix; });
  if (unit == std::end(units)) return Parsed::malformed;
  if (number > UINT64_MAX / unit->factor) return Parsed::too_large;
  out = number * unit->factor;
  return Parsed::ok;
}

/// The control group's limit, or no limit. Version 2 only; version 1 hosts get the machine's.
std::uint64_t control_group_bytes() {
  std::FILE* file = std::fopen("/sys/fs/cgroup/memory.max", "re");
  if (file == nullptr) return UINT64_MAX;
  std::array<char, 32> text{};
  const std::size_t size = std::fread(text.data(), 1, text.size() - 1, file);
  std::fclose(file);
  std::uint64_t bytes = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + size, bytes);
  return parsed.ec == std::errc{} && bytes > 0 ? bytes : UINT64_MAX;
}

}  // namespace

Result<Millis> parse_window(Bytes text) {
  constexpr auto max = static_cast<std::uint64_t>(limits::ttl_max.count());
  std::uint64_t ms = 0;
  const Parsed parsed = parse_with_unit(text, time_units, ms);
  if (parsed == Parsed::malformed) {
    return Error{
        ErrorCode::bad_option,
        fmt::format("'{}' is not a window: write a whole number and one of ms, s, m, h, d, "
                    "such as 24h",
                    text)};
  }
  if (parsed == Parsed::too_large || ms < 1 || ms > max) {
    return Error{ErrorCode::bad_option,
                 fmt::format("window '{}' is out of range: 1ms to {}d", text, max / 86'400'000)};
  }
  return Millis{static_cast<std::int64_t>(ms)};
}

Result<std::size_t> parse_size(Bytes text) {
  std::uint64_t bytes = 0;
  const Parsed parsed = parse_with_unit(text, size_units, bytes);
  if (parsed == Parsed::malformed) {
    return Error{ErrorCode::bad_option,
                 fmt::format("'{}' is not a size: write a whole number and one of KiB, MiB, GiB, "
                             "such as 4GiB",
                             text)};
  }
  if (parsed == Parsed::too_large) {
    return Error{ErrorCode::bad_option, fmt::format("'{}' is more than 64 bits can hold", text)};
  }
  return static_cast<std::size_t>(bytes);
}

Result<std::size_t> parse_memory(Bytes text) {
  std::uint64_t bytes = 0;
  const Parsed parsed = parse_with_unit(text, size_units, bytes);
  if (parsed == Parsed::malformed) return parse_size(text);
  if (parsed == Parsed::too_large || bytes < limits::memory_bytes_min ||
      bytes > limits::memory_bytes_max) {
    return Error{ErrorCode::bad_option, fmt::format("memory '{}' is out of range: {} to {}", text,
                                                    format_bytes(limits::memory_bytes_min),
                                                    format_bytes(limits::memory_bytes_max))};
  }
  return static_cast<std::size_t>(bytes);
}

std::string format_bytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> names{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < names.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, names[unit]);
}

std::string format_count(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t from_end = 3; from_end < text.size(); from_end += 4) {
    text.insert(text.size() - from_end, 1, ',');
  }
  return text;
}

std::string format_rate(double per_second) {
  if (per_second >= 1e6) return fmt::format("{:.2f} M", per_second / 1e6);
  if (per_second >= 1e4) return fmt::format("{:.1f} k", per_second / 1e3);
  return fmt::format("{:.0f}", per_second);
}

std::size_t default_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  std::uint64_t machine = limits::memory_bytes_default * 2;
  if (pages > 0 && page_bytes > 0) {
    machine = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
  }
  const std::uint64_t half = std::min(machine, control_group_bytes()) / 2;
  return std::clamp(static_cast<std::size_t>(half), limits::memory_bytes_min,
                    limits::memory_bytes_max);
}

std::uint64_t peak_resident_bytes() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace semel::tool
