// `semel restore FROM TO`
#include <fmt/format.h>

#include <boost/json.hpp>

#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/units.hpp"
#include "tools/semel/storage/storage_commands.hpp"

namespace semel::tool {
namespace {

class Restore final : public StorageCommand {
 public:
  explicit Restore(CLI::App& program)
      : StorageCommand(program, "restore", "Make a storage from a backup") {
    add_directory("FROM", from_, "Directory of the backup; it is not changed");
    add_directory("TO", to_, "Directory to create");
    set_footer(
        "The copy is verified, and its versions continue 2^48 higher: an epoch that was "
        "handed\n"
        "out after the backup is never handed out again. TO has no record of work that was done\n"
        "after the backup; that work may be done once more.");
  }

  [[nodiscard]] StorageExit run() const override {
    std::uint64_t bytes = 0;
    const Status status = [&] {
      WalkProgress progress;
      Status restored = restore_backup(from_, to_, progress.reporter());
      bytes = progress.bytes();
      return restored;
    }();
    if (!status) return fail(status.error(), "Take a backup, not the storage itself");
    put_json({{"done", true}, {"to", to_}});
    if (!json_) print_out("{}: restored to {}; {}\n", from_, to_, format_bytes(bytes));
    return StorageExit::ok;
  }

 private:
  std::string from_;
  std::string to_;
};

}  // namespace

std::unique_ptr<StorageCommand> restore_command(CLI::App& program) {
  return std::make_unique<Restore>(program);
}

}  // namespace semel::tool
