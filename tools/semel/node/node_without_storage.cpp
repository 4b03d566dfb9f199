// Where the program was built without a storage.
#include "tools/semel/node/node_storage.hpp"

namespace semel::tool {

NodeStorage::NodeStorage(const net::Settings& settings, const Clock& clock)
    : settings_(settings), clock_(clock) {}
NodeStorage::~NodeStorage() = default;

bool NodeStorage::is_built() noexcept {
  return false;
}
Failure NodeStorage::open(Options&) {
  return {Exit::usage, "storage-enabled: this program was built without a storage (SEMEL_STORAGE)"};
}
Failure NodeStorage::recover(Engine&, const std::function<void(const RecoveryProgress&)>&,
                             RecoveryReport&) {
  return {};
}
Millis NodeStorage::busy_for() const noexcept {
  return Millis{0};
}
std::optional<StorageStats> NodeStorage::stats() const {
  return std::nullopt;
}

}  // namespace semel::tool
