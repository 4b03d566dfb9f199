#include "net/cluster/script_turns.hpp"

#include <utility>

#include "base/assert.hpp"

namespace semel::net {

std::uint64_t ScriptTurns::class_of(std::uint8_t db, std::string_view key) noexcept {
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325U ^ db;  // FNV-1a
  for (const char each : key) {
    hash ^= static_cast<unsigned char>(each);
    hash *= 0x0000'0100'0000'01B3U;
  }
  return std::uint64_t{1} << (hash >> 58U);
}

bool ScriptTurns::Turn::ask(ScriptTurns& turns, std::uint64_t classes) {
  SEMEL_ASSERT(turns_ == nullptr && classes != 0);
  const base::MutexLock lock{turns.mutex_};
  bool is_free = true;
  for (const Place& each : turns.places_) is_free = is_free && (each.classes & classes) == 0;
  turns.places_.push_back({turns.numbers_ + 1, classes, is_free, {}});
  turns_ = &turns;
  number_ = ++turns.numbers_;
  classes_ = classes;
  return is_free;
}

void ScriptTurns::Turn::when_given(std::function<void()> then) {
  SEMEL_ASSERT(turns_ != nullptr);
  {
    const base::MutexLock lock{turns_->mutex_};
    for (Place& each : turns_->places_) {
      if (each.number != number_ || each.is_given) continue;
      each.then = std::move(then);
      return;
    }
  }
  then();
}

void ScriptTurns::Turn::give_back() noexcept {
  ScriptTurns* const turns = std::exchange(turns_, nullptr);
  if (turns == nullptr) return;
  {
    const base::MutexLock lock{turns->mutex_};
    turns->places_.remove_if([&](const Place& each) { return each.number == number_; });
  }
  // One after the other: this must not allocate.
  std::function<void()> then;
  while (turns->give_next(then)) {
    if (then) then();
    then = nullptr;
  }
}

bool ScriptTurns::give_next(std::function<void()>& then) noexcept {
  const base::MutexLock lock{mutex_};
  std::uint64_t taken = 0;
  for (Place& each : places_) {
    const bool is_next = !each.is_given && (each.classes & taken) == 0;
    taken |= each.classes;
    if (!is_next) continue;
    each.is_given = true;
    then = std::move(each.then);
    return true;
  }
  return false;
}

}  // namespace semel::net
