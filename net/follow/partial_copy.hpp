// A mark of a storage that has a part of a copy, since a process has ended within a full sync: a
// file in its directory, made before the first change, and removed behind the last sync of the
// disk.
//
// Nodes without a storage have no mark.
#pragma once

#include "net/node/node.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// Whether the storage has a part of a copy.
[[nodiscard]] bool has_partial_copy(Node& node);
/// The storage has one from now on. Errors: storage_failed (the file cannot be made).
[[nodiscard]] Status begin_partial_copy(Node& node);
/// The databases are whole, or empty. Waits for the disk. If that fails the file stays, and the
/// next start empties the databases. Progress: blocks.
void end_partial_copy(Node& node);
/// Removes all records of the numbered databases.
[[nodiscard]] Status clear_databases(Node& node);

}  // namespace semel::net
