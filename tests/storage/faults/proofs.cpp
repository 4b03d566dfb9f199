// Proofs of a storage under faults:
//
//   proof_faults --fault NAME[,NAME..] [--long] [--seed N] [--count N] [--lie bytes|names|cold]
//                [--every N] [--any-order] [--must-find] [--keep DIR]
//
// Names of which several may be given happen to one storage, in whatever order: diskfull, kill,
// powerloss, clock, syncerror, slowdisk, restore, damage, upgrade (lives.cpp). `images` is a proof
// of its own.
// --count: of images or lives.
#include "tests/storage/faults/proofs.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "tests/proofs/arguments.hpp"

namespace semel::faults {
namespace {

constexpr struct {
  std::string_view name;
  int (*prove)(const Wanted&);  // by itself; null: a schedule of one fault
  bool Schedule::*fault;        // beside others; null: never
} faults[] = {
    {"clock", nullptr, &Schedule::steps_clock},     {"damage", nullptr, &Schedule::is_damaged},
    {"diskfull", nullptr, &Schedule::fills_up},     {"images", prove_images, nullptr},
    {"kill", nullptr, &Schedule::is_killed},        {"powerloss", nullptr, &Schedule::loses_power},
    {"restore", nullptr, &Schedule::is_copied},     {"slowdisk", nullptr, &Schedule::is_slow},
    {"syncerror", nullptr, &Schedule::fails_syncs}, {"upgrade", nullptr, &Schedule::is_upgraded}};

int unknown(std::string_view what) {
  std::fprintf(stderr, "proof_faults: %.*s: unknown; --fault is one of",
               static_cast<int>(what.size()), what.data());
  for (const auto& fault : faults) std::fprintf(stderr, " %s", fault.name.data());
  std::fprintf(stderr, ", and those of lives.cpp several\n");
  return 2;
}

int prove(const Wanted& wanted, const std::string& names) {
  Schedule schedule{.name = names};
  std::string_view rest = names;
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find(','));
    const bool is_alone = name.size() == names.size();
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    const auto* const found = std::find_if(std::begin(faults), std::end(faults),
                                           [&](const auto& fault) { return fault.name == name; });
    if (found == std::end(faults)) return unknown(name);
    if (is_alone && found->prove != nullptr) return found->prove(wanted);
    if (found->fault == nullptr) return unknown(names);
    schedule.*(found->fault) = true;
  }
  // The end of a journal that power or a failed sync tore looks like a damaged one.
  if (schedule.is_damaged && (schedule.loses_power || schedule.fails_syncs)) {
    std::fputs("proof_faults: damage does not combine with powerloss and syncerror\n", stderr);
    return 2;
  }
  return names.empty() ? unknown("no fault") : prove_lives(wanted, schedule);
}

PowerDisk::Lie lie_of(std::string_view name) {
  if (name == "cold") return PowerDisk::Lie::cold;
  return name == "names" ? PowerDisk::Lie::names : PowerDisk::Lie::bytes;
}

int main_of(int count, char** texts) {
  Wanted wanted;
  std::string names;
  std::vector<char*> rest{texts[0]};
  for (int i = 1; i < count; ++i) {
    const std::string_view text = texts[i];
    const char* const value = i + 1 < count ? texts[i + 1] : "";
    const bool has_value = text == "--fault" || text == "--count" || text == "--every" ||
                           text == "--lie" || text == "--keep";
    if (text == "--fault")
      names = value;
    else if (text == "--count")
      wanted.count = std::strtoull(value, nullptr, 10);
    else if (text == "--every")
      wanted.lie_every = std::strtoull(value, nullptr, 10);
    else if (text == "--lie")
      wanted.lie = lie_of(value);
    else if (text == "--keep")
      wanted.keep = value;
    else if (text == "--any-order")
      wanted.any_order = true;
    else if (text == "--must-find")
      wanted.must_find = true;
    else
      rest.push_back(texts[i]);
    i += has_value ? 1 : 0;
  }
  const auto arguments = proofs::parse_arguments(static_cast<int>(rest.size()), rest.data());
  if (!arguments) return 2;
  wanted.is_long = arguments->is_long;
  wanted.seed = arguments->seed.value_or(proofs::fresh_seed());
  std::printf("%s: seed %llu\n", names.c_str(), static_cast<unsigned long long>(wanted.seed));
  return prove(wanted, names);
}

}  // namespace
}  // namespace semel::faults

int main(int count, char** texts) {
  return semel::faults::main_of(count, texts);
}
