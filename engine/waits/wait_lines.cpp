#include "engine/waits/wait_lines.hpp"

#include <algorithm>
#include <numeric>

#include "base/assert.hpp"
#include "semel/limits.hpp"

namespace semel::engine {
namespace {

/// What the heap takes for a node of a map or table besides its value, about.
constexpr std::size_t node_overhead = 64;

/// A node of a map, to be put into another one later without an allocation.
template <class Map>
typename Map::node_type make_node() {
  Map made;
  made.try_emplace(typename Map::key_type{});
  return made.extract(made.begin());
}

}  // namespace

bool Waiter::may_be_of(const KeyRef& key) const noexcept {
  return places.empty() || std::any_of(places.begin(), places.end(), [&](const WaitPlace& each) {
           return each.line->name == LineName{key.db, key.key};
         });
}

WaitLines::Entrance::Entrance(std::span<const KeyRef> all, Timestamp deadline)
    : node(make_node<Waiters>()), timer(make_node<Alarms<Waiter>>()) {
  keys.reserve(all.size());
  for (const KeyRef& each : all) {
    OfKey& made = keys.emplace_back();
    made.key = std::make_shared<const std::string>(each.key);
    made.name = {each.db, *made.key};
    made.line = make_node<Lines>();
    made.timer = make_node<Alarms<WaitLine>>();
    WaitLine& line = made.line.mapped();
    line.charged = sizeof(Lines::value_type) + 3 * node_overhead +
                   sizeof(Alarms<WaitLine>::value_type) + made.key->size();
    bytes += line.charged;
  }
  Waiter& made = node.mapped();
  made.places.resize(all.size());
  made.deadline = deadline;
  made.charged = sizeof(Waiters::value_type) + 2 * node_overhead +
                 sizeof(Alarms<Waiter>::value_type) + all.size() * sizeof(WaitPlace);
}

ErrorCode WaitLines::enter(Entrance& entrance) {
  Waiter& waiter = entrance.waiter();
  SEMEL_ASSERT(!entrance.keys.empty() && waiter.attempt != nullptr);
  waiter.charged += waiter.attempt->bytes();
  if (region_.used_bytes() + waiter.charged + entrance.bytes >
      region_.limit_bytes(Region::Use::record)) {
    return ErrorCode::memory_full;
  }
  if (marks_.waiting() >= limits::waiters_total_max) return ErrorCode::waiters_full;
  for (const Entrance::OfKey& each : entrance.keys) {
    const WaitLine* const line = find(each.name);
    if (line != nullptr && line->size >= limits::waiters_per_key_max)
      return ErrorCode::waiters_full;
  }
  // May throw: nothing has changed yet. The rest does not.
  lines_.reserve(lines_.size() + entrance.keys.size());
  region_.charge(static_cast<std::ptrdiff_t>(waiter.charged));
  waiter.ticket = ++tickets_;
  if (waiter.arrival == 0) waiter.arrival = waiter.ticket;
  marks_.add_waiter();
  for (std::size_t i = 0; i < entrance.keys.size(); ++i) {
    WaitPlace& place = waiter.places[i];
    place.waiter = &waiter;
    place.line = &line_of(entrance.keys[i]);
    place.key = i;
    place.kind = waiter.attempt->kind();
    insert(place);
  }
  if (waiter.deadline != no_end) {
    entrance.timer.key() = {waiter.deadline, waiter.ticket};
    entrance.timer.mapped() = &waiter;
    waiter.timer = deadlines_.insert(std::move(entrance.timer)).position;
  }
  entrance.node.key() = waiter.ticket;
  waiters_.insert(std::move(entrance.node));
  return ErrorCode::ok;
}

WaitLine& WaitLines::line_of(Entrance::OfKey& key) noexcept {
  if (WaitLine* const known = find(key.name); known != nullptr) return *known;
  key.line.key() = key.name;
  WaitLine& line = lines_.insert(std::move(key.line)).position->second;
  line.name = key.name;
  line.key = key.key;
  line.ticket = ++tickets_;
  region_.charge(static_cast<std::ptrdiff_t>(line.charged));
  key.timer.key() = {no_end, line.ticket};
  key.timer.mapped() = &line;
  line.timer = rechecks_.insert(std::move(key.timer)).position;
  return line;
}

void WaitLines::insert(WaitPlace& place) noexcept {
  WaitLine& line = *place.line;
  WaitPlace* before = line.last;
  while (before != nullptr && before->waiter->arrival > place.waiter->arrival) {
    before = before->before;
  }
  WaitPlace* const after = before == nullptr ? line.first : before->after;
  place.before = before;
  place.after = after;
  (before == nullptr ? line.first : before->after) = &place;
  (after == nullptr ? line.last : after->before) = &place;
  ++line.size;
  ++line.sizes[static_cast<std::size_t>(place.kind)];
  marks_.add_place(line.name);
}

void WaitLines::unlink(WaitPlace& place) noexcept {
  WaitLine& line = *place.line;
  SEMEL_ASSERT(line.size != 0);
  (place.before == nullptr ? line.first : place.before->after) = place.after;
  (place.after == nullptr ? line.last : place.after->before) = place.before;
  --line.size;
  --line.sizes[static_cast<std::size_t>(place.kind)];
  marks_.remove_place(line.name);
}

void WaitLines::take_out(Waiter& waiter) noexcept {
  SEMEL_ASSERT(waiter.state == Waiter::State::waiting || waiter.state == Waiter::State::asked);
  look_into_others(waiter);
  for (WaitPlace& place : waiter.places) {
    unlink(place);
    erase_if_idle(*place.line);
  }
  waiter.places.clear();
  waiter.asked_by = nullptr;
  if (waiter.deadline != no_end) deadlines_.erase(waiter.timer);
  marks_.remove_waiter();
}

void WaitLines::leave_in_line(Waiter& waiter) noexcept {
  SEMEL_ASSERT(waiter.state == Waiter::State::asked);
  look_into_others(waiter);
  waiter.state = Waiter::State::waiting;
  waiter.again = false;
  waiter.asked_by = nullptr;
}

/// Most lines have one kind, and then this does not walk.
WaitPlace* WaitLines::next_of(const WaitLine& line, WaitPlace* from,
                              std::uint32_t stopped) noexcept {
  bool is_any = false;
  for (std::size_t kind = 0; kind < wait_kinds; ++kind) {
    is_any = is_any || ((stopped >> kind & 1U) == 0 && line.sizes[kind] != 0);
  }
  if (!is_any) return nullptr;
  while (from != nullptr && (stopped >> static_cast<unsigned>(from->kind) & 1U) != 0) {
    from = from->after;
  }
  return from;
}

/// The line that asks comes to its next waiter by itself. The others stopped at this one.
void WaitLines::look_into_others(const Waiter& waiter) noexcept {
  if (!waiter.again) return;
  for (const WaitPlace& place : waiter.places) {
    if (place.line != waiter.asked_by) look_again(*place.line);
  }
}

void WaitLines::look_again(WaitLine& line) noexcept {
  if (line.busy) {
    line.again = true;
  } else {
    set_recheck(line, Timestamp::min());
  }
}

WaitLines::Ended WaitLines::extract(const Waiter& waiter) noexcept {
  SEMEL_ASSERT(waiter.places.empty());
  return {region_, waiters_.extract(waiter.ticket)};
}

WaitLine* WaitLines::find(const LineName& name) noexcept {
  const auto found = lines_.find(name);
  return found == lines_.end() ? nullptr : &found->second;
}

Waiter* WaitLines::find(WaitTicket ticket) noexcept {
  const auto found = waiters_.find(ticket);
  return found == waiters_.end() ? nullptr : &found->second;
}

void WaitLines::begin_asking(WaitLine& line) noexcept {
  SEMEL_ASSERT(!line.busy);
  line.busy = true;
}

void WaitLines::end_asking(WaitLine& line) noexcept {
  SEMEL_ASSERT(line.busy);
  line.busy = false;
  erase_if_idle(line);
}

void WaitLines::erase_if_idle(WaitLine& line) noexcept {
  if (line.size != 0 || line.busy) return;
  rechecks_.erase(line.timer);
  region_.charge(-static_cast<std::ptrdiff_t>(line.charged));
  // The bytes of the name must outlive the search for it.
  const SharedKey key = line.key;
  lines_.erase(LineName{line.name.db, *key});
}

void WaitLines::set_recheck(WaitLine& line, Timestamp when) noexcept {
  if (line.timer->first.first == when) return;
  auto timer = rechecks_.extract(line.timer);
  timer.key().first = when;
  line.timer = rechecks_.insert(std::move(timer)).position;
}

WaitLine* WaitLines::take_due(Timestamp now) noexcept {
  if (rechecks_.empty() || rechecks_.begin()->first.first > now) return nullptr;
  WaitLine* const line = rechecks_.begin()->second;
  set_recheck(*line, no_end);
  return line;
}

Timestamp WaitLines::next() const noexcept {
  const Timestamp line = rechecks_.empty() ? no_end : rechecks_.begin()->first.first;
  const Timestamp waiter = deadlines_.empty() ? no_end : deadlines_.begin()->first.first;
  return std::min(line, waiter);
}

void WaitLines::check_invariants() const noexcept {
  std::size_t in_lines = 0;
  for (const auto& [name, line] : lines_) {
    SEMEL_ASSERT(line.size != 0 || line.busy);
    SEMEL_ASSERT(line.size <= limits::waiters_per_key_max);
    SEMEL_ASSERT((line.first == nullptr) == (line.size == 0));
    SEMEL_ASSERT(std::accumulate(line.sizes.begin(), line.sizes.end(), std::size_t{0}) ==
                 line.size);
    in_lines += line.size;
  }
  std::size_t waiting = 0;
  std::size_t of_waiters = 0;
  for (const auto& [ticket, waiter] : waiters_) {
    const bool is_asked = waiter.state == Waiter::State::asked;
    const bool is_in_line = is_asked || waiter.state == Waiter::State::waiting;
    SEMEL_ASSERT(is_in_line == !waiter.places.empty());
    SEMEL_ASSERT(is_asked == (waiter.asked_by != nullptr));
    SEMEL_ASSERT(!is_asked || waiter.asked_by->busy);
    waiting += is_in_line ? 1 : 0;
    of_waiters += waiter.places.size();
  }
  SEMEL_ASSERT(in_lines == of_waiters);
  SEMEL_ASSERT(waiting == marks_.waiting());
  SEMEL_ASSERT(rechecks_.size() == lines_.size());
}

}  // namespace semel::engine
