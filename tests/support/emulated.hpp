// Whether the tests run in an emulator of another processor: the process' resident bytes are then
// the emulator's as well, and a server beside it runs on the machine's own processor.
#pragma once

namespace semel::tests {

#ifdef SEMEL_TESTS_EMULATED
inline constexpr bool is_emulated = true;
#else
inline constexpr bool is_emulated = false;
#endif

}  // namespace semel::tests
