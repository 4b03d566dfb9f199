// Leases that a thread of the engine keeps.
#include <memory>

#include "bindings/c/requests.hpp"

using namespace semel;

struct semel_keeper {
  semel_claims& claims;
  Watchdog::Guard guard;
};

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
