// How long things take: a count that only goes on, apart from the engine's clock, which tests hold
// still and replicas share.
#pragma once

#include <cstdint>

namespace semel::net {

class TickSource {
 public:
  virtual ~TickSource() = default;
  /// Nanoseconds since a zero of its own.
  [[nodiscard]] virtual std::int64_t ns() const noexcept = 0;
};

class SystemTicks final : public TickSource {
 public:
  [[nodiscard]] std::int64_t ns() const noexcept override;
};

}  // namespace semel::net
