// Built without a storage.
#include <functional>

#include "tools/semel/node/node_storage.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

NodeStorage::NodeStorage(const net::Settings& settings, const std::string& file, const Clock& clock)
    : settings_(settings), file_(file), clock_(clock) {}
NodeStorage::~NodeStorage() = default;

bool NodeStorage::is_built() noexcept {
  return false;
}
Status NodeStorage::open(Options&) {
  return usage_error("storage-enabled: this program was built without a storage (SEMEL_STORAGE)");
}
Result<RecoveryReport> NodeStorage::recover(Engine&,
                                            const std::function<void(const RecoveryProgress&)>&) {
  return RecoveryReport{};  // is_open() is false, so this is never called
}
Millis NodeStorage::busy_for() const noexcept {
  return Millis{0};
}
Status NodeStorage::backup(const std::string&, const std::string&,
                           const std::function<bool(const BackupProgress&)>&) {
  return usage_error("this program was built without a storage (SEMEL_STORAGE)");
}
std::optional<StorageStats> NodeStorage::stats() const {
  return std::nullopt;
}

}  // namespace semel::tool
