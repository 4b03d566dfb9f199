// A storage of one process in a directory, and damage done to its files.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/semel.hpp"
#include "semel/storage.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {

struct ToolLife {
  ToolLife(const std::string& directory, const Clock& clock) {
    auto opened = Storage::open(
        {.directory = directory, .log_bytes = std::size_t{1} << 20, .span = Millis{1000}}, clock);
    if (!opened) FAIL(opened.error().message());
    storage = *std::move(opened);
    auto made = Engine::open({.clock = &clock,
                              .journal = storage.get(),
                              .durability = Durability::logged,
                              .memory_bytes = std::size_t{64} << 20,
                              .value_bytes_max = 1024,
                              .first_version = storage->first_version()});
    if (!made) FAIL(made.error().message());
    engine = *std::move(made);
    auto report = storage->recover(*engine);
    if (!report) FAIL(report.error().message());
  }
  void fill(const std::string& prefix, int count) {
    Store store = engine->store();
    for (int i = 0; i < count; ++i) {
      REQUIRE(store.set(prefix + std::to_string(i), std::string(500, 'v')).ok());
    }
  }
  [[nodiscard]] int count(const std::string& prefix, int most) {
    int found = 0;
    Store store = engine->store();
    for (int i = 0; i < most; ++i) {
      const auto value = store.get(prefix + std::to_string(i)).value();
      if (!value) continue;
      ++found;
      CHECK(*value == std::string(500, 'v'));
    }
    return found;
  }
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;  // ends first
};

/// Every file with what is in it and when it was changed.
inline std::map<std::string, std::string> picture(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{directory}) {
    std::string content;
    if (entry.is_regular_file()) {
      std::ifstream file{entry.path(), std::ios::binary};
      content.assign(std::istreambuf_iterator<char>{file}, {});
    }
    content += "@" + std::to_string(entry.last_write_time().time_since_epoch().count());
    files[entry.path().string()] = content;
  }
  return files;
}

inline std::vector<std::string> files_in(const std::string& directory, const std::string& ending) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator{directory}) {
    const std::string name = entry.path().string();
    if (name.ends_with(ending)) found.push_back(name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

inline void flip(const std::string& path, std::uint64_t offset) {
  std::fstream file{path, std::ios::binary | std::ios::in | std::ios::out};
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ 0x5a));
  REQUIRE(file.good());
}

}  // namespace semel::tests
