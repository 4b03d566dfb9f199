// A process that pays: an engine on a storage with column families of its own.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/rocksdb.hpp"
#include "semel/semel.hpp"

namespace semel::tests {

[[nodiscard]] inline Policy policy_of_joins() {
  Policy policy;
  policy.lease = std::chrono::seconds{60};
  policy.result_ttl = std::chrono::seconds{3'600};
  policy.attempts_ttl = std::chrono::seconds{60};
  return policy;
}

/// An engine on a storage with a family "payments", as one process has it.
struct JoinProcess {
  using Families = std::vector<rocksdb::ColumnFamilyDescriptor>;

  JoinProcess(const std::string& directory, const Clock& clock,
              Durability level = Durability::logged, StorageOptions options = {},
              const Families& families = {{"payments", {}}}) {
    options.directory = directory;
    auto opened = open_storage(options, clock, families);
    if (!opened) FAIL(opened.error().message());
    storage = *std::move(opened);
    auto made = Engine::open({.clock = &clock,
                              .journal = storage.get(),
                              .durability = level,
                              .memory_bytes = std::size_t{64} << 20,
                              .first_version = storage->first_version()});
    if (!made) FAIL(made.error().message());
    engine = *std::move(made);
    auto report = storage->recover(*engine);
    if (!report) FAIL(report.error().message());
    claims.emplace(engine->claims("jobs", policy_of_joins()).value());
  }
  [[nodiscard]] Epoch claim(const std::string& key) {
    const ClaimOutcome outcome = claims->claim({.key = key});
    REQUIRE(outcome.answer == ClaimAnswer::granted);
    return outcome.epoch;
  }
  /// Pays `key`: the effect is the epoch under the key.
  [[nodiscard]] Result<JoinedOutcome> pay(const std::string& key, Epoch epoch,
                                          const std::string& result = "paid",
                                          Durability level = Durability::synced) {
    rocksdb::WriteBatch effects;
    REQUIRE(effects.Put(payments(), key, std::to_string(epoch)).ok());
    return complete_joined(*storage, *claims, {.key = key, .epoch = epoch, .payload = result},
                           effects, level);
  }
  [[nodiscard]] rocksdb::ColumnFamilyHandle* payments() const {
    return family(*storage, "payments");
  }
  /// "-": there is none.
  [[nodiscard]] std::string effect(const std::string& key) const {
    std::string value;
    const auto status = database(*storage).Get({}, payments(), key, &value);
    return status.ok() ? value : "-";
  }
  [[nodiscard]] ClaimState state(const std::string& key) { return claims->get(key).value().state; }
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;  // ends first
  std::optional<Claims> claims;
};

}  // namespace semel::tests
