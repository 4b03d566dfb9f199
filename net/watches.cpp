#include "net/watches.hpp"

#include <algorithm>

namespace semel::net {

Version Watches::version_of(std::uint8_t db, Bytes key) {
  StoreOutcome found;
  engine_.apply({.verb = Verb::exists, .db = db, .key = key}, found);
  return found.found ? found.version : 0;
}

Status Watches::watch(Watcher& watcher, std::uint8_t db, Bytes key) {
  for (const Watcher::Key& each : watcher.keys) {
    if (each.db == db && each.key == key) return Done{};
  }
  const KeyRef ref[] = {{db, key}};
  SEMEL_TRY(section, engine_.section(ref));
  watcher.keys.push_back({db, std::string{key}, version_of(db, key)});
  const std::lock_guard lock{mutex_};
  watched_[Name{db, std::string{key}}].push_back(&watcher);
  count_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: as in touched()
  return Done{};
}

void Watches::forget(Watcher& watcher) {
  const std::lock_guard lock{mutex_};
  for (const Watcher::Key& each : watcher.keys) {
    const auto place = watched_.find(Name{each.db, each.key});
    std::erase(place->second, &watcher);
    if (place->second.empty()) watched_.erase(place);
    count_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: as in touched()
  }
  watcher.keys.clear();
  watcher.touched.store(false, std::memory_order_relaxed);  // mo: relaxed: nobody else has it
}

bool Watches::has_changed(const Watcher& watcher) {
  // mo: relaxed: set by commands that ended before the section began, or did not touch its keys.
  if (watcher.touched.load(std::memory_order_relaxed)) return true;
  return std::any_of(watcher.keys.begin(), watcher.keys.end(), [this](const Watcher::Key& each) {
    return version_of(each.db, each.key) != each.version;
  });
}

void Watches::all_touched() {
  std::vector<Name> names;
  {
    const std::lock_guard lock{mutex_};
    for (const auto& [name, watchers] : watched_) names.push_back(name);
  }
  for (const auto& [db, key] : names) mark(db, key, version_of(db, key), false);
}

void Watches::look(std::uint8_t db, Bytes key) {
  // Only a key that was absent and is there now must be remembered; all else is still to be seen at
  // EXEC.
  if (const Version version = version_of(db, key); version != 0) mark(db, key, version, true);
}

void Watches::mark(std::uint8_t db, Bytes key, Version version, bool only_new) {
  // The version was read before the lock, which may not be held while another's section is waited
  // for.
  const std::lock_guard lock{mutex_};
  const auto place = watched_.find(Name{db, std::string{key}});
  if (place == watched_.end()) return;
  for (Watcher* const watcher : place->second) {
    for (const Watcher::Key& each : watcher->keys) {
      if (each.db != db || each.key != key || each.version == version) continue;
      if (only_new && each.version != 0) continue;
      watcher->touched.store(true, std::memory_order_relaxed);  // mo: relaxed: as in has_changed()
    }
  }
}

}  // namespace semel::net
