// Repeated keys of one batch of claims.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/claims/claim_calls.hpp"
#include "semel/claim.hpp"

namespace semel::engine {

/// Finds repeated keys of a batch: open addressing over the engine's own keyed hash, so that
/// chosen keys cannot make it slow. An invalid request is never the first of its key.
class FoldTable {
 public:
  FoldTable(const ClaimContext& context, std::span<const ClaimRequest> requests)
      : context_(context), requests_(requests) {
    std::size_t slots = small_.size();
    while (slots < requests.size() * 2) slots *= 2;
    if (slots > small_.size()) large_.resize(slots);
    slots_ = slots > small_.size() ? std::span<std::uint32_t>{large_} : std::span{small_};
  }
  FoldTable(const FoldTable&) = delete;
  FoldTable& operator=(const FoldTable&) = delete;

  /// The first valid request with the key of request `index`; none if that is `index` itself.
  [[nodiscard]] std::optional<std::size_t> first_of(std::size_t index) {
    const Bytes key = requests_[index].key;
    if (!is_valid(requests_[index])) return std::nullopt;
    const std::size_t mask = slots_.size() - 1;
    const std::uint64_t bits = context_.impl.core().keys().hash_of(0, key).bits;
    for (std::size_t at = bits & mask;; at = (at + 1) & mask) {
      if (slots_[at] == 0) {
        slots_[at] = static_cast<std::uint32_t>(index + 1);
        return std::nullopt;
      }
      const std::size_t first = slots_[at] - 1;
      if (requests_[first].key == key) return first;
    }
  }

 private:
  [[nodiscard]] bool is_valid(const ClaimRequest& request) const {
    return check(request) == ErrorCode::ok && !context_.is_closed_session(request);
  }

  const ClaimContext& context_;
  std::span<const ClaimRequest> requests_;
  std::span<std::uint32_t> slots_;  // index + 1; 0: free
  std::array<std::uint32_t, 64> small_{};
  std::vector<std::uint32_t> large_;
};

}  // namespace semel::engine
