#include "storage/start/pending_deltas.hpp"

#include <algorithm>
#include <iterator>

#include "semel/engine_host.hpp"

namespace semel::storage {

std::size_t PendingDeltas::bytes_of(const Key& key, const Delta& delta) noexcept {
  return sizeof(Delta) + key.second.size() + delta.trail.size();
}

void PendingDeltas::note(const Mutation& delta) {
  Key key{delta.db, std::string{delta.key}};
  Delta kept{delta.version, delta.base, delta.due, delta.kind, std::string{delta.trail}};
  const std::size_t bytes = bytes_of(key, kept);
  const base::MutexLock lock{mutex_};
  deltas_[std::move(key)].push_back(std::move(kept));
  bytes_.fetch_add(bytes, std::memory_order_relaxed);  // mo: relaxed: a hint
}

Status PendingDeltas::apply(Engine& engine, const Key& key, std::vector<Delta>& deltas) {
  std::stable_sort(deltas.begin(), deltas.end(),
                   [](const Delta& a, const Delta& b) { return a.version < b.version; });
  // A mutation may be in files and in the journal.
  const auto same = [](const Delta& a, const Delta& b) { return a.version == b.version; };
  deltas.erase(std::unique(deltas.begin(), deltas.end(), same), deltas.end());
  std::vector<Mutation> mutations;
  mutations.reserve(deltas.size());
  for (const Delta& delta : deltas) {
    Mutation& mutation = mutations.emplace_back();
    mutation.kind = delta.kind;
    mutation.db = key.first;
    mutation.key = key.second;
    mutation.version = delta.version;
    mutation.due = mutation.keep_until = delta.due;
    mutation.base = delta.base;
    mutation.trail = delta.trail;
  }
  SEMEL_TRY(done, restore_deltas(engine, mutations));
  deltas.erase(deltas.begin(), deltas.begin() + static_cast<std::ptrdiff_t>(done));
  return Done{};
}

Status PendingDeltas::apply(Engine& engine) {
  base::MutexLock applying{applying_, std::defer_lock};
  if (!applying.try_lock()) return Done{};
  Deltas taken;
  {
    const base::MutexLock lock{mutex_};
    taken.swap(deltas_);
  }
  for (auto at = taken.begin(); at != taken.end();) {
    SEMEL_CHECK(apply(engine, at->first, at->second));
    at = at->second.empty() ? taken.erase(at) : std::next(at);
  }
  const base::MutexLock lock{mutex_};
  for (auto& [key, deltas] : taken) {
    std::vector<Delta>& into = deltas_[key];
    into.insert(into.end(), std::make_move_iterator(deltas.begin()),
                std::make_move_iterator(deltas.end()));
  }
  std::size_t bytes = 0;
  for (const auto& [key, deltas] : deltas_) {
    for (const Delta& delta : deltas) bytes += bytes_of(key, delta);
  }
  bytes_.store(bytes, std::memory_order_relaxed);  // mo: relaxed: hints, both
  due_.store(std::max(due_at_first, 2 * bytes), std::memory_order_relaxed);
  return Done{};
}

std::string PendingDeltas::describe_left() const {
  const base::MutexLock lock{mutex_};
  if (deltas_.empty()) return {};
  const auto& [key, deltas] = *deltas_.begin();
  const auto first =
      std::min_element(deltas.begin(), deltas.end(),
                       [](const Delta& a, const Delta& b) { return a.version < b.version; });
  return std::to_string(deltas_.size()) + " objects have changes and not the record that was " +
         "changed, the first in database " + std::to_string(key.first) + ", key of " +
         std::to_string(key.second.size()) + " bytes: version " + std::to_string(first->version) +
         " follows on " + std::to_string(first->base) + ", which is missing";
}

}  // namespace semel::storage
