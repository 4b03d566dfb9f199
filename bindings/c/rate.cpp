// Rate limits.
#include "bindings/c/sized.hpp"
#include "semel/patterns/rate_limit.hpp"

using namespace semel;

int semel_rate_take(semel_engine* engine, const void* key, size_t key_length,
                    const semel_rate_terms* terms, semel_uint64 cost, semel_rate* rate) {
  if (engine == nullptr || terms == nullptr) return c::say_null("engine or terms");
  if (const int error = c::check_process(*engine)) return error;
  if (const int error = c::check_key(*engine, key, key_length)) return error;
  semel_rate_terms given;
  if (const int error = c::read_sized(terms, given); error != SEMEL_OK) return error;
  c::Answer answer{rate};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    static_assert(SEMEL_RATE_BUCKET == int{static_cast<int>(RateKind::token_bucket)});
    if (given.kind < SEMEL_RATE_FIXED || given.kind > SEMEL_RATE_BUCKET) {
      return c::say(ErrorCode::bad_option,
                    "kind = " + std::to_string(given.kind) + ", allowed 0..2");
    }
    const RateTerms checked{.kind = static_cast<RateKind>(given.kind),
                            .limit = given.limit,
                            .period = Millis{given.period_ms},
                            .refill = given.refill};
    const Result<RateOutcome> taken =
        take_rate(*engine->engine, 0, c::bytes_of(key, key_length), checked, cost);
    if (!taken.ok()) return c::say(taken.error());
    answer->allowed = taken->allowed ? 1 : 0;
    answer->remaining = taken->remaining;
    answer->retry_after_ms = taken->retry_after.count();
    answer->reset_after_ms = taken->reset_after.count();
    return answer.deliver(SEMEL_OK);
  });
}
