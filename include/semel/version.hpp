// The library's version; the one place it is written, read by the build.
#pragma once

#define SEMEL_VERSION "0.2.0"

namespace semel {

inline constexpr char version[] = SEMEL_VERSION;

}  // namespace semel
