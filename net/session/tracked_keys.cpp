#include "net/session/tracked_keys.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/random.hpp"

namespace semel::net {

void TrackedKeys::add(std::uint64_t id, std::string_view key) {
  auto entry = table_.find(key);
  if (entry == table_.end()) {
    order_.push_back(nullptr);
    entry = table_.emplace(std::string{key}, Readers{.place = order_.size() - 1}).first;
    order_.back() = &entry->first;
    bytes_ += key_bytes + key.size();
  }
  Ids& ids = entry->second.ids;
  const auto at = std::lower_bound(ids.begin(), ids.end(), id);
  if (at != ids.end() && *at == id) return;
  ids.insert(at, id);
  ++items_;
  bytes_ += sizeof id;
}

bool TrackedKeys::has(std::uint64_t id, std::string_view key) const {
  const auto entry = table_.find(key);
  return entry != table_.end() &&
         std::binary_search(entry->second.ids.begin(), entry->second.ids.end(), id);
}

TrackedKeys::Ids TrackedKeys::take(std::string_view key) {
  const auto entry = table_.find(key);
  if (entry == table_.end()) return {};
  Ids ids = std::move(entry->second.ids);
  items_ -= ids.size();
  bytes_ -= key_bytes + key.size() + ids.size() * sizeof(Ids::value_type);
  const std::size_t place = entry->second.place;
  SEMEL_ASSERT(place < order_.size());
  order_[place] = order_.back();
  table_.find(*order_[place])->second.place = place;
  order_.pop_back();
  table_.erase(entry);
  return ids;
}

void TrackedKeys::clear() noexcept {
  table_.clear();
  order_.clear();
  items_ = 0;
  bytes_ = 0;
}

std::string TrackedKeys::any_key() {
  SEMEL_ASSERT(!order_.empty());
  return *order_[base::next_random(random_) % order_.size()];
}

}  // namespace semel::net
