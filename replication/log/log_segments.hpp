// The files of a replicated log, in their order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "semel/result.hpp"
#include "storage/log/disk.hpp"
#include "storage/log/log_scan.hpp"
#include "storage/log/segment.hpp"

namespace semel::replication {

/// Invariant: their numbers ascend without gaps. Belongs to one thread.
class LogSegments {
 public:
  struct Segment {
    std::uint64_t number = 0;
    std::string path{};
    storage::SegmentHeader header{};
  };

  LogSegments(std::string directory, std::size_t segment_bytes, std::uint64_t log_id)
      : directory_(std::move(directory)), segment_bytes_(segment_bytes), log_id_(log_id) {}

  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
  /// The number of the segment that contains the byte before `end`; 0: none.
  [[nodiscard]] std::uint64_t number_before(storage::LogOffset end) const noexcept {
    return end == 0 ? 0 : (end - 1) / segment_bytes_;
  }
  [[nodiscard]] storage::LogOffset begin_of(std::uint64_t number) const noexcept {
    return number * segment_bytes_;
  }
  [[nodiscard]] std::string name_of(std::uint64_t number) const {
    return storage::segment_name(begin_of(number));
  }
  [[nodiscard]] const std::vector<Segment>& all() const noexcept { return segments_; }
  [[nodiscard]] std::uint64_t next_number(std::uint64_t first) const noexcept {
    return segments_.empty() ? first : segments_.back().number + 1;
  }
  /// Null: it is not there.
  [[nodiscard]] const Segment* at(storage::LogOffset offset) const noexcept {
    const std::uint64_t number = offset / segment_bytes_;
    if (segments_.empty() || number < segments_.front().number) return nullptr;
    const std::size_t place = number - segments_.front().number;
    return place < segments_.size() ? &segments_[place] : nullptr;
  }

  /// Names of the files, ascending. Errors: storage_failed.
  [[nodiscard]] Result<std::vector<std::string>> list() const;
  /// The file that follows those that are here. Errors: storage_failed, storage_damaged (another
  /// log's, another number, another size).
  [[nodiscard]] Result<storage::SegmentFile> open_next(const std::string& name) const;
  /// So that add() takes no memory. std::bad_alloc.
  void reserve() { segments_.reserve(segments_.size() + 1); }
  void add(Segment segment) {
    SEMEL_ASSERT(segments_.empty() || segment.number == segments_.back().number + 1);
    segments_.push_back(std::move(segment));
  }
  void drop_last() { segments_.pop_back(); }
  /// Removes those that end at `needed` or before, but for the newest; the oldest first, so that
  /// those that stay are without gaps. Errors: storage_failed.
  [[nodiscard]] Status remove_before(storage::LogOffset needed, storage::Disk& disk);

 private:
  const std::string directory_;
  const std::size_t segment_bytes_;
  const std::uint64_t log_id_;
  std::vector<Segment> segments_;
};

}  // namespace semel::replication
