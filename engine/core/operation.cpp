#include "engine/core/operation.hpp"

namespace semel::engine {

bool Core::Operation::wait(Shard& shard, bool no_wait) noexcept {
  waited_ = true;
  core_.threads_.leave(context_);
  const bool waited = shard.wait_for_section(no_wait);
  core_.threads_.enter(context_);
  return waited;
}

bool Core::Operation::reclaim(Room& tried) {
  core_.threads_.leave(context_);
  const bool made = core_.make_room(context_, tried);
  note_wait();
  core_.threads_.enter(context_);
  return made;
}

bool Core::admit_after_wait(Operation& operation, KeyLocation& location, KeyRef key) noexcept {
  do {
    location = location_of(key);
    if (!operation.try_admit(*location.shard)) return false;
  } while (databases_.stored(key.db) != location.stored_db);
  return true;
}

}  // namespace semel::engine
