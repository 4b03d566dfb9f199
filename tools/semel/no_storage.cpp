// Replaces everything that needs the storage, if the program is built without it.
#include "tools/semel/dedup/dedup_state.hpp"
#include "tools/semel/shared/exit_code.hpp"
#include "tools/semel/storage/storage_commands.hpp"

namespace semel::tool {

bool has_dedup_state() {
  return false;
}

Result<std::unique_ptr<DedupState>> open_dedup_state(const DedupOptions&) {
  return usage_error("this build has no storage, so no --state");
}

StorageCommands storage_commands(CLI::App&) {
  return {};
}

const StorageCommand* chosen_storage_command(const StorageCommands&) {
  return nullptr;
}

}  // namespace semel::tool
