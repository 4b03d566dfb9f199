// A lock's owner.
#include "bindings/c/requests.hpp"

using namespace semel;

int semel_lock_open(semel_claims* claims, const void* key, size_t key_length,
                    const semel_lock_options* options, semel_lock** lock) {
  if (claims == nullptr || lock == nullptr) return c::say_null("claims or lock");
  *lock = nullptr;
  if (const int error = c::check_process(*claims->engine)) return error;
  if (const int error = c::check_key(*claims->engine, key, key_length)) return error;
  semel_lock_options given;
  if (const int error = c::read_sized(options, given); error != SEMEL_OK) return error;
  if (const int error = c::check_given(given.given, SEMEL_GIVEN_LEASE)) return error;
  if (const int error =
          c::check_bytes(given.owner, given.owner_length, "owner", limits::owner_label_max)) {
    return error;
  }
  return c::guarded([&] {
    const LockOptions with{.lease = c::lease_of(given),
                           .owner = c::bytes_of(given.owner, given.owner_length),
                           .session = c::session_of(given.remote_owner),
                           .watchdog = given.keep_lease != 0 ? &claims->engine->keeper() : nullptr,
                           .moves = true};
    *lock = new semel_lock{Lock{claims->claims, c::bytes_of(key, key_length), with}, *claims};
    return int{SEMEL_OK};
  });
}

int semel_lock_take(semel_lock* lock, semel_int64 wait_ms, semel_uint64* token) {
  if (lock == nullptr || token == nullptr) return c::say_null("lock or token");
  *token = 0;
  if (const int error = c::check_process(*lock->claims.engine)) return error;
  return c::guarded([&] {
    if (wait_ms < 0 || wait_ms > limits::ttl_max.count()) {
      return c::say(ErrorCode::bad_option, "wait_ms = " + std::to_string(wait_ms) +
                                               ", allowed 0.." +
                                               std::to_string(limits::ttl_max.count()));
    }
    const bool taken =
        wait_ms == 0 ? lock->lock.try_lock() : lock->lock.try_lock_for(Millis{wait_ms});
    if (taken) {
      *token = lock->lock.fencing_token();
      return int{SEMEL_OK};
    }
    const Error why = lock->lock.why_not();
    return why.code == ErrorCode::timed_out ? int{SEMEL_OK} : c::say(why);
  });
}

int semel_lock_give(semel_lock* lock, int* held) {
  if (lock == nullptr) return c::say_null("lock");
  if (const int error = c::check_process(*lock->claims.engine)) return error;
  return c::guarded([&] {
    const bool was = lock->lock.unlock();
    if (held != nullptr) *held = was ? 1 : 0;
    return int{SEMEL_OK};
  });
}

semel_uint64 semel_lock_token(const semel_lock* lock) {
  if (lock == nullptr || !lock->claims.engine->process.is_here()) return 0;
  semel_uint64 token = 0;
  static_cast<void>(c::guarded([&] {
    if (lock->lock.is_held()) token = lock->lock.fencing_token();
    return int{SEMEL_OK};
  }));
  return token;
}

void semel_lock_close(semel_lock* lock) {
  if (lock == nullptr || !lock->claims.engine->process.is_here()) return;
  static_cast<void>(c::guarded([&] {
    delete lock;
    return int{SEMEL_OK};
  }));
}
