#include "tests/storage/faults/world.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "engine/object_api/object_calls.hpp"
#include "semel/engine_host.hpp"
#include "tests/storage/faults/joined_work.hpp"

namespace semel::faults {
namespace {

using namespace std::chrono_literals;

constexpr unsigned strings_each = 24;
constexpr unsigned claims_each = 16;
constexpr unsigned lists_each = 3;
constexpr std::uint64_t list_elements = 60;
constexpr std::size_t pair_bytes = 12'000;  // two of them: several records where segments are small
constexpr Millis lease = 8'760h;
constexpr Millis result_ttl = 3'000ms;

std::string key_of(unsigned thread, const char* kind, std::uint64_t number) {
  return std::to_string(thread) + "." + kind + std::to_string(number);
}

bool is_claim(const std::string& key) {
  return key.find(".c") != std::string::npos;
}

bool is_list(const std::string& key) {
  return key.find(".l") != std::string::npos;
}

/// A list has a number, and the next number differs in one element: that has the largest number up
/// to the list's which has its rank as a remainder.
std::string element_of(std::uint64_t number, std::uint64_t rank) {
  const std::uint64_t behind = (number + list_elements - rank) % list_elements;
  std::string element = std::to_string(number - behind);
  return element.append(40 - element.size(), '.');
}

std::string list_state(std::uint64_t number) {
  return "l:" + std::to_string(number);
}

std::string list_state(const engine::ObjectReader& list) {
  if (list.empty()) return absent;
  std::uint64_t number = 0;
  list.each(0, list.size(), [&](const engine::Element& element) {
    number = std::max<std::uint64_t>(
        number, std::strtoull(std::string{element.value}.c_str(), nullptr, 10));
    return true;
  });
  if (list.size() != list_elements) return "l:elements";
  for (std::uint64_t rank = 0; rank < list_elements; ++rank) {
    if (list.at(rank).value != element_of(number, rank)) return list_state(number) + " broken";
  }
  return list_state(number);
}

/// Numbers of a state "h:EPOCH" or "d:EPOCH:..".
Epoch epoch_of(const std::string& state) {
  return std::strtoull(state.c_str() + 2, nullptr, 10);
}

std::string held(Epoch epoch) {
  return "h:" + std::to_string(epoch);
}

std::string done(Epoch epoch, const std::string& result) {
  return "d:" + std::to_string(epoch) + ":" + result;
}

std::map<std::string, ClaimEnd> claim_ends(const std::map<std::string, std::string>& states) {
  std::map<std::string, ClaimEnd> ends;
  for (const auto& [key, state] : states) {
    if (!is_claim(key) || state == absent) continue;
    const std::size_t at = state.find(':', 2);
    const bool is_done = state[0] == 'd' && at != std::string::npos;
    ends[key] = {epoch_of(state), is_done ? state.substr(at + 1) : std::string{}};
  }
  return ends;
}

}  // namespace

Result<World> open_world(const StorageOptions& options, const Clock& clock, Durability level,
                         Joins joins, const std::string& cold) {
  World world;
  SEMEL_TRY(storage, joins == Joins::no ? Storage::open(options, clock)
                                        : open_storage(options, clock, families_of_joins()));
  world.storage = std::move(storage);
  if (joins == Joins::yes) SEMEL_CHECK(begin_joins(*world.storage));
  if (!cold.empty()) {
    SEMEL_TRY(beside, open_cold_directory({.directory = cold,
                                           .cache_bytes = std::size_t{1} << 20,
                                           .clock_ahead_max = options.clock_ahead_max,
                                           .disk = options.disk},
                                          clock));
    world.cold = std::move(beside);
  }
  SEMEL_TRY(engine, Engine::open({.clock = &clock,
                                  .journal = world.storage.get(),
                                  .durability = level,
                                  .cold = world.cold.get(),
                                  .spill_ttl_min = Millis{0},
                                  .memory_bytes = std::size_t{64} << 20,
                                  .value_bytes_max = std::size_t{64} << 10,
                                  .first_version = world.storage->first_version()}));
  world.engine = std::move(engine);
  SEMEL_TRY(report, world.storage->recover(*world.engine));
  world.report = report;
  SEMEL_CHECK(world.engine->claims(claims_name, {.lease = lease, .result_ttl = result_ttl}));
  return world;
}

Status spill(World& world) {
  const auto done = world.engine->host().spill();
  // Strings without an end keep their generations for ever. Where the log is full for a moment a
  // spill is refused like any other work.
  if (done || done.error().code == ErrorCode::refused ||
      done.error().detail.find("generations") != std::string::npos) {
    return Done{};
  }
  return done.error();
}

Ledger new_ledger(unsigned threads) {
  Ledger ledger;
  for (unsigned t = 0; t < threads; ++t) {
    for (unsigned i = 0; i < strings_each; ++i) ledger[key_of(t, "s", i)];
    for (unsigned i = 0; i < claims_each; ++i) ledger[key_of(t, "c", i)];
    for (unsigned i = 0; i < lists_each; ++i) ledger[key_of(t, "l", i)];
    ledger[key_of(t, "p", 0)];
    ledger[key_of(t, "p", 1)];
  }
  return ledger;
}

Epoch largest_epoch(const Ledger& ledger) {
  Epoch largest = 0;
  for (const auto& [key, history] : ledger) {
    const std::string& state = history.newest();
    if (state[0] != 'h' && state[0] != 'd') continue;
    largest = std::max<Epoch>(largest, std::strtoull(state.c_str() + 2, nullptr, 10));
  }
  return largest;
}

Result<std::string> state_of(World& world, const std::string& key) {
  if (is_list(key)) {
    std::string state;
    SEMEL_CHECK(engine::read_object(*world.engine, {0, key}, Kind::list,
                                    [&](const auto& list) { state = list_state(list); }));
    return state;
  }
  if (!is_claim(key)) {
    SEMEL_TRY(value, world.engine->store().get(key));
    return value ? "s:" + *value : std::string{absent};
  }
  SEMEL_TRY(view, world.claims().get(key));
  if (view.state == ClaimState::held) return held(view.epoch);
  if (view.state == ClaimState::done) return done(view.epoch, view.result);
  if (view.state == ClaimState::absent || view.state == ClaimState::vacant) {
    return std::string{absent};
  }
  return "state " + std::to_string(static_cast<int>(view.state));
}

Worker::Worker(World& world, Ledger& ledger, const Clock& clock, const Options& options)
    : world_(world),
      claims_(world.claims()),
      ledger_(ledger),
      clock_(clock),
      options_(options),
      random_(options.seed) {}

std::vector<std::string> Worker::strings() const {
  std::vector<std::string> names;
  for (unsigned i = 0; i < strings_each; ++i) names.push_back(key_of(options_.thread, "s", i));
  return names;
}

std::string Worker::new_value(std::size_t longest) {
  std::string value = options_.process + "/" + std::to_string(++number_) + "/";
  value.append(random_.below(random_.chance(1, 2) ? 40 : longest),
               static_cast<char>('a' + number_ % 26));
  return value;
}

void Worker::wrong(const std::string& what) {
  if (tally_.wrong++ == 0) tally_.first_wrong = what;
}

/// Writes down the answer to what was asked. True: acknowledged.
bool Worker::told(ErrorCode error, std::initializer_list<History*> histories) {
  if (error == ErrorCode::ok) {
    ++tally_.acknowledged;
    const Timestamp at = system_.now();
    const bool certain = options_.level == Durability::synced;
    for (History* history : histories) history->acknowledge(certain, at);
    return true;
  }
  tally_.last_error = std::string{name_of(error)};
  const bool unknown = error == ErrorCode::outcome_unknown;
  ++(unknown ? tally_.unknown : tally_.refused);
  if (!unknown) {
    for (History* history : histories) history->withdraw();
  }
  return false;
}

/// Absence was asked for. A delete that found nothing has written nothing: that a key is absent may
/// rest on an end that is undone with the last of the clock (docs/guarantees.md).
bool Worker::told_deleted(const Result<bool>& deleted, const std::string& key) {
  History& history = ledger_.at(key);
  if (!deleted.ok()) return told(deleted.error().code, {&history});
  if (*deleted) return told(ErrorCode::ok, {&history});
  history.withdraw();
  if (!history.may_be_absent(clock_.unix_ms() + options_.slack.count())) {
    wrong("a delete did not find " + key + ", which was " + history.newest().substr(0, 40));
  }
  return told(ErrorCode::ok, {});
}

void Worker::look_at_own() {
  const std::string mine = std::to_string(options_.thread) + ".";
  const std::int64_t slack = options_.slack.count();
  for (const auto& [key, history] : ledger_) {
    if (key.compare(0, mine.size(), mine) != 0) continue;
    const std::int64_t from = clock_.unix_ms();
    const auto state = state_of(world_, key);
    const std::int64_t to = clock_.unix_ms();
    if (!state) return;
    ++tally_.looks;
    if (history.may_be(*state, from - slack, to + slack)) continue;
    wrong(key + " holds " + state->substr(0, 40) + " at " + std::to_string(from) + ", and is " +
          history.newest().substr(0, 40) + " until " + std::to_string(history.newest_ends()));
  }
}

bool Worker::step() {
  const std::uint64_t choice = random_.below(64);
  if (choice == 0) return confirm();
  if (choice < 4 && !options_.all_ends) return set_pair();
  if (choice < 12 && !options_.all_ends) return change_list();
  if (choice < 34) return set_or_delete();
  return work_on_claim();
}

bool Worker::confirm() {
  const Status status = world_.engine->confirm(Durability::synced);
  if (!status) {
    tally_.last_error = std::string{name_of(status.error().code)};
    return false;
  }
  ++tally_.confirmed;
  const std::string mine = std::to_string(options_.thread) + ".";
  for (auto& [key, history] : ledger_) {
    if (key.compare(0, mine.size(), mine) == 0) history.make_certain();
  }
  return true;
}

bool Worker::set_or_delete() {
  const std::string key = key_of(options_.thread, "s", random_.below(strings_each));
  History& history = ledger_.at(key);
  Store store = world_.engine->store();
  if (random_.chance(1, 4)) {
    history.ask(absent);
    return told_deleted(store.del(key), key);
  }
  const std::string value = new_value(options_.value_bytes);
  constexpr std::array<Millis, 5> ttls{0ms, 0ms, 700ms, 3'000ms, 40'000ms};
  constexpr std::array<Millis, 3> short_ttls{200ms, 700ms, 3'000ms};
  constexpr std::array<Millis, 6> all_ttls{1ms,       900ms,       5'000ms,
                                           600'000ms, 3'600'000ms, 90'000'000ms};
  const Millis ttl = options_.all_ends                           ? random_.pick(short_ttls)
                     : options_.all_ttls && random_.chance(1, 2) ? random_.pick(all_ttls)
                                                                 : random_.pick(ttls);
  const bool ends = ttl != 0ms;
  if (ends) {
    history.ask("s:" + value, clock_.unix_ms(), ttl);
  } else {
    history.ask("s:" + value);
  }
  const auto set = store.set(key, value, {.expiry = ends ? Expiry::in(ttl) : Expiry::clear()});
  history.begun_by(clock_.unix_ms());
  return told(set.ok() ? ErrorCode::ok : set.error().code, {&history});
}

/// To its next number, in what little differs; sometimes it goes.
bool Worker::change_list() {
  const std::string key = key_of(options_.thread, "l", random_.below(lists_each));
  History& history = ledger_.at(key);
  if (random_.chance(1, 20)) {
    history.ask(absent);
    return told_deleted(world_.engine->store().del(key), key);
  }
  const std::string state = history.newest();
  const std::uint64_t number = state[0] == 'l' ? 1 + std::strtoull(state.c_str() + 2, nullptr, 10)
                                               : 1'000 + random_.below(1'000'000'000'000);
  history.ask(list_state(number));
  const auto changed =
      engine::change_object(*world_.engine, {0, key}, Kind::list, [&](engine::ObjectEdit& list) {
        for (std::uint64_t rank = 0; rank < list_elements; ++rank) {
          const std::string wanted = element_of(number, rank);
          if (rank == list.size()) list.insert_at(rank, wanted);
          if (list.at(rank).value != wanted) list.set_at(rank, wanted);
        }
        return ErrorCode::ok;
      });
  return told(changed.ok() ? ErrorCode::ok : changed.error().code, {&history});
}

/// Two keys in one step: both or none.
bool Worker::set_pair() {
  const std::string one = key_of(options_.thread, "p", 0);
  const std::string two = key_of(options_.thread, "p", 1);
  const std::string value = new_value(pair_bytes);
  History& first = ledger_.at(one);
  History& second = ledger_.at(two);
  first.ask("s:" + value);
  second.ask("s:" + value);
  const std::array<KeyValue, 2> pairs{KeyValue{one, value}, KeyValue{two, value}};
  const Status set = world_.engine->store().mset(pairs);
  return told(set.ok() ? ErrorCode::ok : set.error().code, {&first, &second});
}

bool Worker::work_on_claim() {
  const std::string key = key_of(options_.thread, "c", random_.below(claims_each));
  History& history = ledger_.at(key);
  const std::string state = history.newest();
  const bool ended = history.newest_ends() != never_ends;
  // Where many are completed, few would be left to be.
  const bool is_cleared = options_.joins == Joins::yes && state[0] == 'd' && random_.chance(1, 2);
  if (state.back() == '*' || is_cleared || random_.chance(1, 12)) {  // or its epoch is not known
    history.ask(absent);
    return told_deleted(claims_.forget(key), key);
  }
  if (state[0] == 'h' && !ended && !random_.chance(1, 5)) return own_claim(history, key);
  return ask_for_claim(history, key);
}

bool Worker::ask_for_claim(History& history, const std::string& key) {
  const std::string state = history.newest();
  const std::int64_t ends = history.newest_ends();
  const std::int64_t ends_by = history.newest_ends_by();
  const std::int64_t before = clock_.unix_ms();
  history.ask("h:*");  // its epoch comes with the answer
  const ClaimOutcome outcome = claims_.claim({.key = key, .session = SessionId{0}});
  const bool may_be_free = state == absent || clock_.unix_ms() >= ends || state.back() == '*';
  const bool granted = outcome.error == ErrorCode::ok && outcome.answer == ClaimAnswer::granted;
  if (granted) {
    if (!may_be_free) wrong("granted " + key + ", which was " + state);
    history.rename(held(outcome.epoch));
    tally_.epochs.push_back(outcome.epoch);
  }
  if (granted || (outcome.error == ErrorCode::outcome_unknown && may_be_free)) {
    return told(outcome.error, {&history});
  }
  history.withdraw();  // what was there stays as it is
  if (outcome.error != ErrorCode::ok) return told(outcome.error, {});
  // A repeat: it must say what is known.
  const bool right = (outcome.answer == ClaimAnswer::in_flight && state[0] == 'h') ||
                     (outcome.answer == ClaimAnswer::replay && state[0] == 'd' &&
                      before < ends_by && state == done(epoch_of(state), outcome.result));
  if (!right) {
    wrong("answer " + std::to_string(static_cast<int>(outcome.answer)) + " for " + key +
          ", which was " + state.substr(0, 40));
  }
  return true;
}

/// Joined with an effect if the result says so. Nothing: rightly refused, and nothing was changed.
std::optional<OwnerOutcome> Worker::complete(const OwnerCall& call) {
  if (!is_joined(std::string{call.payload})) return claims_.complete(call);
  JoinedAnswer answer = complete_with_effect(
      world_, claims_, call, std::max(options_.level, Durability::logged), random_, tally_.joins);
  if (!answer.wrong.empty()) wrong(answer.wrong);
  if (answer.is_refused) return std::nullopt;
  return std::move(answer.owner);
}

bool Worker::own_claim(History& history, const std::string& key) {
  const Epoch epoch = epoch_of(history.newest());
  const bool releases = random_.chance(1, 4);
  std::string result = new_value(options_.value_bytes);
  if (options_.joins == Joins::yes && random_.chance(1, 2)) {
    result = joined_result(std::move(result));
  }
  if (releases) {
    history.ask(absent);
  } else {
    history.ask(done(epoch, result), clock_.unix_ms(), result_ttl);
  }
  const std::optional<OwnerOutcome> answer =
      releases ? claims_.release({.key = key, .epoch = epoch})
               : complete({.key = key, .epoch = epoch, .payload = result});
  history.begun_by(clock_.unix_ms());
  if (!answer) {
    history.withdraw();
    return true;
  }
  const OwnerOutcome& outcome = *answer;
  if (outcome.error == ErrorCode::ok && outcome.answer != OwnerAnswer::ok) {
    history.withdraw();
    wrong("owner of " + key + " with epoch " + std::to_string(epoch) + " was told " +
          std::to_string(static_cast<int>(outcome.answer)));
    return true;
  }
  return told(outcome.error, {&history});
}

Observer::Observer(World& world, const Ledger& ledger, std::uint64_t seed)
    : world_(world), random_(seed) {
  for (const auto& [key, history] : ledger) keys_.push_back(key);
}

bool Observer::step() {
  const std::string& key = keys_[random_.below(keys_.size())];
  const auto state = state_of(world_, key);
  if (!state) return false;
  // That a key is absent is the one answer that may rest on less (docs/guarantees.md).
  if (*state != absent) seen_[key] = *state;
  return true;
}

void Observer::hand_over(Ledger& ledger) const {
  for (const auto& [key, state] : seen_) ledger.at(key).show(state);
}

Result<Found> compare(World& world, Ledger& ledger, const Clock& clock, Timestamp horizon,
                      const std::function<void(const std::string&)>& say, Millis slack) {
  Found found;
  std::map<std::string, std::string> states;
  for (auto& [key, history] : ledger) {
    const std::int64_t from = clock.unix_ms() - slack.count();
    SEMEL_TRY(state, state_of(world, key));
    const History::Verdict verdict =
        history.judge(state, from, clock.unix_ms() + slack.count(), horizon);
    if (verdict.oldest_lost != Timestamp{} &&
        (found.oldest_lost == Timestamp{} || verdict.oldest_lost < found.oldest_lost)) {
      found.oldest_lost = verdict.oldest_lost;
    }
    states[key] = state;
    if (verdict.right) continue;
    // A held claim whose ending was lost is an ending lost, not a deleted key that is back.
    found.back += verdict.expected == absent && state != absent ? 1 : 0;
    ++(verdict.is_older || state == absent ? found.lost : found.strange);
    say(key + " holds " + state.substr(0, 60) + ", expected " + verdict.expected + verdict.story);
  }
  for (const auto& [key, state] : states) {
    if (key.find(".p0") == std::string::npos) continue;
    std::string other = key;
    other.back() = '1';
    if (states.at(other) == state) continue;
    ++found.parted;
    say(key + " and " + other + " were written in one step and differ");
  }
  SEMEL_TRY(parted, parted_effects(world, claim_ends(states), say));
  found.parted += parted;
  SEMEL_TRY(keys, world.engine->store().keys("*"));
  const std::string prefix = std::string{claims_name} + ":";
  for (std::string key : keys) {
    if (key.compare(0, prefix.size(), prefix) == 0) key.erase(0, prefix.size());
    if (ledger.count(key) != 0 || key.find('-') != std::string::npos) continue;
    ++found.strange;
    say(key + " was never asked for");
  }
  return found;
}

}  // namespace semel::faults
