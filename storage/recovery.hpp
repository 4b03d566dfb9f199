// Recovery: the steps of a start after which an engine has everything that is stored, and may use
// the storage (docs/decisions/0073-progress-of-a-start.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "semel/engine.hpp"
#include "semel/journal.hpp"
#include "semel/result.hpp"
#include "semel/storage.hpp"
#include "storage/drain/drain_requests.hpp"
#include "storage/drain/live_engine.hpp"
#include "storage/files/newest_map.hpp"
#include "storage/files/stored_files.hpp"
#include "storage/journal/log.hpp"
#include "storage/restoring.hpp"
#include "storage/start/context.hpp"

namespace semel::storage {

class Recovery {
 public:
  /// `journal`: of the storage, what the engine appends to.
  Recovery(const Context& context, const Log& log, StoredFiles& files, NewestMap& map,
           LiveEngine& live, DrainRequests& requests, Journal& journal,
           LogOffset log_begin) noexcept
      : context_(context),
        log_(log),
        files_(files),
        map_(map),
        live_(live),
        requests_(requests),
        journal_(journal),
        log_begin_(log_begin) {}

  /// Storage::recover().
  [[nodiscard]] Result<RecoveryReport> run(
      Engine& engine, const std::function<void(const RecoveryProgress&)>& progress);

 private:
  [[nodiscard]] Status check_namespaces(const std::map<std::string, std::uint64_t>& unknown,
                                        Description& is) const;
  [[nodiscard]] Status keep_remote_leases(Engine& engine);
  [[nodiscard]] Status fold_memos(Engine& engine) SEMEL_EXCLUDES(files_.mutex);

  const Context& context_;
  const Log& log_;
  StoredFiles& files_;
  NewestMap& map_;
  LiveEngine& live_;
  DrainRequests& requests_;
  Journal& journal_;
  const LogOffset log_begin_;
};

}  // namespace semel::storage
