// The keys and libraries of an endpoint as an RDB file.
#pragma once

#include <cstdint>
#include <functional>

#include "semel/result.hpp"
#include "tools/semel/records/output_file.hpp"
#include "tools/semel/transfer/endpoint.hpp"
#include "tools/semel/transfer/tally.hpp"

namespace semel::tool {

/// Called now and then with the keys written and about how many there are; false ends the export.
using ExportProgress = std::function<bool(std::uint64_t keys, std::uint64_t total)>;

/// Writes `file`, which the caller commits. Each key, with its ttl, is as it was at one instant
/// during the call; no instant is that of all. A key that is there all the time is written once.
/// Errors: storage_failed, refused (ended by `progress`), those of Endpoint::ask().
[[nodiscard]] Status export_rdb(Endpoint& from, OutputFile& file, Tally& tally,
                                const ExportProgress& progress);

}  // namespace semel::tool
