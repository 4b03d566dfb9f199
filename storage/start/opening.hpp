// Opening a directory: everything that must be known, and on disk, before a storage begins its own
// journal and hands out a version. The state of the opening ends with it.
#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "semel/result.hpp"
#include "storage/archive/archive.hpp"
#include "storage/log/checkpoint.hpp"
#include "storage/log/directory.hpp"
#include "storage/start/context.hpp"
#include "storage/start/earlier_process.hpp"

namespace semel::storage {

/// What an opening found and made.
struct Opened {
  DirectoryLock lock;
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Archive> archive;
  EarlierProcess earlier;
  std::vector<OldSegment> segments;  // of earlier processes, not drained yet
  LogOffset drained = 0;             // everything before it is in the archive
  std::uint64_t segment_number = 1;  // of the first segment of this process
  bool is_new = false;
  bool has_reserve = false;
};

/// Opens the directory of `context`, and completes it. `families`: of the user. Errors: those of
/// Storage::open().
[[nodiscard]] Result<Opened> open_directory(Context& context,
                                            std::vector<rocksdb::ColumnFamilyDescriptor> families);

/// That this process lives, and in which boot its journal begins. Not before recover() has
/// everything: the next start drops records that had ended by this time
/// (docs/decisions/0073-progress-of-a-start.md).
void record_life(const Context& context, Description& is, LogOffset log_begin);

}  // namespace semel::storage
