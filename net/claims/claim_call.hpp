// Shared by the handlers of the SEMEL family.
#pragma once

#include <optional>
#include <string_view>

#include "net/commands/claim_words.hpp"
#include "net/commands/command.hpp"
#include "semel/engine_host.hpp"

namespace semel::net {

/// "ERR namespace 'name': why".
void fail_namespace(Call& call, std::string_view name, std::string_view why);
/// The same for an error: its prefix, and its detail or its sentence.
void fail_namespace(Call& call, std::string_view name, const Error& error);

/// Writes the error of `parsed` and returns false if there is one.
[[nodiscard]] bool accept(Call& call, const Status& parsed);

/// Sets the owner of the request from its arguments: the connection, or a remote owner. False: the
/// error is written.
[[nodiscard]] bool set_owner(Call& call, ClaimWords& words);

/// Claims, or repeats finished work; has_missed() says whether the outcome counts.
[[nodiscard]] ClaimOutcome claim(Call& call, Claims& claims, const ClaimRequest& request);
/// Whether the replicated log has to decide, and no reply is to be written.
[[nodiscard]] inline bool has_missed(const Call& call) noexcept {
  const Repeat* const repeat = call.context().repeat;
  return repeat != nullptr && repeat->has_missed;
}

/// The answer of an owner's call without a claim, as in an undeclared namespace.
[[nodiscard]] OwnerOutcome unknown_claim();

/// While it lives, decisions about claims are noted with the call's client.
class DecisionsOf {
 public:
  explicit DecisionsOf(const Call& call) noexcept : engine_(call.engine) {
    if (call.client.handle != nullptr)
      engine_.host().set_client(call.client.handle->origin.address);
  }
  ~DecisionsOf() { engine_.host().set_client({}); }
  DecisionsOf(const DecisionsOf&) = delete;
  DecisionsOf& operator=(const DecisionsOf&) = delete;

 private:
  Engine& engine_;
};

/// An error of the engine about `key`, with its detail.
void fail_about(Call& call, ErrorCode code, std::string_view key);

}  // namespace semel::net
