// `semel node --check-config`: reports every error that would stop a start. Creates no file and
// opens no port: a port in use is not an error of the configuration.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/admin/admin_server.hpp"
#include "net/server/descriptor.hpp"
#include "net/server/process.hpp"
#include "tools/semel/node/node_options.hpp"
#include "tools/semel/node/node_run.hpp"

namespace semel::tool {
namespace {

using net::Setting;
namespace files = std::filesystem;

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

/// Whether the writer of a file creates its directories.
enum class Parents : std::uint8_t { must_exist, are_made };

/// Whether a file can be made in `directory`. The detail of an error is its whole text.
Status can_fill(files::path directory, Parents parents) {
  std::error_code unknown;
  directory = files::absolute(directory.empty() ? "." : directory, unknown);
  while (parents == Parents::are_made && !files::exists(directory, unknown) &&
         directory.has_relative_path()) {
    directory = directory.parent_path();
  }
  if (!files::exists(directory, unknown)) return file_error(directory.string() + " does not exist");
  if (!files::is_directory(directory, unknown))
    return file_error(directory.string() + " is not a directory");
  if (access(directory.c_str(), W_OK | X_OK) == 0) return Done{};
  return file_error(directory.string() + ": " + reason_of(errno));
}

/// Whether a file can be written, or replaced.
Status can_write(const std::string& path, Parents parents) {
  std::error_code unknown;
  if (files::is_directory(path, unknown)) return file_error(path + " is a directory");
  if (!files::exists(path, unknown)) return can_fill(files::path{path}.parent_path(), parents);
  if (access(path.c_str(), W_OK) == 0) return Done{};
  return file_error(path + ": " + reason_of(errno));
}

/// Whether a storage can be in `directory`, which it makes itself if it is missing.
Status can_store(const std::string& directory) {
  std::error_code unknown;
  if (files::exists(directory, unknown)) return can_fill(directory, Parents::must_exist);
  files::path path{directory};
  if (!path.has_filename()) path = path.parent_path();  // of a/b/ that is a/b
  return can_fill(path.parent_path(), Parents::must_exist);
}

/// RocksDB's lock, which an open storage has.
bool is_locked(const std::string& directory) {
  const std::string path = directory + "/rocksdb/LOCK";
  const net::Descriptor file{open(path.c_str(), O_RDWR | O_CLOEXEC)};
  if (!file) return false;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(file.get(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace

std::vector<Error> check_node(net::Settings& settings, const std::string& file,
                              const std::vector<net::DeclaredNamespace>& declared) {
  std::vector<Error> found;
  const auto note = [&](const Status& status) {
    if (!status) found.push_back(status.error());
  };
  const auto note_file = [&](Setting setting, const Status& usable) {
    if (usable) return;
    found.push_back(
        file_error(std::string{net::row_of(setting).name} + ": " + usable.error().detail));
  };
  for (const Setting setting : {Setting::log_file, Setting::ready_file, Setting::unix_socket}) {
    const std::string path = settings.text(setting);
    const Parents parents = setting == Setting::log_file ? Parents::are_made : Parents::must_exist;
    if (!path.empty()) note_file(setting, can_write(path, parents));
  }
  if (settings.boolean(Setting::storage_enabled)) {
    const std::string directory = settings.text(Setting::dir);
    note_file(Setting::dir, can_store(directory));
    if (is_locked(directory)) {
      note_file(Setting::dir, file_error(directory + " is in use by another process"));
    }
    if (!NodeStorage::is_built()) {
      note(usage_error("storage-enabled: this program was built without a storage"));
    }
  }
  if (const auto options = admin_options(settings)) {
    note(net::AdminServer::check(*options));
  }
  note(NodeConsole::check(settings));
  const SystemClock clock;
  NodeWatch watch{settings, clock};
  NodeEngine engine{settings, file, clock};
  if (engine.group().is_wanted()) {
    note(engine.group().check());
    note(engine.check_declared(declared));
    const std::string directory = settings.text(Setting::dir);
    if (!directory.empty()) note_file(Setting::dir, can_store(directory));
  }
  note(engine.open_alone());
  if (!engine.is_open()) return found;
  net::Node node{engine.engine(), settings, engine.test_clock()};
  note(node.open_users());
  const NodePorts ports{{.settings = settings, .watch = watch, .node = node}};
  note(ports.check());
  for (const std::string& address : ports.options().addresses) {
    if (net::can_listen_on(address)) continue;
    note(file_error("bind '" + address + "': not an address of this machine"));
  }
  note(engine.declare(declared, watch));
  return found;
}

}  // namespace semel::tool
