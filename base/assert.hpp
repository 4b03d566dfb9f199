// SEMEL_ASSERT: a condition that holds unless the code is wrong. It is for data of this project's
// own code: bytes from a network, a disk or a script are checked and answered with an error
// instead.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace semel::base {

/// Names the broken condition on standard error and ends the process.
[[noreturn, gnu::cold, gnu::noinline]] inline void assertion_failed(const char* condition,
                                                                    const char* file,
                                                                    int line) noexcept {
  std::fprintf(stderr, "%s:%d: SEMEL_ASSERT(%s) does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace semel::base

// In every build, release too. One condition in O(1) without an effect: it costs a compare and a
// branch that is predicted, and stands where that is below 1 % of its call.
#define SEMEL_ASSERT(...)               \
  ((__VA_ARGS__) ? static_cast<void>(0) \
                 : ::semel::base::assertion_failed(#__VA_ARGS__, __FILE__, __LINE__))

// Costlier conditions, and those of the hottest loops: in each build but release, and in an
// optimised one with SEMEL_VERIFY. Elsewhere it is not evaluated.
#if defined(SEMEL_VERIFY) || !defined(NDEBUG)
#define SEMEL_ASSERT_SLOW(...) SEMEL_ASSERT(__VA_ARGS__)
#else
#define SEMEL_ASSERT_SLOW(...) static_cast<void>(sizeof((__VA_ARGS__) ? 1 : 0))
#endif
