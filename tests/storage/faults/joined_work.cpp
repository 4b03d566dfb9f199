#include "tests/storage/faults/joined_work.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "tests/storage/joint/random_effects.hpp"

namespace semel::faults {
namespace {

constexpr const char* effects_name = "effects";
constexpr char joined_mark = 'j';
constexpr std::size_t long_key_bytes = 20'000;  // each image copies all that was synced

std::string effect_of(std::string_view key, Epoch epoch) {
  return std::string{key} + "/" + std::to_string(epoch);
}

/// What was taken must be readable, merges included.
Status read_family(Storage& storage, const char* name) {
  const std::unique_ptr<rocksdb::Iterator> all{
      database(storage).NewIterator({}, family(storage, name))};
  for (all->SeekToFirst(); all->Valid(); all->Next()) {
  }
  if (all->status().ok()) return Done{};
  return Error{ErrorCode::storage_damaged, std::string{name} + ": " + all->status().ToString()};
}

}  // namespace

std::vector<rocksdb::ColumnFamilyDescriptor> families_of_joins() {
  auto families = tests::families_of_effects();
  families.emplace_back(effects_name, rocksdb::ColumnFamilyOptions{});
  return families;
}

Status begin_joins(Storage& storage) {
  const rocksdb::Status dropped = database(storage).DropColumnFamily(family(storage, "dropped"));
  if (dropped.ok()) return Done{};
  return Error{ErrorCode::storage_failed, "a family is not dropped: " + dropped.ToString()};
}

bool is_joined(const std::string& result) noexcept {
  return !result.empty() && result.front() == joined_mark;
}

std::string joined_result(std::string result) {
  return result.insert(0, 1, joined_mark);
}

JoinedAnswer complete_with_effect(World& world, Claims& claims, const OwnerCall& call,
                                  Durability level, proofs::Random& random, JoinsTally& tally) {
  Storage& storage = *world.storage;
  rocksdb::WriteBatch effects;
  const std::string name = effect_of(call.key, call.epoch);
  JoinedAnswer answer;
  answer.owner.error = ErrorCode::storage_failed;
  if (!effects.Put(family(storage, effects_name), name, call.payload).ok()) return answer;
  const bool is_drawn = random.chance(1, 2);
  if (is_drawn) {
    tests::RandomEffects drawn{random.bits(), long_key_bytes};
    drawn.fill([&](const char* of) { return family(storage, of); }, effects);
  }
  const std::string stored = std::string{claims_name} + ":" + std::string{call.key};
  const KeyRef keys[] = {{0, stored}};
  std::optional<Section> section;
  if (random.chance(1, 4)) {
    auto begun = world.engine->section(keys);
    if (begun) section.emplace(*std::move(begun));
  }
  const auto joined = complete_joined(storage, claims, call, effects, level);
  if (section) {
    ++tally.in_sections;
    static_cast<void>(section->commit());  // it has changed nothing
  }
  tally.drawn += is_drawn ? 1 : 0;
  if (!joined) {
    answer.owner.error = joined.error().code;
    answer.is_refused = joined.error().code == ErrorCode::bad_option;
    tally.refused += answer.is_refused ? 1 : 0;
    if (answer.is_refused && !is_drawn && !section) {
      answer.wrong = "the effect of " + name + " is refused: " + joined.error().message();
    }
    return answer;
  }
  answer.owner = joined->owner;
  if (joined->owner.answer == OwnerAnswer::ok && joined->owner.error == ErrorCode::ok &&
      !joined->written) {
    answer.wrong = "the effects of " + name + " were not written";
  }
  return answer;
}

Result<std::uint64_t> parted_effects(World& world, const std::map<std::string, ClaimEnd>& ends,
                                     const std::function<void(const std::string&)>& say) {
  rocksdb::ColumnFamilyHandle* const effects = family(*world.storage, effects_name);
  if (effects == nullptr) return std::uint64_t{0};
  std::uint64_t parted = 0;
  for (const auto& [key, end] : ends) {
    std::string effect;
    const rocksdb::Status read =
        database(*world.storage).Get({}, effects, effect_of(key, end.epoch), &effect);
    if (!read.ok() && !read.IsNotFound()) {
      return Error{ErrorCode::storage_damaged, "effects: " + read.ToString()};
    }
    const bool right =
        is_joined(end.result) ? read.ok() && effect == end.result : read.IsNotFound();
    if (right) continue;
    ++parted;
    say(key + " has the result '" + end.result.substr(0, 40) + "', and its effect is " +
        (read.ok() ? effect.substr(0, 40) : "not there"));
  }
  for (const char* const name : {"plain", "merged", "turned"}) {
    SEMEL_CHECK(read_family(*world.storage, name));
  }
  return parted;
}

}  // namespace semel::faults
