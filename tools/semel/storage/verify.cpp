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
    set_footer(
        "Reads every record and every file and compares them with the checkpoint. "
        "The storage must not be in use.");
  }

  [[nodiscard]] StorageExit run() const override {
    Result<StorageCheck> check = [&] {
      WalkProgress progress;
      return verify_storage(directory_, progress.reporter());
    }();
    if (!check) {
      return fail(check.error(), "A copy made by Storage::backup() can be verified meanwhile");
    }
    put_json(json_of(*check));
    const bool is_sound = check->is_sound();
    if (!json_) {
      print_findings(*check);
      print_out("{}: {}; {} mutations, {} records in {} segments, {} blobs in {} files, {}\n",
                directory_,
                is_sound ? "sound"
                         : fmt::format("{} findings",
                                       check->findings.size() + check->unknown_namespaces.size()),
                format_count(check->mutations), format_count(check->records), check->segments,
                format_count(check->blobs), check->files, format_bytes(check->bytes));
    }
    return is_sound ? StorageExit::ok : StorageExit::findings;
  }

 private:
  std::string directory_;
};

}  // namespace

std::unique_ptr<StorageCommand> verify_command(CLI::App& program) {
  return std::make_unique<Verify>(program);
}

}  // namespace semel::tool
