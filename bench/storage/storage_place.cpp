#include "bench/storage/storage_place.hpp"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace semel::bench {

namespace {

/// True if `path` is `point` or lies below it.
bool is_below(const std::string& path, const std::string& point) {
  if (point == "/") return true;
  return path.compare(0, point.size(), point) == 0 &&
         (path.size() == point.size() || path[point.size()] == '/');
}

}  // namespace

ScratchDirectory::ScratchDirectory(const std::string& parent) {
  std::string wanted = parent + "/semel_bench_XXXXXX";
  if (mkdtemp(wanted.data()) == nullptr) {
    std::fprintf(stderr, "semel_bench: %s: %s\n", wanted.c_str(), std::strerror(errno));
    return;
  }
  std::error_code error;
  path_ = std::filesystem::canonical(wanted, error).string();
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
  if (error) {
    std::fprintf(stderr, "semel_bench: %s: %s\n", path_.c_str(), error.message().c_str());
  }
}

std::string file_system_of(const std::string& path) {
  std::error_code error;
  const std::string wanted = std::filesystem::canonical(path, error).string();
  if (wanted.empty() || !std::filesystem::is_directory(wanted, error)) return {};
  std::ifstream mounts{"/proc/self/mountinfo"};
  std::string best_point;
  std::string best_type;
  for (std::string line; std::getline(mounts, line);) {
    // 36 35 98:0 /root /point options optional.. - type source options
    std::istringstream words{line};
    std::string point;
    for (unsigned i = 0; i < 5; ++i) words >> point;
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos || !is_below(wanted, point)) continue;
    // Of mounts on one point the last one counts.
    if (point.size() < best_point.size()) continue;
    best_point = point;
    best_type = line.substr(dash + 3, line.find(' ', dash + 3) - dash - 3);
  }
  return best_type;
}

bool is_in_memory(const std::string& file_system) {
  return file_system == "tmpfs" || file_system == "ramfs" || file_system == "devtmpfs";
}

double bytes_free(const std::string& path) {
  struct statvfs space {};
  if (statvfs(path.c_str(), &space) != 0) return 0;
  return static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
}

DiskUse disk_use(const std::string& directory) {
  DiskUse use;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{directory, error}) {
    struct stat status {};
    if (!entry.is_regular_file(error) || stat(entry.path().c_str(), &status) != 0) continue;
    const double bytes = static_cast<double>(status.st_blocks) * 512;
    use.all += bytes;
    if (entry.path().extension() == ".sst") use.tables += bytes;
  }
  return use;
}

}  // namespace semel::bench
