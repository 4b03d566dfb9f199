// Changes of lists that plain commands share with those that wait, and their events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/types/list.hpp"
#include "net/commands/command.hpp"
#include "net/objects/object_command.hpp"

namespace semel::net {

/// LEFT or RIGHT. None: neither.
[[nodiscard]] std::optional<engine::ListEnd> list_end_of(std::string_view word) noexcept;

/// Where changes are made, and who sees their events: of a command, or of a client that waited.
struct ChangeSite {
  Services& services;
  Engine& engine;
  ClientState* client;  ///< null: of none that runs a command
  std::uint8_t db;
  bool is_silent = false;  ///< of a trial

  [[nodiscard]] static ChangeSite of(Call& call) noexcept {
    return {call.services, call.engine, &call.client, call.client.db, call.context().is_trial()};
  }
  void notify(char event_class, std::string_view event, std::string_view key) const;
};

struct PoppedElements {
  std::vector<std::string> elements{};  ///< empty: nothing was popped
  engine::ObjectChange change{};
};
/// Pops the `count` elements at `end`, or all that there are.
[[nodiscard]] Result<PoppedElements> pop_elements(Engine& engine, KeyRef key, engine::ListEnd end,
                                                  std::uint64_t count);
/// The events of a pop, and of a push.
void notify_popped(const ChangeSite& site, Bytes key, engine::ListEnd end,
                   const engine::ObjectChange& change);
void notify_pushed(const ChangeSite& site, Bytes key, engine::ListEnd end,
                   const engine::ObjectChange& change);

struct ListMove {
  Bytes from;
  Bytes to;
  engine::ListEnd from_end = engine::ListEnd::head;
  engine::ListEnd to_end = engine::ListEnd::head;
  bool other_is_none = false;  ///< another kind at `from` is no element to move, and no error
};
struct MovedElement {
  std::optional<std::string> element{};  ///< none: there was none to move
  engine::ObjectChange pushed{};
  engine::ObjectChange popped{};
};
/// Moves one element in one atomic step.
[[nodiscard]] Result<MovedElement> move_element(Engine& engine, std::uint8_t db,
                                                const ListMove& move);
/// The events of a move.
void notify_moved(const ChangeSite& site, const ListMove& move, const MovedElement& moved);

}  // namespace semel::net
