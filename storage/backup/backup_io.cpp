#include "storage/backup/backup_io.hpp"

#include <fstream>
#include <vector>

#include "storage/archive/rocks_status.hpp"

namespace semel::storage {

Status sync_backup_directory(rocksdb::Env& env, const std::string& directory) {
  std::unique_ptr<rocksdb::Directory> opened;
  rocksdb::Status status = env.NewDirectory(directory, &opened);
  if (status.ok()) status = opened->Fsync();
  if (!status.ok()) return error_of(status, directory);
  return Done{};
}

Result<std::uint64_t> digest_of_file(const std::string& path) {
  Digest digest;
  std::ifstream file{path, std::ios::binary};
  std::string piece(std::size_t{256} << 10, '\0');
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())), file.gcount() > 0) {
    digest.add({piece.data(), static_cast<std::size_t>(file.gcount())});
  }
  if (!file.eof()) return Error{ErrorCode::storage_failed, path + ": cannot be read"};
  return digest.value();
}

Status remove_tree(rocksdb::Env& env, const std::string& directory) {
  if (env.FileExists(directory).IsNotFound()) return Done{};
  std::vector<std::string> names;
  rocksdb::Status status = env.GetChildren(directory, &names);
  for (const std::string& name : names) {
    if (name == "." || name == ".." || !status.ok()) continue;
    const std::string path = directory + "/" + name;
    bool is_directory = false;
    status = env.IsDirectory(path, &is_directory);
    if (!status.ok()) break;
    if (is_directory) {
      SEMEL_CHECK(remove_tree(env, path));
    } else {
      status = env.DeleteFile(path);
    }
  }
  if (status.ok()) status = env.DeleteDir(directory);
  if (!status.ok()) return error_of(status, directory);
  return Done{};
}

}  // namespace semel::storage
