// An engine on a clock that stands still, and what its tests ask of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/claims.hpp"
#include "semel/clock.hpp"
#include "semel/engine.hpp"
#include "semel/engine_host.hpp"
#include "semel/memory_journal.hpp"
#include "semel/store.hpp"

namespace semel::tests {

inline std::unique_ptr<Engine> open_engine(const Options& options) {
  auto opened = Engine::open(options);
  REQUIRE(opened.has_value());
  return *std::move(opened);
}

struct EngineFixture {
  explicit EngineFixture(Options options = {}) {
    options.clock = &clock;
    if (options.journal == nullptr) options.journal = &journal;
    engine = open_engine(options);
  }
  [[nodiscard]] Store store(std::uint8_t db = 0) { return engine->store(db); }
  /// Value of `key`, or "<none>".
  [[nodiscard]] std::string read(Bytes key, std::uint8_t db = 0) {
    return store(db).get(key).value().value_or("<none>");
  }
  bool put(Bytes key, Bytes value, Expiry expiry = Expiry::clear(), std::uint8_t db = 0) {
    const auto result = store(db).set(key, value, {.expiry = expiry});
    return result.has_value() && result->stored;
  }
  /// Moves the clock and gives memory back.
  void pass(Millis time) {
    clock.advance(time);
    while (engine->advance() == 0) {
    }
  }
  [[nodiscard]] Claims claims(Bytes name, const Policy& policy = {}) {
    auto made = engine->claims(name, policy);
    REQUIRE(made.has_value());
    return *made;
  }

  ManualClock clock;
  MemoryJournal journal;
  std::unique_ptr<Engine> engine;
};

/// The rules that are broken, a line each; empty: sound.
inline std::string broken_rules(Engine& engine) {
  std::string all;
  for (const std::string& rule : engine.host().check_invariants()) all.append(rule).append("\n");
  return all;
}

template <class T>
ErrorCode code_of(const Result<T>& result) {
  return result.ok() ? ErrorCode::ok : result.error().code;
}

/// What an engine holds, in a form that can be compared: (database, key) -> everything else.
struct Held {
  Kind kind = Kind::string;
  Timestamp due = no_end;
  Version version = 0;
  std::string bytes{};  ///< value; of a claim: state, epoch, attempts, result
  friend bool operator==(const Held&, const Held&) = default;
};
using Contents = std::map<std::pair<std::uint8_t, std::string>, Held>;

inline std::string describe(const ClaimRecord& claim) {
  return std::to_string(static_cast<int>(claim.state)) + " epoch " + std::to_string(claim.epoch) +
         " attempts " + std::to_string(claim.attempts) + " result " + std::string{claim.result};
}

inline Contents contents_of(Engine& engine) {
  Contents all;
  std::uint64_t cursor = 0;
  do {
    const auto next = engine.scan(cursor, {}, [&](const ScanItem& item) {
      all[{item.db, std::string{item.key}}] = {
          item.kind, item.due, item.version,
          item.claim != nullptr ? describe(*item.claim) : std::string{item.value}};
    });
    REQUIRE(next.has_value());
    cursor = *next;
  } while (cursor != 0);
  return all;
}

}  // namespace semel::tests
