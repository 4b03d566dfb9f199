// Numbers with units, as people write and read them: windows, sizes, counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::tool {

/// "250ms", "30s", "15m", "24h", "7d". Errors: bad_option, naming the value and the range.
[[nodiscard]] Result<Millis> parse_window(Bytes text);

/// "1073741824", "512MiB", "4G" (binary), "4GB" (decimal). Errors: bad_option.
[[nodiscard]] Result<std::size_t> parse_memory(Bytes text);

/// The same without limits.
[[nodiscard]] Result<std::size_t> parse_size(Bytes text);

/// "1.50 GiB"
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);
/// "12,345,678"
[[nodiscard]] std::string format_count(std::uint64_t count);
/// "2.75 M", for rates
[[nodiscard]] std::string format_rate(double per_second);

/// Half of what the machine (or the control group this process is in) has.
[[nodiscard]] std::size_t default_memory_bytes();

/// Largest resident size of this process so far.
[[nodiscard]] std::uint64_t peak_resident_bytes();

}  // namespace semel::tool
