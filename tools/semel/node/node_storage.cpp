#include "tools/semel/node/node_storage.hpp"

#include <string>
#include <utility>

#include "base/assert.hpp"
#include "tools/semel/node/node_options.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

using net::Setting;

NodeStorage::NodeStorage(const net::Settings& settings, const Clock& clock)
    : settings_(settings), clock_(clock) {}
NodeStorage::~NodeStorage() = default;

bool NodeStorage::is_built() noexcept {
  return true;
}

Status NodeStorage::open(Options& options) {
  const std::string directory = settings_.text(Setting::dir);
  if (directory.empty()) return usage_error("storage-enabled needs a directory: set dir");
  auto opened = Storage::open(
      {.directory = directory,
       .sync_every = std::chrono::duration_cast<Millis>(settings_.duration(Setting::sync_every)),
       .clock_ahead_max =
           std::chrono::duration_cast<Millis>(settings_.duration(Setting::clock_ahead_max))},
      clock_);
  if (!opened) return with_whole_text(opened.error(), directory);
  auto storage = *std::move(opened);
  options.journal = storage.get();
  options.first_version = storage->first_version();
  const std::string level = settings_.text(Setting::durability);
  options.durability = level == "synced"   ? Durability::synced
                       : level == "logged" ? Durability::logged
                                           : Durability::memory;
  storage_ = std::move(storage);
  return Done{};
}

Result<RecoveryReport> NodeStorage::recover(
    Engine& engine, const std::function<void(const RecoveryProgress&)>& progress) {
  SEMEL_ASSERT(storage_ != nullptr);
  auto recovered = static_cast<Storage&>(*storage_).recover(engine, progress);
  if (!recovered) return with_whole_text(recovered.error(), settings_.text(Setting::dir));
  return recovered;
}

Millis NodeStorage::busy_for() const noexcept {
  return storage_ == nullptr ? Millis{0} : static_cast<const Storage&>(*storage_).busy_for();
}

Status NodeStorage::backup(const std::string& directory) {
  SEMEL_ASSERT(storage_ != nullptr);
  return static_cast<Storage&>(*storage_).backup(directory);
}

std::optional<StorageStats> NodeStorage::stats() const {
  if (storage_ == nullptr) return std::nullopt;
  return static_cast<const Storage&>(*storage_).stats();
}

}  // namespace semel::tool
