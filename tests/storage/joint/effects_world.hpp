// A process with column families of every kind (random_effects.hpp), and batches in bytes.
#pragma once

#include <string>
#include <utility>

#include "tests/storage/joint/join_process.hpp"
#include "tests/storage/joint/random_effects.hpp"

namespace semel::tests {

/// "payments" and those of random_effects.hpp.
[[nodiscard]] inline JoinProcess::Families families_of_payer() {
  JoinProcess::Families families = families_of_effects();
  families.insert(families.begin(), {"payments", {}});
  return families;
}

/// A process with those families, of which "dropped" is.
struct EffectsProcess : JoinProcess {
  EffectsProcess(const std::string& directory, const Clock& clock)
      : JoinProcess(directory, clock, Durability::logged, {}, families_of_payer()) {
    REQUIRE(database(*storage).DropColumnFamily(of("dropped")).ok());
  }
  [[nodiscard]] rocksdb::ColumnFamilyHandle* of(const char* name) const {
    return family(*storage, name);
  }
  [[nodiscard]] Result<JoinedOutcome> commit(const std::string& key, Epoch epoch,
                                             const rocksdb::WriteBatch& effects) {
    return complete_joined(*storage, *claims, {.key = key, .epoch = epoch, .payload = "paid"},
                           effects, Durability::logged);
  }
};

/// A batch in bytes: what no call of WriteBatch makes. Its header is 8 bytes of a number and 4 of
/// the count of entries.
[[nodiscard]] inline rocksdb::WriteBatch batch_of(char count, const std::string& entries) {
  return rocksdb::WriteBatch{std::string(8, '\0') + std::string{count, '\0', '\0', '\0'} + entries};
}

}  // namespace semel::tests
