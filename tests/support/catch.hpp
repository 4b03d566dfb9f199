// Catch2 of either major version, by the names of version 2.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#include <cstdint>
#include <string>

namespace Catch {

inline std::uint32_t rngSeed() {
  return getSeed();
}
inline auto Contains(const std::string& part) {
  return Matchers::ContainsSubstring(part);
}

}  // namespace Catch
#else
#include <catch2/catch.hpp>
#endif
