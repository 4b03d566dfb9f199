// The engine and its faces. Each pattern has a header of its own: semel/patterns/once.hpp and
// others.
#pragma once

#include "semel/cached_clock.hpp"
#include "semel/claims.hpp"
#include "semel/clock.hpp"
#include "semel/engine.hpp"
#include "semel/hashes.hpp"
#include "semel/journal.hpp"
#include "semel/limits.hpp"
#include "semel/memory_journal.hpp"
#include "semel/result.hpp"
#include "semel/store.hpp"
#include "semel/types.hpp"
#include "semel/version.hpp"
