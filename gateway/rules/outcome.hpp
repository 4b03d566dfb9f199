// How a request ended at the gateway, and the gateway's own replies: problem details.
// Source: RFC 9457
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "semel/types.hpp"

namespace semel::gateway {

enum class Outcome : std::uint8_t {
#define SEMEL_GATEWAY_OUTCOME(name, status, title) name,
#include "gateway/rules/outcomes.def"
#undef SEMEL_GATEWAY_OUTCOME
};
inline constexpr std::size_t outcome_count =
#define SEMEL_GATEWAY_OUTCOME(name, status, title) 1 +
#include "gateway/rules/outcomes.def"
#undef SEMEL_GATEWAY_OUTCOME
    0;

[[nodiscard]] std::string_view name_of(Outcome outcome) noexcept;
[[nodiscard]] std::string_view title_of(Outcome outcome) noexcept;
/// 0: the reply is the upstream's own, or a recorded one.
[[nodiscard]] unsigned status_of(Outcome outcome) noexcept;

/// The reason to reject a request.
struct Refusal {
  Outcome outcome = Outcome::bad_request;
  std::string detail{};   ///< names the value and the limit
  Millis retry_after{0};  ///< above 0: as the header Retry-After, in seconds, rounded up
};

/// The body of application/problem+json: type, title, status, detail.
[[nodiscard]] std::string problem_json(const Refusal& refusal);

/// `text` escaped as between the quotes of a JSON string; invalid UTF-8 becomes '?'.
void append_json_text(std::string& out, std::string_view text);

}  // namespace semel::gateway
