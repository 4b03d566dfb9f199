// `semel node --check-config`: what a start would refuse, without starting. Nothing is made and
// nothing is listened on; a port that is in use says nothing about the configuration.
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

/// Whether who writes a file makes the directories that it is in.
enum class Parents : std::uint8_t { must_exist, are_made };

/// Why nothing can be made in `directory`; none: it can.
std::optional<std::string> cannot_fill(files::path directory, Parents parents) {
  std::error_code unknown;
  directory = files::absolute(directory.empty() ? "." : directory, unknown);
  while (parents == Parents::are_made && !files::exists(directory, unknown) &&
         directory.has_relative_path()) {
    directory = directory.parent_path();
  }
  if (!files::exists(directory, unknown)) return directory.string() + " does not exist";
  if (!files::is_directory(directory, unknown)) return directory.string() + " is not a directory";
  if (access(directory.c_str(), W_OK | X_OK) == 0) return std::nullopt;
  return directory.string() + ": " + reason_of(errno);
}

/// The same of a file that is written, or replaced.
std::optional<std::string> cannot_write(const std::string& path, Parents parents) {
  std::error_code unknown;
  if (files::is_directory(path, unknown)) return path + " is a directory";
  if (!files::exists(path, unknown)) return cannot_fill(files::path{path}.parent_path(), parents);
  if (access(path.c_str(), W_OK) == 0) return std::nullopt;
  return path + ": " + reason_of(errno);
}

/// The same of the storage's directory, which the storage makes itself where it is not there.
std::optional<std::string> cannot_store(const std::string& directory) {
  std::error_code unknown;
  if (files::exists(directory, unknown)) return cannot_fill(directory, Parents::must_exist);
  files::path path{directory};
  if (!path.has_filename()) path = path.parent_path();  // of a/b/ that is a/b
  return cannot_fill(path.parent_path(), Parents::must_exist);
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

std::vector<Failure> NodeRun::check() {
  std::vector<Failure> found;
  const auto note = [&](Failure failure) {
    if (failure.exit != Exit::ok) found.push_back(std::move(failure));
  };
  const auto note_file = [&](Setting setting, const std::optional<std::string>& problem) {
    if (problem) {
      found.push_back({Exit::file, std::string{net::row_of(setting).name} + ": " + *problem});
    }
  };
  for (const Setting setting : {Setting::log_file, Setting::ready_file, Setting::unix_socket}) {
    const std::string path = settings_.text(setting);
    const Parents parents = setting == Setting::log_file ? Parents::are_made : Parents::must_exist;
    if (!path.empty()) note_file(setting, cannot_write(path, parents));
  }
  if (settings_.boolean(Setting::storage_enabled)) {
    const std::string directory = settings_.text(Setting::dir);
    note_file(Setting::dir, cannot_store(directory));
    if (is_locked(directory)) {
      note_file(Setting::dir, directory + " is in use by another process");
    }
    if (!NodeStorage::is_built()) {
      note({Exit::usage, "storage-enabled: this program was built without a storage"});
    }
  }
  if (const auto options = admin_options(settings_)) {
    if (auto wrong = net::AdminServer::check(*options)) note({Exit::usage, *std::move(wrong)});
  }
  note(open_engine(false));
  if (engine_ == nullptr) return found;
  node_ = std::make_unique<net::Node>(*engine_, settings_, test_clock_.get());
  if (auto problem = node_->open_users()) note({Exit::usage, *std::move(problem)});
  note(check_doors());
  for (const std::string& address : doors_.addresses) {
    if (net::can_listen_on(address)) continue;
    note({Exit::file, "bind '" + address + "': not an address of this machine"});
  }
  note(declare_namespaces());
  return found;
}

}  // namespace semel::tool
