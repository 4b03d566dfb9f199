// What a fuzz target does when it finds something: it says what, and ends the process, so that the
// input is kept.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace semel::tests {

inline void check(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace semel::tests
