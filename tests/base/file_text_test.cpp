#include "base/file_text.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "tests/support/catch.hpp"

using semel::base::read_file;

TEST_CASE("file text: all of a file, or why not", "[base]") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "semel_file_text_test";
  std::filesystem::create_directories(folder);
  for (const std::size_t size : {0U, 1U, 4'095U, 4'096U, 4'097U, 100'000U}) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7);
    std::ofstream{folder / "file", std::ios::binary} << text;
    CHECK(read_file(folder / "file") == text);
  }
  errno = 0;
  CHECK(read_file(folder / "none") == std::nullopt);
  CHECK(errno == ENOENT);
  CHECK(read_file(folder) == std::nullopt);
  CHECK(errno == EISDIR);
  // It opens, and its first byte cannot be read: as on a disk that fails.
  CHECK(read_file("/proc/self/mem") == std::nullopt);
  CHECK(errno == EIO);
  CHECK(read_file("/dev/zero") == std::nullopt);
  CHECK(errno == EFBIG);
  std::filesystem::remove_all(folder);
}
