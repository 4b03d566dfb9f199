// Where the program was built without a storage.
#include "tools/semel/node_storage.hpp"

namespace semel::tool {

NodeStorage::NodeStorage(net::Settings& settings, const Clock& clock)
    : settings_(settings), clock_(clock) {}
NodeStorage::~NodeStorage() = default;

std::string NodeStorage::open(Options&) {
  return "storage-enabled: this program was built without a storage (SEMEL_STORAGE)";
}
std::string NodeStorage::recover(Engine&) {
  return {};
}
std::unique_ptr<Journal> NodeStorage::take() {
  return nullptr;
}

}  // namespace semel::tool
