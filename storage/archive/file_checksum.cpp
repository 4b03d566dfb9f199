#include "storage/archive/file_checksum.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "storage/log/disk.hpp"

namespace semel::storage {

std::shared_ptr<rocksdb::FileChecksumGenFactory> file_checksums() {
  return rocksdb::GetFileChecksumGenCrc32cFactory();
}

bool FileChecksum::is_known() const {
  return !function.empty() && function != rocksdb::kUnknownFileChecksumFuncName;
}

Status check_file(const std::string& path, const FileChecksum& expected) {
  if (!expected.is_known()) return Done{};
  rocksdb::FileChecksumGenContext context;
  context.file_name = path;
  context.requested_checksum_func_name = expected.function;
  const auto generator = file_checksums()->CreateFileChecksumGenerator(context);
  if (generator == nullptr) return Done{};  // of another function: nothing can be said
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_error(path);
  std::string piece(std::size_t{1} << 20, '\0');
  ssize_t count = 0;
  for (off_t at = 0;; at += count) {
    count = pread(descriptor, piece.data(), piece.size(), at);
    if (count < 0 && errno == EINTR)
      count = 0;
    else if (count <= 0)
      break;
    else
      generator->Update(piece.data(), static_cast<std::size_t>(count));
  }
  const Error error = count < 0 ? system_error("reading " + path) : Error{};
  close(descriptor);
  if (count < 0) return error;
  generator->Finalize();
  if (generator->GetChecksum() == expected.value) return Done{};
  return Error{ErrorCode::storage_damaged, path + ": its bytes have another checksum"};
}

}  // namespace semel::storage
