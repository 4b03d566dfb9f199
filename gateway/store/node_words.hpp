// Commands to a node, and the meaning of its answers. Pure.
// Source: docs/claims-on-the-wire.md
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/guard/request_rules.hpp"
#include "gateway/store/node_reply.hpp"
#include "semel/claim.hpp"

namespace semel::gateway {

/// An array of bulk strings.
[[nodiscard]] std::string command_of(std::span<const std::string_view> words);
[[nodiscard]] std::string command_of(std::initializer_list<std::string_view> words);
/// The same with one more word, `last`, up to where its bytes begin: they are sent without a copy.
[[nodiscard]] std::string command_before(std::initializer_list<std::string_view> words,
                                         std::string_view last);

/// The name of a route's namespace; nonces have their own.
[[nodiscard]] std::string claims_name(const Route& route);
[[nodiscard]] std::string nonces_name(const Route& route);
/// How long a nonce is kept: a minute longer than its request is valid.
[[nodiscard]] Millis nonce_lease(const SignaturePolicy& policy) noexcept;

/// One namespace that the routes need.
struct NamespaceNeed {
  const Route* route = nullptr;
  std::string name{};
  Policy policy{};
};
[[nodiscard]] std::vector<NamespaceNeed> namespaces_of(const std::vector<Route>& routes);
/// SEMEL.NAMESPACE with all terms; `verb` is DECLARE or CHANGE.
[[nodiscard]] std::string namespace_command(std::string_view verb, const NamespaceNeed& need);
/// Whether the answer reports that the namespace exists with other terms.
[[nodiscard]] bool has_other_terms(const NodeReply& reply) noexcept;

[[nodiscard]] std::string claim_command(const Work& work, const ClaimId& id);
[[nodiscard]] std::string nonce_command(const Route& route, const SignatureHeaders& headers,
                                        const ClaimId& id);

/// The meaning of an error for its command.
enum class Advice : std::uint8_t {
  final_answer,  ///< nothing was done, and a retry cannot help
  ask_again,     ///< nothing was done; retry
  unknown,       ///< outcome unknown; retry the identical command (it is idempotent)
  elsewhere,     ///< nothing was done; another node may do it
};
[[nodiscard]] Advice advice_of(const NodeReply& reply) noexcept;
/// The first word of an error, as NOPERM; "ERR" if it has none.
[[nodiscard]] std::string_view error_word(std::string_view error) noexcept;
/// "host:port" of MOVED; empty: of another error.
[[nodiscard]] std::string_view moved_to(std::string_view error) noexcept;

/// None: it is not an answer to a claim.
[[nodiscard]] std::optional<ClaimOutcome> claim_outcome_of(const NodeReply& reply);
/// None: it is not an answer to an owner's call.
[[nodiscard]] std::optional<OwnerOutcome> owner_outcome_of(const NodeReply& reply);

}  // namespace semel::gateway
