// Makes the directory that a release leaves behind for all later ones (tests/storage/golden).
//
//   golden_maker DIRECTORY            everything a storage can hold, drained and undrained
//   golden_maker DIRECTORY --newer    the same, marked as of a later format
//   golden_maker DIRECTORY --tiered   500 records that were spilled to a cold store, DIRECTORY/cold
//   golden_maker DIRECTORY --hold     says "ready" and keeps it open until its input ends
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "semel/cold_directory.hpp"
#include "semel/engine_host.hpp"
#include "storage/archive/archive.hpp"
#include "storage/log/checkpoint.hpp"
#include "tests/storage/golden.hpp"

namespace {

using namespace semel;
using namespace semel::tests;

int fail(const std::string& what) {
  std::fprintf(stderr, "golden_maker: %s\n", what.c_str());
  return 1;
}

int mark_as_newer(const std::string& directory) {
  storage::Disk disk;
  auto mark = storage::Checkpoint::open(disk, directory + "/mark");
  storage::CheckpointContent content;
  if (!mark) return fail("no mark");
  const auto found = (*mark)->read(content);
  if (!found.ok() || *found != storage::Checkpoint::Found::content) return fail("no mark");
  content.format = storage::format_version + 1;
  return (*mark)->write_and_sync(content) ? 0 : fail("mark: not synced");
}

Status make_tiered(const std::string& directory) {
  const SystemClock clock;
  SEMEL_TRY(storage, Storage::open({.directory = directory}, clock));
  SEMEL_TRY(cold, open_cold_directory({.directory = directory + "/cold"}, clock));
  SEMEL_TRY(engine, Engine::open({.clock = &clock,
                                  .journal = storage.get(),
                                  .durability = Durability::logged,
                                  .cold = cold.get(),
                                  .memory_bytes = std::size_t{64} << 20,
                                  .first_version = storage->first_version()}));
  SEMEL_CHECK(storage->recover(*engine));
  for (int i = 0; i < 500; ++i) {
    const auto set = engine->store().set("k" + std::to_string(i), "spilled");
    if (!set.ok()) return set.error();
  }
  SEMEL_CHECK(storage->drain());
  SEMEL_CHECK(engine->host().spill());
  return Done{};
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2 || count > 3) return 2;
  const std::string directory = arguments[1];
  const std::string flag = count == 3 ? arguments[2] : "";
  if (flag == "--tiered") {
    const Status made = make_tiered(directory);
    return made ? 0 : fail(made.error().message());
  }
  ManualClock clock{golden::engine_start, golden::unix_start_ms};
  {
    auto process = golden::open(directory, clock);
    if (!process) return fail(process.error().message());
    if (const Status filled = golden::fill(*process->engine, *process->storage); !filled) {
      return fail(filled.error().message());
    }
    if (flag == "--hold") {
      std::puts("ready");
      std::fflush(stdout);
      char byte = 0;
      while (read(STDIN_FILENO, &byte, 1) > 0) {
      }
    }
  }
  return flag == "--newer" ? mark_as_newer(directory) : 0;
}
