// Memos of steps, of a claim that the caller holds (steps.cpp) and of a run (runs.cpp).
#pragma once

#include "bindings/c/sized.hpp"
#include "semel/patterns/steps.hpp"

namespace semel::c {

/// Checks a step's name and memo, before they are read.
int check_step(const semel_engine& engine, const void* name, std::size_t name_length,
               const void* memo, std::size_t memo_length) noexcept;
/// Both as their functions in semel.h; the arguments must have been checked.
int recall(Steps& steps, Bytes name, semel_buffer& memo);
int remember(Steps& steps, Bytes name, Bytes memo);

}  // namespace semel::c
