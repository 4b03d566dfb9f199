// `semel verify DIR`
#include <fmt/format.h>

#include <boost/json.hpp>

#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/units.hpp"
#include "tools/semel/storage/storage_commands.hpp"

namespace semel::tool {
namespace {

class Verify final : public StorageCommand {
 public:
  explicit Verify(CLI::App& program)
      : StorageCommand(program, "verify", "Check whether a storage is sound, without changing it") {
    add_directory("DIR", directory_, "Directory of the storage");
    add_cold(cold_);
    set_footer(
        "Reads every record and every file, those of its cold store too, and compares them with\n"
        "the checkpoint. The storage must not be in use.");
  }

  [[nodiscard]] StorageExit run() const override {
    Result<StorageCheck> check = [&] {
      WalkProgress progress;
      return verify_storage(directory_, progress.reporter(), cold_);
    }();
    if (!check) {
      return fail(check.error(), "A copy made by Storage::backup() can be verified meanwhile");
    }
    put_json(json_of(*check));
    const bool is_sound = check->is_sound();
    if (!json_) {
      print_findings(*check);
      if (!check->cold.directory.empty()) {
        print_out("{}: cold store, {} records in {} parts, generation {}, {}\n",
                  check->cold.directory, format_count(check->cold.records), check->cold.parts,
                  check->cold.generation, format_bytes(check->cold.bytes));
      }
      print_out("{}: {}; {} mutations, {} records in {} segments, {} blobs in {} files, {}\n",
                directory_, is_sound ? "sound" : fmt::format("{} findings", count_findings(*check)),
                format_count(check->mutations), format_count(check->records), check->segments,
                format_count(check->blobs), check->files, format_bytes(check->bytes));
    }
    return is_sound ? StorageExit::ok : StorageExit::findings;
  }

 private:
  std::string directory_;
  std::string cold_;
};

}  // namespace

std::unique_ptr<StorageCommand> verify_command(CLI::App& program) {
  return std::make_unique<Verify>(program);
}

}  // namespace semel::tool
