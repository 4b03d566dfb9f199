// RDB files and append-only files, read from the disk into an Importer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "semel/result.hpp"
#include "tools/semel/transfer/importer.hpp"

namespace semel::tool {

/// Called now and then with the bytes read; false ends the import.
using ImportProgress = std::function<bool(std::uint64_t bytes)>;

/// Errors: storage_failed (it cannot be read), syntax (damaged, with the offset; the items before
/// it are imported), refused (ended by `progress`), those of Importer.
[[nodiscard]] Status import_rdb(const std::string& path, Importer& importer,
                                const ImportProgress& progress);
/// An append-only file: commands, perhaps behind an RDB file.
[[nodiscard]] Status import_aof(const std::string& path, Importer& importer,
                                const ImportProgress& progress);

/// The files of an append-only directory of redis-server 7, in their order: its manifest names
/// them. A path that is no directory is the only file. Errors: storage_failed, syntax.
[[nodiscard]] Result<std::vector<std::string>> aof_files(const std::string& path);

}  // namespace semel::tool
