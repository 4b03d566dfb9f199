#include "net/objects/list_changes.hpp"

#include <array>
#include <utility>

#include "net/events/keyspace_events.hpp"
#include "net/resp/text.hpp"

namespace semel::net {
namespace {

using engine::ListEnd;
using engine::ObjectChange;
using engine::ObjectEdit;

std::string_view push_event(ListEnd end) noexcept {
  return end == ListEnd::head ? "lpush" : "rpush";
}

std::string_view pop_event(ListEnd end) noexcept {
  return end == ListEnd::head ? "lpop" : "rpop";
}

/// Pops into `element`, unless the list is empty.
ErrorCode take_one(ObjectEdit& list, ListEnd end, std::optional<std::string>& element) {
  element.reset();
  if (list.empty()) return ErrorCode::ok;
  const engine::ListRange range = list_end(list.size(), end, 1);
  element = list.at(range.from).value;
  list.erase_range(range.from, range.to);
  return ErrorCode::ok;
}

/// Within one list.
Result<MovedElement> rotate(Engine& engine, std::uint8_t db, const ListMove& move) {
  MovedElement moved;
  const auto done =
      engine::change_object(engine, {db, move.from}, Kind::list, [&](ObjectEdit& list) {
        const ErrorCode taken = take_one(list, move.from_end, moved.element);
        if (moved.element) push_to_list(list, move.to_end, *moved.element);
        return taken;
      });
  if (!done.ok()) {
    const bool is_other = done.error().code == ErrorCode::wrong_type;
    if (is_other && move.other_is_none) return MovedElement{};
    return done.error();
  }
  moved.pushed = moved.popped = *done;
  return moved;
}

/// Pushes before it pops: only the push may be refused, and then nothing has changed.
Status move_between(Engine& engine, std::uint8_t db, const ListMove& move, MovedElement& moved) {
  SEMEL_TRY(pushed, engine::change_object(engine, {db, move.to}, Kind::list, [&](ObjectEdit& list) {
              push_to_list(list, move.to_end, *moved.element);
              return ErrorCode::ok;
            }));
  SEMEL_TRY(popped,
            engine::change_object(engine, {db, move.from}, Kind::list, [&](ObjectEdit& list) {
              const engine::ListRange range = list_end(list.size(), move.from_end, 1);
              list.erase_range(range.from, range.to);
              return ErrorCode::ok;
            }));
  moved.pushed = pushed;
  moved.popped = popped;
  return Done{};
}

/// The element that is to be moved.
Status look(Engine& engine, std::uint8_t db, const ListMove& move,
            std::optional<std::string>& element) {
  const Status seen = engine::read_object(
      engine, {db, move.from}, Kind::list, [&](const engine::ObjectReader& list) {
        if (list.empty()) return;
        element = list.at(list_end(list.size(), move.from_end, 1).from).value;
      });
  const bool is_other = !seen && seen.error().code == ErrorCode::wrong_type;
  return is_other && move.other_is_none ? Status{Done{}} : seen;
}

}  // namespace

std::optional<ListEnd> list_end_of(std::string_view word) noexcept {
  if (is_word(word, "left")) return ListEnd::head;
  if (is_word(word, "right")) return ListEnd::tail;
  return std::nullopt;
}

void ChangeSite::notify(char event_class, std::string_view event, std::string_view key) const {
  if (is_silent) return;
  services.events.notify(client, event_class, event, db, key);
}

Result<PoppedElements> pop_elements(Engine& engine, KeyRef key, ListEnd end, std::uint64_t count) {
  PoppedElements popped;
  const auto done = engine::change_object(engine, key, Kind::list, [&](ObjectEdit& list) {
    const engine::ListRange range = list_end(list.size(), end, count);
    popped.elements.clear();
    popped.elements.reserve(range.size());
    each_from(list, end, range, [&](Bytes value) { popped.elements.emplace_back(value); });
    list.erase_range(range.from, range.to);
    return ErrorCode::ok;
  });
  if (!done.ok()) return done.error();
  popped.change = *done;
  return popped;
}

void notify_popped(const ChangeSite& site, Bytes key, ListEnd end, const ObjectChange& change) {
  site.notify('l', pop_event(end), key);
  if (change.is_gone()) site.notify('g', "del", key);
}

void notify_pushed(const ChangeSite& site, Bytes key, ListEnd end, const ObjectChange& change) {
  if (change.is_new()) site.notify('n', "new", key);
  site.notify('l', push_event(end), key);
}

Result<MovedElement> move_element(Engine& engine, std::uint8_t db, const ListMove& move) {
  if (move.from == move.to) return rotate(engine, db, move);
  const std::array<KeyRef, 2> keys{{{db, move.from}, {db, move.to}}};
  SEMEL_TRY(section, engine.section(keys));
  MovedElement moved;
  SEMEL_CHECK(look(engine, db, move, moved.element));
  if (moved.element) SEMEL_CHECK(move_between(engine, db, move, moved));
  SEMEL_CHECK(section.commit());
  return moved;
}

void notify_moved(const ChangeSite& site, const ListMove& move, const MovedElement& moved) {
  notify_pushed(site, move.to, move.to_end, moved.pushed);
  notify_popped(site, move.from, move.from_end, moved.popped);
}

}  // namespace semel::net
