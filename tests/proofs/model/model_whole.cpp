// The model proof's looks at everything, and the operations on everything.
#include <algorithm>

#include "engine/api/owned_mutation.hpp"
#include "semel/engine_host.hpp"
#include "tests/proofs/model/model_run.hpp"

namespace semel::proofs {
namespace {

bool is_vacant(const KeyState& state) {
  return state.kind == Kind::claim && state.claim.state == ClaimState::vacant;
}

}  // namespace

/// Scans `engine` and compares with the world: every live record is met, nothing else, each as it
/// must be. `learns`: versions seen for the first time are kept.
void ModelRun::compare_with(Engine& engine, const char* what, bool learns) {
  std::array<std::unordered_map<std::string, bool>, limits::db_count> met;
  std::uint64_t cursor = 0;
  ScanOptions options;
  options.count = random_.between(1, 500);
  do {
    const auto next = engine.scan(cursor, options, [&](const ScanItem& item) {
      if (failed_) return;
      const std::string key{item.key};
      KeyState& here = state(item.db, key);
      KeyState copy = here;
      Mutation shown;
      shown.kind = item.kind;
      shown.due = item.due;
      shown.version = item.version;
      shown.value = item.value;
      std::uint32_t session = 0;
      if (item.claim != nullptr) {
        shown.claim = *item.claim;
        session = session_number(item.claim->session);
      }
      if (item.due <= clock_.now()) fail(std::string{what} + ": shows what has ended: " + key);
      const Complaint complaint = step_shown(learns ? here : copy, shown, session, now());
      if (complaint != nullptr) {
        fail(std::string{what} + ": " + complaint + ": " + key + " of " + std::to_string(item.db));
      }
      met[item.db][key] = true;
    });
    if (!next.ok()) return fail(std::string{what} + ": scan is refused");
    cursor = *next;
  } while (cursor != 0 && !failed_);
  for (std::uint8_t db = 0; db < limits::db_count && !failed_; ++db) {
    for (const auto& [key, here] : world_[db]) {
      if (met[db].contains(key) || is_vacant(here)) continue;
      if (const Complaint complaint = step_not_shown(here, now())) {
        fail(std::string{what} + ": " + complaint + ": " + key + " of " + std::to_string(db));
      }
    }
  }
}

void ModelRun::do_size() {
  const auto db = static_cast<std::uint8_t>(random_.below(db_count));
  std::uint64_t there = 0;
  for (const auto& [key, here] : world_[db]) there += alive(here, now()) ? 1U : 0U;
  note("size of " + std::to_string(db));
  const std::uint64_t returned = engine_->size(db);
  expect(returned == there,
         "size returns " + std::to_string(returned) + ", not " + std::to_string(there));
}

void ModelRun::compare_everything() {
  compare_with(*engine_, "scan", true);
  if (!failed_) do_size();
  if (failed_ || !random_.chance(1, 4)) return;
  // KEYS and RANDOMKEY are built on the scan: what they tell is there, and all of it.
  Store store = engine_->store(0);
  std::size_t there = 0;
  for (const auto& [key, here] : world_[0]) there += alive(here, now()) && !is_vacant(here) ? 1 : 0;
  const auto keys = store.keys("*");
  expect(keys && keys->size() == there, "keys tells a wrong number of keys");
  const auto one = store.randomkey();
  expect(one.ok() && (one->has_value() || there == 0), "randomkey finds nothing");
  if (!failed_ && one->has_value()) expect(is_there(0, **one), "randomkey tells a dead key");
}

void ModelRun::compare_snapshot() {
  note("snapshot into a second engine");
  Options options;
  options.clock = &clock_;
  options.memory_bytes = profile_.memory_bytes;
  options.value_bytes_max = profile_.value_bytes_max;
  options.shard_count = 1U << random_.below(4);
  auto second = Engine::open(options);
  if (!second) return fail("a second engine does not open");
  const Status status = engine_->host().snapshot([&](const Mutation& mutation) {
    if (!(*second)->host().restore(mutation)) fail("restore of a snapshot record is refused");
  });
  expect(status.has_value(), "a snapshot is refused");
  if (!failed_) compare_with(**second, "snapshot restored", false);
  if (!failed_) compare_new_version(**second);
}

/// What a restored engine hands out must be larger than all it was given.
void ModelRun::compare_new_version(Engine& engine) {
  Version largest = 0;
  for (const auto& db : world_) {
    for (const auto& [key, here] : db) largest = std::max(largest, here.version);
  }
  StoreOutcome outcome;
  engine.host().apply({.verb = Verb::set, .key = "a new key of a restored engine"}, outcome);
  expect(outcome.version > largest, "a restored engine hands out an old version");
}

void ModelRun::compare_replay() {
  note("replay of the journal in random order");
  std::vector<engine::OwnedMutation> kept;
  journal_.replay([&](Ticket, const Mutation& mutation) { kept.emplace_back(mutation); });
  for (std::size_t i = kept.size(); i > 1; --i) std::swap(kept[i - 1], kept[random_.below(i)]);
  Options options;
  options.clock = &clock_;
  options.memory_bytes = profile_.memory_bytes;
  options.value_bytes_max = profile_.value_bytes_max;
  options.shard_count = 1U << random_.below(4);
  auto second = Engine::open(options);
  if (!second) return fail("a second engine does not open");
  for (const engine::OwnedMutation& one : kept) {
    if (!(*second)->host().restore(one.view()))
      return fail("restore of a journal record is refused");
  }
  compare_with(**second, "journal replayed in random order", false);
  if (!failed_) compare_new_version(**second);
}

void ModelRun::verify() {
  const std::vector<std::string> broken = engine_->host().check_invariants();
  if (!broken.empty()) fail("invariant: " + broken.front());
}

void ModelRun::do_flush() {
  std::optional<std::uint8_t> db;
  if (random_.chance(3, 4)) db = static_cast<std::uint8_t>(random_.below(db_count));
  note("flush " + (db ? std::to_string(*db) : std::string{"everything"}));
  std::uint64_t there = 0;
  for (std::uint8_t each = 0; each < limits::db_count; ++each) {
    if (db && *db != each) continue;
    for (auto& [key, here] : world_[each]) {
      there += alive(here, now()) ? 1U : 0U;
      remove(here);
    }
  }
  const bool later = random_.chance(1, 2);
  const std::uint64_t returned =
      engine_->flush(db, later ? FlushMode::async : FlushMode::sync).value();
  // Those that ended and are not swept yet count where nothing is waited for.
  expect(later ? returned >= there : returned == there,
         "flush returns " + std::to_string(returned) + ", not " + std::to_string(there));
}

void ModelRun::do_swap() {
  const auto one = static_cast<std::uint8_t>(random_.below(db_count));
  const auto other = static_cast<std::uint8_t>(random_.below(db_count));
  note("swap " + std::to_string(one) + " and " + std::to_string(other));
  expect(engine_->swap_db(one, other).has_value(), "swap_db is refused");
  if (one != other) std::swap(world_[one], world_[other]);
}

}  // namespace semel::proofs
