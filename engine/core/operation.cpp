#include "engine/core/operation.hpp"

namespace semel::engine {

bool Operation::wait(Shard& shard, bool no_wait) noexcept {
  waited_ = true;
  core_.threads().leave(context_);
  const bool waited = shard.wait_for_section(no_wait);
  core_.threads().enter(context_);
  return waited;
}

bool Operation::reclaim(Room& tried) {
  core_.threads().leave(context_);
  const bool made = core_.upkeep().make_room(context_, tried);
  note_wait();
  core_.threads().enter(context_);
  return made;
}

bool Operation::admit_after_wait(KeyLocation& location, KeyRef key) noexcept {
  // The database is the same nearly always, and so is where its key lies.
  for (;; location = core_.keys().location_of(key)) {
    if (!try_admit(*location.shard)) return false;
    if (core_.databases().stored(key.db) == location.stored_db) return true;
  }
}

}  // namespace semel::engine
