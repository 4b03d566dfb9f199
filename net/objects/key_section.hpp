// A command on several objects as one atomic step: their keys are held from its first look to the
// end of its last change.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "net/commands/command.hpp"

namespace semel::net {

/// Holds keys of the client's database. None: the error is the reply.
[[nodiscard]] inline std::optional<Section> hold_keys(Call& call, std::span<const Bytes> keys) {
  std::vector<KeyRef> refs;
  refs.reserve(keys.size());
  for (const Bytes key : keys) refs.push_back({call.client.db, key});
  Result<Section> section = call.engine.section(refs);
  if (!section.ok()) {
    call.fail(section.error());
    return std::nullopt;
  }
  return std::move(section).value();
}

/// Ends the step. False: what it changed is not confirmed, and the error is the reply.
[[nodiscard]] inline bool commit(Call& call, Section& section) {
  const Status done = section.commit();
  if (!done) call.fail(done.error());
  return static_cast<bool>(done);
}

}  // namespace semel::net
