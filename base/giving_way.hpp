// Which connection of a small port gives way to a newcomer, so that clients that only hold
// connections cannot silence it: a probe is answered as long as it sends its request at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace semel::base {

struct TakenPlace {
  enum class Doing : std::uint8_t {
    awaits,   ///< there is no whole request
    answers,  ///< the answer is being sent
    works,    ///< on the answer: it never gives way
  };
  Doing doing = Doing::awaits;
  std::chrono::milliseconds since{0};  ///< how long it has done so
};

/// A client that has just connected may send its request in so long, and one that is being answered
/// may read it in so long, whatever comes.
inline constexpr std::chrono::milliseconds await_at_least{50};
inline constexpr std::chrono::milliseconds answer_at_least{1'000};

/// The one that has awaited its request for longest, else the one that has been read from for
/// longest. None: no one has stayed long enough to be asked to go.
[[nodiscard]] inline std::optional<std::size_t> gives_way(
    std::span<const TakenPlace> places) noexcept {
  using Doing = TakenPlace::Doing;
  std::optional<std::size_t> chosen;
  for (const auto& [doing, least] :
       {std::pair{Doing::awaits, await_at_least}, std::pair{Doing::answers, answer_at_least}}) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i].doing != doing || places[i].since < least) continue;
      if (!chosen || places[i].since > places[*chosen].since) chosen = i;
    }
    if (chosen) break;
  }
  return chosen;
}

}  // namespace semel::base
