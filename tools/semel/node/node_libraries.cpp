#include "tools/semel/node/node_libraries.hpp"

#include <filesystem>
#include <system_error>

#include "base/file_text.hpp"
#include "net/scripts/function_dump.hpp"
#include "net/scripts/kept_libraries.hpp"
#include "net/server/process.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

Status keep_libraries(net::Node& node, const std::string& directory) {
  const std::string path = directory + "/" + libraries_file;
  std::error_code code;
  if (std::filesystem::exists(path, code)) {
    const auto dump = base::read_file(path);
    if (!dump) return file_error(path + " cannot be read");
    const Status loaded = net::load_libraries(node.scripts, node.ticks(), *dump);
    if (!loaded) {
      return Error{loaded.error().code, path + ": " + loaded.error().detail +
                                            "; without the file the node starts without them"};
    }
  }
  node.scripts.functions.keep_by(
      [path](const std::vector<net::SharedLibraryText>& libraries) -> Status {
        if (net::replace_file(path, net::dump_of(libraries))) return Done{};
        return Error{ErrorCode::storage_failed, "the libraries cannot be written to the disk"};
      });
  return Done{};
}

}  // namespace semel::tool
