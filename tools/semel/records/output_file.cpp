#include "tools/semel/records/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

std::filesystem::path resolved_path(const std::string& path, std::error_code& code) {
  // Absolute first: of a relative name that does not exist weakly_canonical() gives no directory.
  const std::filesystem::path absolute = std::filesystem::absolute(path, code);
  return code ? absolute : std::filesystem::weakly_canonical(absolute, code);
}

Error OutputFile::failed(const std::string& path) const {
  return file_error(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
}

Result<std::unique_ptr<OutputFile>> OutputFile::open(const std::string& path,
                                                     const std::string& kept_path) {
  std::unique_ptr<OutputFile> file{new OutputFile{path}};
  struct stat there {};
  const bool exists = stat(path.c_str(), &there) == 0;
  if (exists && !S_ISREG(there.st_mode)) {
    file->descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file->descriptor_ < 0) return file->failed(path);
    return file;
  }
  if (exists && access(path.c_str(), W_OK) != 0) return file->failed(path);
  std::error_code code;
  std::filesystem::path place = resolved_path(path, code);
  if (code) return file_error(fmt::format("cannot write '{}': {}", path, code.message()));
  file->path_ = place.string();
  file->is_kept_ = !kept_path.empty();
  const std::string directory = place.parent_path().string();
  if (file->is_kept_) {
    file->beside_ = kept_path;
    // Its name is known beforehand: in a directory that others may write it could be a link.
    file->descriptor_ = ::open(kept_path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  } else {
    file->beside_ = fmt::format("{}/.{}.semel-XXXXXX", directory, place.filename().string());
    file->descriptor_ = mkostemp(file->beside_.data(), O_CLOEXEC);
  }
  if (file->descriptor_ < 0) {
    const Error error = file->failed(path);
    file->beside_.clear();
    return error;
  }
  if (!file->is_kept_ || exists) {
    const mode_t mask = umask(0);
    umask(mask);
    // Without the right to it the file keeps 0600: less than asked, never more.
    static_cast<void>(fchmod(file->descriptor_, exists ? there.st_mode & 07777 : 0666 & ~mask));
  }
  return file;
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!beside_.empty() && !is_kept_) unlink(beside_.c_str());
}

Result<int> OutputFile::duplicate_descriptor() const {
  const int other = fcntl(descriptor_, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (other < 0) return failed(path_);
  return other;
}

Status OutputFile::commit() {
  if (beside_.empty()) return Done{};
  if (fsync(descriptor_) != 0) return failed(path_);
  if (rename(beside_.c_str(), path_.c_str()) != 0) return failed(path_);
  beside_.clear();
  const std::string directory = std::filesystem::path{path_}.parent_path().string();
  const int opened = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // Some file systems sync no directories.
  const bool synced = opened >= 0 && (fsync(opened) == 0 || errno == EINVAL);
  const Error error = failed(directory);
  if (opened >= 0) ::close(opened);
  if (!synced) return error;
  return Done{};
}

}  // namespace semel::tool
