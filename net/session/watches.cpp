#include "net/session/watches.hpp"

#include <algorithm>
#include <new>

#include "base/assert.hpp"
#include "semel/engine_host.hpp"

namespace semel::net {

bool Watches::is_among(const std::vector<Watch>& watches, const Watcher& watcher) noexcept {
  return std::any_of(watches.begin(), watches.end(),
                     [&](const Watch& watch) { return watch.watcher == &watcher; });
}

Watches::State Watches::state_of(std::uint8_t db, Bytes key) {
  StoreOutcome found;
  engine_.host().apply({.verb = Verb::exists, .db = db, .key = key}, found);
  if (!found.found) return {};
  return {found.version, found.second == 0 ? no_end : Timestamp{Millis{found.second}}};
}

Status Watches::watch(Watcher& watcher, std::uint8_t db, Bytes key) {
  SEMEL_ASSERT(watcher.keys.size() < keys_max);
  const Name name{db, std::string{key}};
  {
    const base::MutexLock lock{mutex_};
    const auto entry = watched_.find(name);
    if (entry != watched_.end() && is_among(entry->second, watcher)) return Done{};
  }
  const KeyRef ref[] = {{db, key}};
  SEMEL_TRY(section, engine_.section(ref));
  const auto [version, next_end] = state_of(db, key);
  watcher.keys.push_back({db, name.second, version, next_end});
  const base::MutexLock lock{mutex_};
  try {
    watched_[name].push_back({&watcher, version});
  } catch (const std::bad_alloc&) {  // forget() finds each of its keys here
    watcher.keys.pop_back();
    const auto entry = watched_.find(name);
    if (entry != watched_.end() && entry->second.empty()) watched_.erase(entry);
    throw;
  }
  count_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: as in touched()
  return Done{};
}

void Watches::forget(Watcher& watcher) {
  const base::MutexLock lock{mutex_};
  for (const Watcher::Key& each : watcher.keys) {
    const auto entry = watched_.find(Name{each.db, each.key});
    SEMEL_ASSERT(entry != watched_.end());  // watch() adds to both or to none
    std::erase_if(entry->second, [&](const Watch& watch) { return watch.watcher == &watcher; });
    if (entry->second.empty()) watched_.erase(entry);
    count_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: as in touched()
  }
  watcher.keys.clear();
  watcher.touched.store(false, std::memory_order_relaxed);  // mo: relaxed: not shared yet
}

bool Watches::has_changed(const Watcher& watcher) {
  // mo: relaxed: set by commands that ended before the section began, or did not touch its keys.
  if (watcher.touched.load(std::memory_order_relaxed)) return true;
  return std::any_of(watcher.keys.begin(), watcher.keys.end(), [this](const Watcher::Key& each) {
    return each.next_end <= engine_.now() || version_of(each.db, each.key) != each.version;
  });
}

void Watches::all_touched() {
  std::vector<Name> names;
  {
    const base::MutexLock lock{mutex_};
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
  const base::MutexLock lock{mutex_};
  const auto entry = watched_.find(Name{db, std::string{key}});
  if (entry == watched_.end()) return;
  for (const Watch& watch : entry->second) {
    if (watch.version == version || (only_new && watch.version != 0)) continue;
    watch.watcher->touched.store(true, std::memory_order_relaxed);  // mo: relaxed: in has_changed()
  }
}

}  // namespace semel::net
