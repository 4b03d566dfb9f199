// `semel backup DIR TO`
#include <fmt/format.h>

#include <boost/json.hpp>

#include "semel/cold_directory.hpp"
#include "semel/storage.hpp"
#include "tools/semel/shared/output.hpp"
#include "tools/semel/storage/storage_commands.hpp"

namespace semel::tool {
namespace {

class Backup final : public StorageCommand {
 public:
  explicit Backup(CLI::App& program)
      : StorageCommand(program, "backup", "Copy a storage that no process uses") {
    add_directory("DIR", directory_, "Directory of the storage");
    add_directory("TO", to_, "Directory to create");
    add_cold(cold_);
    set_footer(
        "Opens the storage, moves the contents of its log into files, and copies those, by "
        "links\n"
        "where TO is on the same file system, and its cold store with them. While a process uses\n"
        "the storage, that process makes backups: Storage::backup().");
  }

  [[nodiscard]] StorageExit run() const override {
    // Check first: Storage::open() creates a storage where there is none.
    const Result<StorageInfo> info = inspect_storage(directory_, {}, cold_);
    const char* const hint = "The process that uses it makes backups: Storage::backup()";
    if (!info) return fail(info.error(), hint);
    const SystemClock clock;
    auto storage =
        Storage::open({.directory = directory_, .log_bytes = std::size_t{1} << 20}, clock);
    if (!storage) return fail(storage.error(), hint);
    if (const Status made = make(**storage, info->cold.directory, clock); !made) {
      return fail(made.error(), hint);
    }
    put_json({{"done", true}, {"to", to_}});
    if (!json_) print_out("{}: copied to {}\n", directory_, to_);
    return StorageExit::ok;
  }

 private:
  /// `found`: where the cold store is; empty: nowhere.
  [[nodiscard]] Status make(Storage& storage, const std::string& found, const Clock& clock) const {
    if (found.empty() && !cold_.empty()) {
      return Error{ErrorCode::storage_failed, cold_ + ": there is no cold store"};
    }
    if (found.empty()) return storage.backup(to_);
    SEMEL_TRY(cold, open_cold_directory({.directory = found}, clock));
    return storage.backup(to_, *cold);
  }

  std::string directory_;
  std::string to_;
  std::string cold_;
};

}  // namespace

std::unique_ptr<StorageCommand> backup_command(CLI::App& program) {
  return std::make_unique<Backup>(program);
}

}  // namespace semel::tool
