// A directory that goes with the test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include "tests/support/catch.hpp"

namespace semel::tests {

class Directory {
 public:
  enum class Medium {
    disk,
    memory,  ///< where there is one: for what syncs thousands of times
  };
  explicit Directory(Medium medium = Medium::disk) {
    const bool memory = medium == Medium::memory && std::filesystem::is_directory("/dev/shm");
    path_ = memory ? "/dev/shm/semel_storage_XXXXXX" : "/tmp/semel_storage_XXXXXX";
    REQUIRE(mkdtemp(path_.data()) != nullptr);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string of(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace semel::tests
