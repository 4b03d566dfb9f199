#include "replication/log/log_segments.hpp"

#include <algorithm>
#include <utility>

#include "storage/log/directory.hpp"

namespace semel::replication {

Result<std::vector<std::string>> LogSegments::list() const {
  SEMEL_TRY(names, storage::list_directory(directory_));
  std::sort(names.begin(), names.end());
  return names;
}

Result<storage::SegmentFile> LogSegments::open_next(const std::string& name) const {
  const std::string path = directory_ + "/" + name;
  SEMEL_TRY(file, storage::SegmentFile::open(path));
  const storage::SegmentHeader& header = file.header();
  const std::uint64_t number = next_number(header.number);
  if (const auto wrong = file.check_header(number, log_id_)) return wrong->error();
  if (header.bytes != segment_bytes_ || header.is_old() ||
      name != storage::segment_name(header.number * header.bytes)) {
    return storage::damage_at(path, 0,
                              "is not segment " + std::to_string(number) + " of segments of " +
                                  std::to_string(segment_bytes_) + " bytes");
  }
  return file;
}

Status LogSegments::remove_before(storage::LogOffset needed, storage::Disk& disk) {
  while (segments_.size() > 1 && begin_of(segments_.front().number + 1) <= needed) {
    SEMEL_CHECK(disk.remove(segments_.front().path));
    segments_.erase(segments_.begin());
  }
  return Done{};
}

}  // namespace semel::replication
