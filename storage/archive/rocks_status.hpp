// Converts RocksDB's Status to Error.
#pragma once

#include <rocksdb/status.h>

#include <string>

#include "semel/result.hpp"

namespace semel::storage {

[[nodiscard]] inline Error error_of(const rocksdb::Status& status, const std::string& what) {
  ErrorCode code = ErrorCode::storage_failed;
  if (status.IsCorruption()) code = ErrorCode::storage_damaged;
  if (status.IsIOError() && status.ToString().find("lock") != std::string::npos) {
    code = ErrorCode::storage_in_use;
  }
  return {code, what + ": " + status.ToString()};
}

}  // namespace semel::storage
