#include "storage/repair/rocks_log_repair.hpp"

#include <fcntl.h>
#include <rocksdb/file_checksum.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>
#include <span>

#include "base/file_text.hpp"
#include "storage/log/disk.hpp"
#include "storage/repair/storage_view.hpp"

namespace semel::storage {
namespace {

constexpr std::size_t block_bytes = 32'768;
constexpr std::size_t part_header_bytes = 7;
constexpr std::size_t batch_header_bytes = 12;  // number (8) and count (4)
enum PartKind : unsigned char { whole = 1, first = 2, middle = 3, last = 4 };

std::uint64_t number_in(std::string_view bytes) noexcept {  // little-endian
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return number;
}

/// CRC-32C, turned as RocksDB keeps it in its log.
std::string checksum_of(std::string_view bytes) {
  const auto generator =
      rocksdb::GetFileChecksumGenCrc32cFactory()->CreateFileChecksumGenerator({});
  generator->Update(bytes.data(), bytes.size());
  generator->Finalize();
  std::uint32_t crc = 0;
  for (const char byte : generator->GetChecksum()) {  // big-endian
    crc = crc << 8 | static_cast<unsigned char>(byte);
  }
  const std::uint32_t turned = ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
  std::string out(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) out[i] = static_cast<char>(turned >> (8 * i));
  return out;
}

/// Where a record's bytes are in the file.
struct Part {
  std::size_t offset;  // of its header
  std::size_t bytes;   // behind the header
};
using Record = std::vector<Part>;

std::string length_of(std::size_t number) {  // in groups of 7 bits
  std::string out;
  for (; number >= 128; number >>= 7) out += static_cast<char>(number | 128);
  return out + static_cast<char>(number);
}

/// `bytes` of entries of a batch that change nothing: data of the log alone.
std::string nothing(std::size_t bytes) {
  if (bytes == 1) return "\x0d";  // a mark, without effect at the begin of a batch
  std::string out;
  while (out.size() < bytes) {
    const std::size_t left = bytes - out.size();
    std::size_t data = left - 2;
    while (1 + length_of(data).size() + data > left) --data;
    if (1 + length_of(data).size() + data == left - 1) --data;  // one byte alone is no entry
    out += '\x03' + length_of(data) + std::string(data, '\0');
  }
  return out;
}

class RocksLog {
 public:
  explicit RocksLog(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] Status read() {
    std::optional<std::string> bytes = base::read_file(path_);
    if (!bytes) return system_error("reading " + path_);
    bytes_ = *std::move(bytes);
    return Done{};
  }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

  /// False: the record is not there.
  [[nodiscard]] bool leave_out(const RefusedRecord& refused) {
    for (std::size_t at = 0; at < bytes_.size();) {
      const Record record = next(at);
      std::size_t bytes = 0;
      for (const Part& part : record) bytes += part.bytes;
      if (bytes != refused.bytes || bytes < batch_header_bytes) continue;
      const std::string batch = content(record);
      if (number_in(std::string_view{batch}.substr(0, 8)) != refused.first) continue;
      replace(record,
              batch.substr(0, 8) + std::string(4, '\0') + nothing(bytes - batch_header_bytes));
      return true;
    }
    return false;
  }

 private:
  /// The record that begins at or behind `at`, which moves behind it; empty: there is no valid
  /// record.
  [[nodiscard]] Record next(std::size_t& at) const {
    Record record;
    while (at < bytes_.size()) {
      const std::size_t left = std::min(block_bytes - at % block_bytes, bytes_.size() - at);
      if (left < part_header_bytes) {  // the end of a block, or of the file
        at += left;
        continue;
      }
      const std::size_t bytes = number_in(std::string_view{bytes_}.substr(at + 4, 2));
      const auto kind = static_cast<unsigned char>(bytes_[at + 6]);
      if (kind < whole || kind > last || part_header_bytes + bytes > left) {
        at += left;  // damaged, or never written: RocksDB skips the block
        return {};
      }
      if (kind == whole || kind == first) record.clear();
      record.push_back({at, bytes});
      at += part_header_bytes + bytes;
      if (kind == whole || kind == last) return record;
    }
    return {};
  }
  [[nodiscard]] std::string content(const Record& record) const {
    std::string content;
    for (const Part& part : record)
      content.append(bytes_, part.offset + part_header_bytes, part.bytes);
    return content;
  }
  void replace(const Record& record, std::string_view content) {
    for (const Part& part : record) {
      bytes_.replace(part.offset + part_header_bytes, part.bytes, content.substr(0, part.bytes));
      content.remove_prefix(part.bytes);
      const auto covered = std::string_view{bytes_}.substr(part.offset + 6, part.bytes + 1);
      bytes_.replace(part.offset, 4, checksum_of(covered));
    }
  }

  const std::string path_;
  std::string bytes_;
};

Status write_and_sync(const std::string& path, std::string_view bytes) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) return system_error(path);
  Status status = Done{};
  while (!bytes.empty() && status) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) status = system_error("writing " + path);
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (status && fsync(descriptor) != 0) status = system_error("fsync " + path);
  close(descriptor);
  return status;
}

Status leave_out_of(const std::string& path, std::span<const RefusedRecord> records,
                    const std::string& kept) {
  RocksLog log{path};
  SEMEL_CHECK(log.read());
  const std::filesystem::path name{path};
  SEMEL_CHECK(write_and_sync(kept + "/" + name.filename().string(), log.bytes()));
  SEMEL_CHECK(sync_path(kept));
  for (const RefusedRecord& record : records) {
    if (record.file == path && !log.leave_out(record))
      return Error{ErrorCode::storage_damaged, path + ": cannot be changed: " + record.text()};
  }
  // RocksDB removes a file of this name when it is opened.
  const std::string made = (name.parent_path() / name.stem()).string() + ".dbtmp";
  SEMEL_CHECK(write_and_sync(made, log.bytes()));
  if (std::rename(made.c_str(), path.c_str()) != 0) return system_error("replacing " + path);
  return sync_path(name.parent_path().string());
}

}  // namespace

Status leave_out(const std::vector<RefusedRecord>& records, const std::string& kept) {
  std::set<std::string> paths;
  for (const RefusedRecord& record : records) paths.insert(record.file);
  for (const std::string& path : paths) SEMEL_CHECK(leave_out_of(path, records, kept));
  return Done{};
}

}  // namespace semel::storage
