#include "tests/storage/faults/findings.hpp"

#include <cstdio>

namespace semel::faults {
namespace {

constexpr std::uint64_t shown_errors = 12;

}  // namespace

void Findings::say(const std::string& what) {
  if (wanted_.lies() || said_++ >= shown_errors) return;
  std::printf("%s: seed %llu, %s: %s\n", name_.c_str(),
              static_cast<unsigned long long>(wanted_.seed), place_.c_str(), what.c_str());
}

void Findings::lost(const std::string& what) {
  ++counts_.lost;
  say(what);
}

void Findings::wrong(const std::string& what) {
  ++counts_.wrong;
  say(what);
}

void Findings::not_opened(const std::string& what) {
  ++counts_.not_opened;
  say(what);
}

void Findings::add(const Tally& tally) {
  counts_.wrong += tally.wrong;
  if (tally.wrong > 0) say(tally.first_wrong);
}

Result<Found> Findings::judge(World& world, Ledger& ledger, const Clock& clock,
                              const Expected& expected) {
  auto found = compare(
      world, ledger, clock, expected.horizon, [this](const std::string& what) { say(what); },
      expected.slack);
  if (!found) return found;
  counts_.lost += found->lost;
  counts_.back += found->back;
  counts_.strange += found->strange;
  counts_.parted += found->parted;
  const Version next = world.storage->first_version();
  if (next <= expected.largest_epoch) {
    wrong("version " + std::to_string(next) +
          " is handed out again, seen before: " + std::to_string(expected.largest_epoch));
  }
  return found;
}

}  // namespace semel::faults
