// Writes a record in three steps; a killed process leaves the first ones (log_record.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/assert.hpp"
#include "storage/log/log_record.hpp"
#include "storage/log/segment.hpp"

namespace semel::storage {

class RecordWriter {
 public:
  /// Writes the head.
  RecordWriter(Segment& segment, LogOffset offset, RecordType type, RecordShape shape) noexcept
      : segment_(segment),
        offset_(offset),
        at_(segment.at(offset)),
        head_(segment.salt(), offset, type, shape) {
    SEMEL_ASSERT(offset % record_unit == 0);
    SEMEL_ASSERT(offset >= segment.begin() + segment_header_bytes);
    SEMEL_ASSERT(offset + shape.bytes() <= segment.end());
    // mo: relaxed: the seal publishes it
    put_word(at_, head_.first, std::memory_order_relaxed);
    // mo: release [log.seal]: a thread that sees the second word sees the first one.
    if (shape.is_long) put_word(at_ + 4, head_.second, std::memory_order_release);
  }
  [[nodiscard]] char* payload() const noexcept { return at_ + head_.shape.header_bytes(); }
  /// False: the file cannot be written, and the record stays without a seal.
  [[nodiscard]] bool seal() noexcept { return seal_as(payload()); }
  /// For a payload encoded elsewhere, with zeros up to a multiple of 4: computing the seal from the
  /// segment's memory would wait for cache lines that are still being fetched.
  [[nodiscard]] bool copy_and_seal(const char* padded_payload) noexcept {
    std::memcpy(payload(), padded_payload, head_.shape.padded());
    return seal_as(padded_payload);
  }

 private:
  static void put_word(char* to, std::uint32_t word, std::memory_order order) noexcept {
    // mo: the caller's order: the word lies in a mapped file and is read by the draining thread.
    std::atomic_ref<std::uint32_t>{*reinterpret_cast<std::uint32_t*>(to)}.store(word, order);
  }
  bool seal_as(const char* padded_payload) noexcept {
    const RecordShape shape = head_.shape;
    const Bytes sealed = head_.sealed_part(padded_payload);
    const std::uint64_t seal = head_.seal_of(sealed);
    const auto upper = static_cast<std::uint32_t>(seal >> 32);
    // Before the seal is in memory: the syncing thread takes what it finds sealed for written.
    const Bytes bytes{reinterpret_cast<const char*>(&seal), sizeof seal};
    const std::size_t length = shape.header_bytes() - shape.seal_at();
    if (!segment_.write_record(offset_, shape.header_bytes() + sealed.size(), shape.seal_at(),
                               bytes.substr(sizeof seal - length))) {
      return false;
    }
    // mo: relaxed: the upper half publishes it
    if (shape.is_long) {
      put_word(at_ + shape.seal_at(), static_cast<std::uint32_t>(seal), std::memory_order_relaxed);
    }
    // mo: release [log.seal]: the draining thread and the next process treat a sealed record as
    // complete.
    put_word(at_ + shape.seal_end_at(), upper, std::memory_order_release);
    segment_.complete(shape.bytes());
    return true;
  }

  Segment& segment_;
  const LogOffset offset_;
  char* const at_;
  const RecordHead head_;
};

}  // namespace semel::storage
