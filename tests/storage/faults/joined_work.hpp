// Claims that are completed together with effects: one that names the claim, and in many calls
// others, drawn at random among all that a WriteBatch can hold.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "semel/rocksdb.hpp"
#include "tests/proofs/random.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {

/// That of the effects which name their claims, and those of random_effects.hpp.
[[nodiscard]] std::vector<rocksdb::ColumnFamilyDescriptor> families_of_joins();
/// Drops the one that is to be gone while the storage is open.
[[nodiscard]] Status begin_joins(Storage& storage);

/// A result that stands for an effect beside it.
[[nodiscard]] bool is_joined(const std::string& result) noexcept;
[[nodiscard]] std::string joined_result(std::string result);

/// Completes with an effect, and counts what was done in `tally`. An answer that no such call may
/// have is in `wrong`.
struct JoinedAnswer {
  OwnerOutcome owner;
  bool is_refused = false;  ///< rightly: nothing must have changed
  std::string wrong;
};
[[nodiscard]] JoinedAnswer complete_with_effect(World& world, Claims& claims, const OwnerCall& call,
                                                Durability level, proofs::Random& random,
                                                JoinsTally& tally);

/// Effects without the claim that came with them, the other way round, and families that cannot be
/// read. `done`: by key, epoch and result of each claim, the result empty if it is not done.
struct ClaimEnd {
  Epoch epoch = 0;
  std::string result;
};
[[nodiscard]] Result<std::uint64_t> parted_effects(
    World& world, const std::map<std::string, ClaimEnd>& ends,
    const std::function<void(const std::string&)>& say);

}  // namespace semel::faults
