// `semel repair DIR [--accept-loss]`
#include <fmt/format.h>

#include <boost/json.hpp>

#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/units.hpp"
#include "tools/semel/storage/storage_commands.hpp"

namespace semel::tool {
namespace {

class Repair final : public StorageCommand {
 public:
  explicit Repair(CLI::App& program)
      : StorageCommand(program, "repair", "Repair a damaged storage, and keep its intact records") {
    add_directory("DIR", directory_, "Directory of the storage");
    add_flag("--accept-loss", accept_loss_,
             "Repair. Without this flag nothing is changed; what would be lost is reported");
    add_cold(cold_);
    add_flag("--without-cold", without_cold_,
             "With --accept-loss: the cold store is lost, forget all that was in it");
    set_footer(
        "Where a record is lost, an older one counts again: work that was done since may be "
        "done\n"
        "once more. No version or epoch is handed out twice. The old files are moved to\n"
        "DIR/lost+found-N, so the space is needed twice until you remove that.");
  }

  [[nodiscard]] StorageExit run() const override {
    Result<StorageRepair> repair = [&] {
      WalkProgress progress;
      return repair_storage(
          directory_, {.accept_loss = accept_loss_, .cold = cold_, .without_cold = without_cold_},
          progress.reporter());
    }();
    if (!repair) return fail(repair.error(), "End that process first");
    const bool is_sound = is_done(*repair);
    put_json({{"done", is_sound},
              {"changed", repair->changed},
              {"moved_to", repair->moved_to},
              {"mutations", repair->mutations},
              {"cold_bound", repair->cold_bound},
              {"cold_given_up", repair->cold_given_up},
              {"versions", repair->versions},
              {"unknown_namespaces", boost::json::value_from(repair->unknown_namespaces)},
              {"found", json_of(repair->found)}});
    if (!json_) print(*repair);
    return is_sound ? StorageExit::ok : StorageExit::findings;
  }

 private:
  [[nodiscard]] static bool is_done(const StorageRepair& repair) {
    const bool fits =
        repair.found.cold.findings.empty() || repair.cold_bound || repair.cold_given_up;
    return repair.found.is_sound() || (repair.changed && fits);
  }
  void print(const StorageRepair& repair) const {
    print_findings(repair.found);
    if (repair.cold_bound) {
      print_out("{}: its cold store belongs to it as it is\n", directory_);
    } else if (repair.cold_given_up) {
      print_out("{}: needs no cold store any more\n", directory_);
    }
    if (repair.changed && repair.moved_to.empty()) {
      print_out("{}: nothing else was to be repaired\n", directory_);
    } else if (repair.changed) {
      print_out("{}: repaired, {} mutations kept; the old files are in {}\n", directory_,
                format_count(repair.mutations), repair.moved_to);
      print_unknown(repair.unknown_namespaces);
    } else if (repair.found.is_sound()) {
      print_out("{}: sound, nothing to repair\n", directory_);
    } else if (repair.found.findings.empty() &&
               (accept_loss_ || repair.found.cold.findings.empty())) {
      print_out("{}: nothing that could be repaired\n", directory_);
    } else {
      print_out(
          "{}: nothing was changed; --accept-loss keeps what is intact and gives up the "
          "rest\n",
          directory_);
    }
  }

  std::string directory_;
  bool accept_loss_ = false;
  std::string cold_;
  bool without_cold_ = false;
};

}  // namespace

std::unique_ptr<StorageCommand> repair_command(CLI::App& program) {
  return std::make_unique<Repair>(program);
}

}  // namespace semel::tool
