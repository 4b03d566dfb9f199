// Digests, and directories as RocksDB's Env sees them.
#pragma once

#include <rocksdb/env.h>
#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "semel/result.hpp"

namespace semel::storage {

/// XXH3 of bytes that are added piece by piece.
class Digest {
 public:
  Digest() { XXH3_64bits_reset(state_.get()); }
  void add(std::string_view bytes) { XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()); }
  [[nodiscard]] std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_{XXH3_createState()};
};

[[nodiscard]] Status sync_backup_directory(rocksdb::Env& env, const std::string& directory);
/// XXH3. Errors: storage_failed.
[[nodiscard]] Result<std::uint64_t> digest_of_file(const std::string& path);
/// Removes `directory` with the files and directories in it; fine if it is not there. Errors:
/// storage_failed.
[[nodiscard]] Status remove_tree(rocksdb::Env& env, const std::string& directory);

}  // namespace semel::storage
