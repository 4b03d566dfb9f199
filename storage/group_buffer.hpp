// Mutations on their way to the disk: the group that is being filled, apart by when they end.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "storage/mutation_codec.hpp"

namespace semel::storage {

/// Names the stretch of the time line at whose end a mutation may be forgotten.
using SpanNumber = std::uint64_t;
inline constexpr SpanNumber span_never = std::numeric_limits<SpanNumber>::max();

[[nodiscard]] inline SpanNumber span_of(Timestamp keep_until, const TimeLine& line,
                                        Millis span) noexcept {
  if (keep_until == no_end) return span_never;
  return line.to_line(keep_until) / static_cast<std::uint64_t>(span.count()) + 1;
}

class GroupBuffer {
 public:
  void add(const Mutation& mutation, const TimeLine& line, Millis span, Timestamp now) {
    std::string& bytes = parts_[span_of(mutation.keep_until, line, span)];
    const std::size_t before = bytes.size();
    encode(mutation, line, now, bytes);
    bytes_ += bytes.size() - before;
    ++mutations_;
  }

  [[nodiscard]] bool empty() const noexcept { return mutations_ == 0; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t mutations() const noexcept { return mutations_; }
  [[nodiscard]] const std::map<SpanNumber, std::string>& parts() const noexcept { return parts_; }

 private:
  // Policies have few ttls, but callers may have any: a search must not grow with their number.
  std::map<SpanNumber, std::string> parts_;
  std::size_t bytes_ = 0;
  std::uint64_t mutations_ = 0;
};

}  // namespace semel::storage
