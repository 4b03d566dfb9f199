// A Replication before and after it takes part: for a node that also runs requests of clients, and
// so has parts between the engine and the start. Not installed: users have Replication::open().
#pragma once

#include <memory>

#include "replication/node/replica.hpp"
#include "replication/state/apply.hpp"
#include "semel/replication.hpp"
#include "semel/result.hpp"

namespace semel::replication {

struct ReplicationHost {
  /// Replication::open() without its second half: the directory is read, and nothing else happens
  /// before start(). Errors: those of open() but of the address and threads.
  [[nodiscard]] static Result<std::unique_ptr<Replication>> make(const ReplicationOptions& options);
  /// Joins the group. Once. `runner`: as of Replica::start(); must outlive stop(). After an error
  /// only the end remains. Errors: storage_in_use (the address), no_thread, bad_option.
  [[nodiscard]] static Status start(Replication& group, RequestRunner* runner);
  /// Hands the lead over and leaves, as the destructor does. Again: without effect. Threads that
  /// call it at once return when it is done.
  static void stop(Replication& group);
  [[nodiscard]] static Replica& replica(Replication& group) noexcept;
};

}  // namespace semel::replication
