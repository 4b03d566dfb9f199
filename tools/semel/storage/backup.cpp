// `semel backup DIR TO`
#include <fmt/format.h>

#include <boost/json.hpp>

#include "semel/cold_directory.hpp"
#include "semel/storage.hpp"
#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/units.hpp"
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
    add_flag("--copy", copies_, "Copy the files also where links are possible");
    add_option("--base", base_,
               "An older backup, or a directory of several: unchanged files are linked from it");
    add_option("--rate", rate_, "Bytes to copy a second; 0: no limit");
    set_footer(
        "Opens the storage, moves the contents of its log into files, and copies those, by "
        "links\n"
        "where TO is on the same file system, and its cold store with them. While a process uses\n"
        "the storage, that process makes backups: SEMEL.BACKUP, BGSAVE, Storage::backup().");
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
    const auto made = back_up(**storage, info->cold.directory, clock);
    if (!made) return fail(made.error(), hint);
    for (const std::string& file : made->damaged_in_base) {
      print_error("semel backup: {}: is not what the list of its backup says; copied anew\n", file);
    }
    put_json({{"done", true},
              {"to", to_},
              {"bytes", made->bytes},
              {"bytes_copied", made->bytes_copied},
              {"bytes_linked", made->bytes_linked},
              {"bytes_shared", made->bytes_shared}});
    if (!json_) {
      print_out("{}: copied to {}; {}, of them {} by links\n", directory_, to_,
                format_bytes(made->bytes), format_bytes(made->bytes_linked + made->bytes_shared));
    }
    return StorageExit::ok;
  }

 private:
  /// `found`: where the cold store is; empty: nowhere.
  [[nodiscard]] Result<BackupReport> back_up(Storage& storage, const std::string& found,
                                             const Clock& clock) const {
    if (found.empty() && !cold_.empty()) {
      return Error{ErrorCode::storage_failed, cold_ + ": there is no cold store"};
    }
    WalkProgress shown;
    const TellProgress report = shown.reporter();
    const BackupOptions options{.bytes_per_second = rate_,
                                .copies = copies_,
                                .base = base_,
                                .progress = [&](const BackupProgress& progress) {
                                  report({progress.bytes, progress.bytes_total});
                                  return true;
                                }};
    if (found.empty()) return storage.backup(to_, options);
    SEMEL_TRY(cold, open_cold_directory({.directory = found}, clock));
    return storage.backup(to_, *cold, options);
  }

  std::string directory_;
  std::string to_;
  std::string cold_;
  std::string base_;
  std::uint64_t rate_ = 0;
  bool copies_ = false;
};

}  // namespace

std::unique_ptr<StorageCommand> backup_command(CLI::App& program) {
  return std::make_unique<Backup>(program);
}

}  // namespace semel::tool
