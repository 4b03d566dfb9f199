// The changes that are made most, decided by any call: each is one straight line, all others take
// RecordStep::apply_any().
#include "engine/core/plain_change.hpp"
#include "engine/core/record_step.hpp"

namespace semel::engine {

inline PlainPlace RecordStep::place() const noexcept {
  return {.location = location_,
          .key = key_.key,
          .probe = probe_,
          .old = seen_.old != nullptr ? &seen_.head : nullptr,
          .floor = seen_.floor,
          .now = seen_.now};
}

inline bool RecordStep::takes_plain_change() noexcept {
  return has_room_for_plain(operation_.context()) &&
         (seen_.old == nullptr ? probe_.state == TableProbe::State::vacant
                               : seen_.live && is_plain(seen_.head));
}

std::optional<ErrorCode> RecordStep::store_plain(const Decision& decision, Version& version) {
  if (!takes_plain_change()) [[unlikely]]
    return apply_any(decision, version);
  const Bytes value = decision.value;
  return engine::store_plain(
      core_, operation_.context(), place(),
      {decision.kind, decision.due, value.size(), decision.raw},
      [&](char* to, Version) { copy_bytes(to, value.data(), value.size()); }, version);
}

std::optional<ErrorCode> RecordStep::erase_plain(Version& version) {
  if (!takes_plain_change() || leaves_marker()) [[unlikely]] {
    return apply_any({.action = Action::erase, .kind = Kind::string, .due = no_end, .value = {}},
                     version);
  }
  return engine::erase_plain(core_, operation_.context(), place(), version);
}

}  // namespace semel::engine
