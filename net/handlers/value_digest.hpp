// Digests of records, by which two of them can be compared: DEBUG DIGEST and DIGEST-VALUE.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "semel/engine.hpp"

namespace semel::net {

/// All zeros: of nothing. Not a proof against somebody who looks for two values of one digest.
class ValueDigest {
 public:
  using Bits = std::array<std::uint8_t, 20>;

  /// Adds parts whose order counts.
  void follow(std::initializer_list<Bytes> parts);
  /// Adds parts whose order does not count; the same parts twice are as if they were not there.
  void join(std::initializer_list<Bytes> parts);
  [[nodiscard]] const Bits& bits() const noexcept { return bits_; }
  [[nodiscard]] Bytes bytes() const noexcept;

 private:
  Bits bits_{};
};

/// Of the kind and the value, and of whether there is a ttl. Sets, hashes and sorted sets have the
/// same one whatever the order in which they were filled; of a stream, the entries count and not
/// its groups; of a claim, nothing but that it is one. Zeros: there is no record. Errors: of a
/// section, and of reads. Thread-safe. std::bad_alloc.
[[nodiscard]] Result<ValueDigest> digest_of_value(Engine& engine, KeyRef key);

}  // namespace semel::net
