#include "tests/storage/faults/earlier_release.hpp"

#include <algorithm>
#include <filesystem>

#include "tests/storage/golden.hpp"

namespace semel::faults {

namespace fs = std::filesystem;

Status begin_as_earlier(const std::string& directory, proofs::Random& random) {
  std::vector<std::string> archives;
  for (const auto& entry : fs::directory_iterator{SEMEL_GOLDEN}) {
    if (entry.path().extension() == ".gz") archives.push_back(entry.path());
  }
  std::sort(archives.begin(), archives.end());
  const std::string& archive = archives[random.below(archives.size())];
  const fs::path folder = fs::path{directory}.parent_path();
  fs::create_directories(folder);
  if (!tests::golden::unpack(archive, folder)) {
    return Error{ErrorCode::storage_failed, "not unpacked: " + archive};
  }
  fs::rename(folder / "golden", directory);
  return Done{};
}

std::vector<std::string> lost_of_earlier(Engine& engine, bool leases_end) {
  std::vector<std::string> lost = tests::golden::compare(engine);
  std::erase_if(lost, [&](const std::string& what) {
    for (const char* const ends : {"short-", "long-", "ttl of ", "done-", "failed-"}) {
      if (what.starts_with(ends)) return true;
    }
    return leases_end && what.starts_with("held-");
  });
  return lost;
}

}  // namespace semel::faults
