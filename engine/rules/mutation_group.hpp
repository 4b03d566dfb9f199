// The mutations of an atomic section until they leave as one group, with their bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "semel/claim_fields.hpp"
#include "semel/journal.hpp"

namespace semel::engine {

/// Room is made before a change is visible, so that noting it cannot fail afterwards. Belongs to
/// one thread.
class MutationGroup {
 public:
  /// Room for `records` more mutations with `bytes` altogether: keys, values, results, owners.
  /// std::bad_alloc, and nothing is lost.
  void reserve(std::size_t bytes, std::size_t records) {
    if (room_ < bytes) {
      if (chunks_.size() == chunks_.capacity()) chunks_.reserve(chunks_.size() * 2 + 4);
      const std::size_t size = std::max(bytes, chunk_bytes);
      chunks_.push_back(std::make_unique_for_overwrite<char[]>(size));
      next_ = chunks_.back().get();
      room_ = size;
    }
    if (mutations_.capacity() - mutations_.size() >= records) return;
    mutations_.reserve(mutations_.size() + std::max(records, mutations_.size() + 4));
  }
  /// What reserve() has made room for.
  void add(const Mutation& mutation) noexcept {
    Mutation& kept = mutations_.emplace_back(mutation);
    kept.key = keep(mutation.key);
    if (kept.claim) {
      for (const ClaimText& text : claim_texts) {
        (*kept.claim).*text.field = keep((*mutation.claim).*text.field);
      }
    } else {
      kept.value = keep(mutation.value);
      kept.trail = keep(mutation.trail);
    }
  }
  /// What add() needs of a mutation.
  [[nodiscard]] static std::size_t bytes_of(const Mutation& mutation) noexcept {
    if (!mutation.claim) return mutation.key.size() + mutation.value.size() + mutation.trail.size();
    std::size_t bytes = mutation.key.size();
    for (const ClaimText& text : claim_texts) bytes += ((*mutation.claim).*text.field).size();
    return bytes;
  }
  [[nodiscard]] std::span<const Mutation> mutations() const noexcept { return mutations_; }

 private:
  static constexpr std::size_t chunk_bytes = 1024;

  [[nodiscard]] Bytes keep(Bytes bytes) noexcept {
    if (bytes.empty()) return {};
    if (bytes.size() > room_) std::abort();  // no make_room(): it would write past the end
    std::memcpy(next_, bytes.data(), bytes.size());
    const Bytes kept{next_, bytes.size()};
    next_ += bytes.size();
    room_ -= bytes.size();
    return kept;
  }

  std::vector<Mutation> mutations_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* next_ = nullptr;
  std::size_t room_ = 0;  // after next_
};

}  // namespace semel::engine
