// Of a claim that the caller holds itself: its steps, and its lease that a thread of the engine
// keeps.
#include "bindings/c/steps.hpp"

#include <memory>

#include "bindings/c/requests.hpp"

using namespace semel;

struct semel_keeper {
  semel_claims& claims;
  Watchdog::Guard guard;
};

namespace semel::c {

int check_step(const semel_engine& engine, const void* name, std::size_t name_length,
               const void* memo, std::size_t memo_length) noexcept {
  if (const int error = check_bytes(name, name_length, "step's name", engine.key_bytes_max,
                                    ErrorCode::key_too_long)) {
    return error;
  }
  return check_value(engine, memo, memo_length, "memo");
}

int recall(Steps& steps, Bytes name, semel_buffer& memo) {
  const Result<std::optional<std::string>> known = steps.recall(name);
  if (!known.ok()) return say(known.error());
  semel_buffer_free(&memo);
  if (!*known) return SEMEL_OK;
  return put(memo, **known) ? int{SEMEL_OK} : say_unknown_outcome("no memory for the answer");
}

int remember(Steps& steps, Bytes name, Bytes memo) {
  return say(steps.remember(name, memo));
}

}  // namespace semel::c

namespace {

/// What both calls refuse before they look at the claim.
[[nodiscard]] int check(const semel_claims* claims, const void* key, std::size_t key_length) {
  if (claims == nullptr) return c::say_null("claims");
  if (const int error = c::check_process(*claims->engine)) return error;
  if (const int error = c::check_key(*claims->engine, key, key_length)) return error;
  return key_length == 0 ? c::say(ErrorCode::key_empty) : int{SEMEL_OK};
}

}  // namespace

int semel_step_recall(semel_claims* claims, const void* key, size_t key_length, semel_uint64 epoch,
                      const void* name, size_t name_length, semel_buffer* memo) {
  if (memo == nullptr) return c::say_null("memo");
  if (const int error = check(claims, key, key_length)) return error;
  if (const int error = c::check_step(*claims->engine, name, name_length, nullptr, 0)) return error;
  return c::guarded([&] {
    Steps steps{claims->claims, c::bytes_of(key, key_length), epoch};
    return c::recall(steps, c::bytes_of(name, name_length), *memo);
  });
}

int semel_step_remember(semel_claims* claims, const void* key, size_t key_length,
                        semel_uint64 epoch, const void* name, size_t name_length, const void* memo,
                        size_t memo_length) {
  if (const int error = check(claims, key, key_length)) return error;
  if (const int error = c::check_step(*claims->engine, name, name_length, memo, memo_length)) {
    return error;
  }
  return c::guarded([&] {
    Steps steps{claims->claims, c::bytes_of(key, key_length), epoch};
    return c::remember(steps, c::bytes_of(name, name_length), c::bytes_of(memo, memo_length));
  });
}

int semel_keep_begin(semel_claims* claims, const void* key, size_t key_length, semel_uint64 epoch,
                     semel_int64 lease_ms, semel_keeper** keeper) {
  if (claims == nullptr || keeper == nullptr) return c::say_null("claims or keeper");
  *keeper = nullptr;
  semel_engine& engine = *claims->engine;
  if (const int error = c::check_process(engine)) return error;
  if (const int error = c::check_key(engine, key, key_length)) return error;
  return c::guarded([&] {
    const Millis lease = c::claim_time_of(lease_ms).value_or(claims->claims.policy().lease);
    Watchdog& watchdog = engine.keeper();
    if (key_length == 0) return c::say(ErrorCode::key_empty);
    if (!Watchdog::check(&watchdog, claims->claims, lease)) {
      return c::say(ErrorCode::bad_option, "lease_ms = " + std::to_string(lease.count()) +
                                               ", too short to be kept: it is looked at every " +
                                               std::to_string(c::keeper_every.count()) + " ms");
    }
    auto made = std::make_unique<semel_keeper>(semel_keeper{*claims, {}});
    made->guard = watchdog.keep(claims->claims, c::bytes_of(key, key_length), epoch, lease);
    *keeper = made.release();
    return int{SEMEL_OK};
  });
}

int semel_keep_lost(const semel_keeper* keeper, int* lost) {
  if (keeper == nullptr || lost == nullptr) return c::say_null("keeper or lost");
  *lost = 0;
  if (const int error = c::check_process(*keeper->claims.engine)) return error;
  *lost = keeper->guard.lost() ? 1 : 0;
  return SEMEL_OK;
}

void semel_keep_end(semel_keeper* keeper) {
  if (keeper == nullptr || !keeper->claims.engine->process.is_here()) return;
  static_cast<void>(c::guarded([&] {
    delete keeper;
    return int{SEMEL_OK};
  }));
}
