// Leaves records out of RocksDB's log that it refuses when it reads them: see rocks_log.hpp. In
// their place are records of the same length that change nothing, so that all others stay as they
// are, of every family, whatever operators and orders it has.
//
// The log is blocks of 32 KiB with parts of records: checksum (4) · length (2) · kind (1) · bytes.
#pragma once

#include <string>
#include <vector>

#include "semel/result.hpp"
#include "storage/archive/rocks_log.hpp"

namespace semel::storage {

/// Copies the files with these records to `kept`, a directory, then replaces each in one step.
/// Errors: storage_failed, storage_damaged (a record is not found, or a file is not a log; files
/// that were replaced before stay so).
[[nodiscard]] Status leave_out(const std::vector<RefusedRecord>& records, const std::string& kept);

}  // namespace semel::storage
