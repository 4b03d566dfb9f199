// Output in the formats of gzip and Zstandard.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::tool {

enum class Compression : std::uint8_t { none, gzip, zstd };

/// The format for the end of a file's name: ".gz", ".zst"; else none.
[[nodiscard]] Compression compression_of(const std::string& path) noexcept;

/// One stream. Not thread-safe.
class Compressor {
 public:
  using Sink = std::function<void(Bytes)>;
  virtual ~Compressor() = default;
  /// Gives the complete part of the stream to `sink`. With `ends` the stream is closed; the next
  /// call begins another one, and both after each other are one to every reader. Error: no memory.
  [[nodiscard]] virtual Status write(Bytes bytes, bool ends, const Sink& sink) = 0;

  /// Null for `none`. Levels are the formats' defaults: 6 for gzip, 3 for Zstandard.
  [[nodiscard]] static std::unique_ptr<Compressor> of(Compression compression);
};

}  // namespace semel::tool
