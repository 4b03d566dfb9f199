#include "tests/storage/faults/backups.hpp"

#include <filesystem>

#include "semel/storage_tools.hpp"
#include "storage/backup/backup_list.hpp"

namespace semel::faults {

namespace {

std::string first_finding(const StorageCheck& check) {
  for (const auto* const findings : {&check.findings, &check.cold.findings}) {
    if (!findings->empty()) return findings->front().file + ": " + findings->front().what;
  }
  return "claims of unknown namespaces";
}

}  // namespace

BackupsFound look_at_backups(const std::string& root) {
  BackupsFound found;
  const auto wrong = [&](const std::string& what) {
    if (found.wrong++ == 0) found.first_wrong = what;
  };
  for (const auto& entry : std::filesystem::directory_iterator{root}) {
    const std::string path = entry.path().string();
    if (!entry.path().filename().string().starts_with("backup")) continue;
    const auto list = storage::read_backup_list(path);
    if (!list && list.error().code == ErrorCode::storage_failed) {
      ++found.incomplete;
      continue;
    }
    if (!list) {
      wrong(path + ": " + list.error().message());
      continue;
    }
    const auto check = verify_storage(path);
    if (!check) {
      wrong(path + " is complete: " + check.error().message());
      continue;
    }
    if (!check->is_sound()) {
      wrong(path + " is complete, and damaged: " + first_finding(*check));
      continue;
    }
    ++found.sound;
  }
  return found;
}

}  // namespace semel::faults
