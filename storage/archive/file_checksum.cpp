#include "storage/archive/file_checksum.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstddef>

#include "storage/log/disk.hpp"

namespace semel::storage {
namespace {

class Xxh3Generator final : public rocksdb::FileChecksumGenerator {
 public:
  Xxh3Generator() { XXH3_64bits_reset(&state_); }
  void Update(const char* data, std::size_t bytes) override {
    XXH3_64bits_update(&state_, data, bytes);
  }
  void Finalize() override {
    XXH64_canonical_t value;
    XXH64_canonicalFromHash(&value, XXH3_64bits_digest(&state_));
    value_.assign(reinterpret_cast<const char*>(value.digest), sizeof value.digest);
  }
  [[nodiscard]] std::string GetChecksum() const override { return value_; }
  [[nodiscard]] const char* Name() const override { return xxh3_function; }

 private:
  XXH3_state_t state_;
  std::string value_;
};

/// Makes XXH3 for new files, and for a file what the manifest asks for: RocksDB verifies by name.
class Generators final : public rocksdb::FileChecksumGenFactory {
 public:
  [[nodiscard]] std::unique_ptr<rocksdb::FileChecksumGenerator> CreateFileChecksumGenerator(
      const rocksdb::FileChecksumGenContext& context) override {
    const std::string& asked = context.requested_checksum_func_name;
    if (asked.empty() || asked == xxh3_function) return std::make_unique<Xxh3Generator>();
    return crc32c_->CreateFileChecksumGenerator(context);  // null: of another function
  }
  [[nodiscard]] const char* Name() const override { return "semel.FileChecksums"; }

 private:
  std::shared_ptr<rocksdb::FileChecksumGenFactory> crc32c_ =
      rocksdb::GetFileChecksumGenCrc32cFactory();
};

}  // namespace

std::shared_ptr<rocksdb::FileChecksumGenFactory> file_checksums() {
  static const auto generators = std::make_shared<Generators>();
  return generators;
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
