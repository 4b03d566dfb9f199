// From a granted claim to its verdict: shared by functions that run on the stack of a call
// (patterns.cpp) and by runs in two halves (runs.cpp).
#pragma once

#include <optional>
#include <string>

#include "bindings/c/requests.hpp"
#include "semel/patterns/consume.hpp"
#include "semel/patterns/once.hpp"

namespace semel::c {

[[nodiscard]] constexpr bool is_unknown(int how) noexcept {
  return how == SEMEL_WORK_ABANDONED || how == SEMEL_WORK_UNKNOWN;
}
/// One of SEMEL_WORK_..: of any other number it is not known what it means.
[[nodiscard]] constexpr bool is_work(int how) noexcept {
  return how >= SEMEL_WORK_DONE && how <= SEMEL_WORK_DONE_WITHOUT;
}

[[nodiscard]] semel_work c_work_of(const Work& work) noexcept;
[[nodiscard]] OnceCall call_of(const semel_request& given, semel_engine& engine);
[[nodiscard]] Message message_of(const ClaimRequest& asked) noexcept;
[[nodiscard]] ConsumeOptions options_of(const semel_request& given, const ClaimRequest& asked,
                                        semel_engine& engine);
/// Errors: bad_option (a field that does not apply to messages).
int check_message(const semel_request& given) noexcept;

/// The function has run. True: `bytes` are its result, and the caller's value.
[[nodiscard]] bool finish(const Policy& policy, detail::GuardedRun& run, int how,
                          std::string& bytes);
void finish(detail::Consumption& run, int how, std::string&& bytes);

void fill(Answer<semel_once_outcome>& to, const OnceReport& from) noexcept;
void fill(Answer<semel_consumed>& to, const Consumed& from) noexcept;

/// In a child of the engine's process nothing runs, and no message is acknowledged.
[[nodiscard]] OnceReport forked_report();
[[nodiscard]] Consumed forked_message();

}  // namespace semel::c
