// Checksums of whole files: the one of new files, and that of files of earlier releases.
#include <xxhash.h>

#include <algorithm>
#include <fstream>
#include <string>
#include "tests/support/catch.hpp"

#include "storage/archive/file_checksum.hpp"
#include "tests/storage/directory.hpp"

namespace semel::storage {
namespace {

constexpr const char* crc32c_function = "FileChecksumCrc32c";  // RocksDB's own name

std::unique_ptr<rocksdb::FileChecksumGenerator> generator_of(const std::string& function) {
  rocksdb::FileChecksumGenContext context;
  context.requested_checksum_func_name = function;
  return file_checksums()->CreateFileChecksumGenerator(context);
}

/// Of all bytes, in pieces of so many.
std::string checksum_of(const std::string& function, const std::string& bytes, std::size_t piece) {
  const auto generator = generator_of(function);
  REQUIRE(generator != nullptr);
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    generator->Update(bytes.data() + at, std::min(piece, bytes.size() - at));
  }
  generator->Finalize();
  return generator->GetChecksum();
}

std::string pattern(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 131 >> 3);
  return text;
}

}  // namespace

TEST_CASE("file checksum: new files have XXH3, whatever the pieces are", "[storage][archive]") {
  CHECK(generator_of("")->Name() == std::string{"semel.XXH3-64"});
  for (const std::size_t bytes : {0U, 1U, 240U, 1024U, 100'000U}) {
    const std::string text = pattern(bytes);
    const std::uint64_t right = XXH3_64bits(text.data(), text.size());
    std::string big_endian;
    for (int shift = 56; shift >= 0; shift -= 8) {
      big_endian.push_back(static_cast<char>(right >> shift & 0xff));
    }
    for (const std::size_t piece : {1U, 7U, 4096U, 200'000U}) {
      CHECK(checksum_of("", text, piece) == big_endian);
    }
  }
}

TEST_CASE("file checksum: files of earlier releases keep theirs", "[storage][archive]") {
  // The test vector of RFC 3720, section B.4: 32 bytes of zeros.
  const std::string crc = checksum_of(crc32c_function, std::string(32, '\0'), 5);
  CHECK(crc == std::string{"\x8a\x91\x36\xaa", 4});
  CHECK(generator_of("of another function") == nullptr);
}

TEST_CASE("file checksum: one changed bit is found under either function", "[storage][archive]") {
  const tests::Directory directory;
  const std::string path = directory.path() + "/file";
  const std::string text = pattern(3'000'000);  // more than one piece that is read at once
  const auto write = [&](const std::string& bytes) {
    std::ofstream{path, std::ios::binary | std::ios::trunc} << bytes;
  };
  for (const std::string function : {xxh3_function, crc32c_function}) {
    const FileChecksum expected{function, checksum_of(function, text, 4096)};
    REQUIRE(expected.is_known());
    write(text);
    CHECK(check_file(path, expected));
    for (const std::size_t at : {std::size_t{0}, text.size() / 2, text.size() - 1}) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ 1);
      write(changed);
      const Status status = check_file(path, expected);
      REQUIRE(!status);
      CHECK(status.error().code == ErrorCode::storage_damaged);
      CHECK(status.error().detail.find(path) != std::string::npos);
    }
    write(text.substr(0, text.size() - 1));
    CHECK(!check_file(path, expected));
  }
  CHECK(check_file(path, {"of another function", "x"}));  // nothing can be said
  CHECK(!FileChecksum{}.is_known());
}

}  // namespace semel::storage
