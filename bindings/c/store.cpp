// Values under keys.
#include <vector>

#include "bindings/c/sized.hpp"
#include "semel/engine_host.hpp"
#include "semel/patterns/guards.hpp"

using namespace semel;

namespace {

/// Checks common to all calls: an engine, a key, a value.
[[nodiscard]] int check(const semel_engine* engine, const void* key, std::size_t key_length,
                        const void* value = nullptr, std::size_t value_length = 0) noexcept {
  if (engine == nullptr) return c::say_null("engine");
  if (const int error = c::check_process(*engine)) return error;
  if (const int error = c::check_key(*engine, key, key_length)) return error;
  return c::check_value(*engine, value, value_length);
}

[[nodiscard]] Expiry expiry_of(semel_int64 ttl_ms) noexcept {
  if (ttl_ms == SEMEL_TTL_NONE) return Expiry::clear();
  return ttl_ms == SEMEL_TTL_KEEP ? Expiry::keep() : Expiry::in(Millis{ttl_ms});
}

template <class T>
void store_if_wanted(T* to, T value) noexcept {
  if (to != nullptr) *to = value;
}

[[nodiscard]] StoreOp op_of(const semel_set_options& options, Bytes key, Bytes value) noexcept {
  static_assert(SEMEL_ALWAYS == int{static_cast<int>(Condition::always)});
  StoreOp op{.verb = Verb::set,
             .get = options.get != 0,
             .expiry = expiry_of(options.ttl_ms),
             .key = key,
             .value = value};
  switch (options.condition) {
    case SEMEL_IF_ABSENT:
      op.condition = Condition::if_absent;
      break;
    case SEMEL_IF_PRESENT:
      op.condition = Condition::if_present;
      break;
    case SEMEL_IF_EQUAL:
      op.condition = Condition::if_equal;
      op.operand = c::bytes_of(options.expected, options.expected_length);
      break;
    case SEMEL_IF_VERSION:
      op.condition = Condition::if_version;
      op.expected = options.version;
      break;
    default:
      break;
  }
  return op;
}

}  // namespace

int semel_set(semel_engine* engine, const void* key, size_t key_length, const void* value,
              size_t value_length, const semel_set_options* options, semel_set_result* result) {
  if (const int error = check(engine, key, key_length, value, value_length)) return error;
  semel_set_options given;
  if (const int error = c::read_sized(options, given); error != SEMEL_OK) return error;
  if (const int error =
          c::check_value(*engine, given.expected, given.expected_length, "expected")) {
    return error;
  }
  c::Answer answer{result};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    if (given.condition < SEMEL_ALWAYS || given.condition > SEMEL_IF_VERSION) {
      return c::say(ErrorCode::bad_option,
                    "condition = " + std::to_string(given.condition) + ", allowed 0..4");
    }
    StoreOutcome outcome;
    engine->engine->host().apply(
        op_of(given, c::bytes_of(key, key_length), c::bytes_of(value, value_length)), outcome);
    if (outcome.error != ErrorCode::ok) return c::say(outcome.error);
    if (outcome.has_value) answer.set(answer->previous, outcome.value);
    answer->version = outcome.version;
    answer->stored = outcome.applied ? 1 : 0;
    return answer.deliver(SEMEL_OK);
  });
}

int semel_get(semel_engine* engine, const void* key, size_t key_length, semel_value* value) {
  if (const int error = check(engine, key, key_length)) return error;
  c::Answer answer{value};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    const auto found = engine->store().get_versioned(c::bytes_of(key, key_length));
    if (!found.ok()) return c::say(found.error());
    if (*found) {
      answer.set(answer->value, (*found)->value);
      answer->version = (*found)->version;
    }
    return answer.deliver(SEMEL_OK);
  });
}

int semel_del(semel_engine* engine, const void* key, size_t key_length, int* existed) {
  if (const int error = check(engine, key, key_length)) return error;
  return c::guarded([&] {
    const Result<bool> gone = engine->store().del(c::bytes_of(key, key_length));
    if (!gone.ok()) return c::say(gone.error());
    store_if_wanted(existed, *gone ? 1 : 0);
    return int{SEMEL_OK};
  });
}

int semel_incr_by(semel_engine* engine, const void* key, size_t key_length, semel_int64 by,
                  semel_int64* value) {
  if (const int error = check(engine, key, key_length)) return error;
  return c::guarded([&] {
    const auto number = engine->store().incr_by(c::bytes_of(key, key_length), by);
    if (!number.ok()) return c::say(number.error());
    store_if_wanted(value, semel_int64{*number});
    return int{SEMEL_OK};
  });
}

int semel_expire(semel_engine* engine, const void* key, size_t key_length, semel_int64 ttl_ms,
                 int* existed) {
  if (const int error = check(engine, key, key_length)) return error;
  return c::guarded([&] {
    Store store = engine->store();
    const Bytes name = c::bytes_of(key, key_length);
    if (ttl_ms == SEMEL_TTL_NONE || ttl_ms == SEMEL_TTL_KEEP) {
      if (ttl_ms == SEMEL_TTL_NONE) {
        const Result<bool> done = store.persist(name);
        if (!done.ok()) return c::say(done.error());
      }
      const Result<bool> there = store.exists(name);
      if (!there.ok()) return c::say(there.error());
      store_if_wanted(existed, *there ? 1 : 0);
      return int{SEMEL_OK};
    }
    const Result<bool> set = store.expire(name, Expiry::in(Millis{ttl_ms}));
    if (!set.ok()) return c::say(set.error());
    store_if_wanted(existed, *set ? 1 : 0);
    return int{SEMEL_OK};
  });
}

int semel_ttl(semel_engine* engine, const void* key, size_t key_length, semel_int64* remaining_ms) {
  if (const int error = check(engine, key, key_length)) return error;
  return c::guarded([&] {
    const Result<TtlResult> ttl = engine->store().ttl(c::bytes_of(key, key_length));
    if (!ttl) return c::say(ttl.error());
    const semel_int64 without = ttl->found ? -1 : -2;
    store_if_wanted(remaining_ms, ttl->has_ttl ? semel_int64{ttl->remaining.count()} : without);
    return int{SEMEL_OK};
  });
}

int semel_compare_and_set(semel_engine* engine, const void* key, size_t key_length,
                          semel_uint64 version, const void* value, size_t value_length,
                          semel_int64 ttl_ms, int* stored, semel_value* current) {
  if (const int error = check(engine, key, key_length, value, value_length)) return error;
  c::Answer answer{current};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    const auto compared = engine->store().compare_and_set(
        c::bytes_of(key, key_length), version, c::bytes_of(value, value_length), expiry_of(ttl_ms));
    if (!compared.ok()) return c::say(compared.error());
    store_if_wanted(stored, compared->stored ? 1 : 0);
    if (compared->current) {
      answer.set(answer->value, compared->current->value);
      answer->version = compared->current->version;
    }
    return answer.deliver(SEMEL_OK);
  });
}

int semel_decrement_if_at_least(semel_engine* engine, const void* key, size_t key_length,
                                semel_int64 amount, semel_int64 floor, int* taken,
                                semel_int64* left) {
  if (const int error = check(engine, key, key_length)) return error;
  return c::guarded([&] {
    const auto done =
        decrement_if_at_least(engine->store(), c::bytes_of(key, key_length), amount, floor);
    if (!done.ok()) return c::say(done.error());
    store_if_wanted(taken, done->taken ? 1 : 0);
    store_if_wanted(left, semel_int64{done->left});
    return int{SEMEL_OK};
  });
}

int semel_transition(semel_engine* engine, const void* key, size_t key_length, const void* from,
                     size_t from_length, const void* to, size_t to_length, semel_int64 ttl_ms,
                     int* moved, semel_buffer* state) {
  if (const int error = check(engine, key, key_length, from, from_length)) return error;
  if (const int error = c::check_value(*engine, to, to_length, "to")) return error;
  return c::guarded([&] {
    const auto done =
        transition(engine->store(), c::bytes_of(key, key_length), c::bytes_of(from, from_length),
                   c::bytes_of(to, to_length), expiry_of(ttl_ms));
    if (!done.ok()) return c::say(done.error());
    store_if_wanted(moved, done->moved ? 1 : 0);
    if (state != nullptr && !c::put(*state, done->state)) {
      return c::say_unknown_outcome("no memory for the answer");
    }
    return int{SEMEL_OK};
  });
}

int semel_first_seen(semel_engine* engine, const char* name, const semel_bytes* fields,
                     size_t count, semel_int64 window_ms, int* first) {
  if (engine == nullptr || name == nullptr) return c::say_null("engine or name");
  if (const int error = c::check_process(*engine)) return error;
  return c::guarded([&] {
    std::vector<Bytes> list;
    if (const int error = c::read_fields(fields, count, list)) return error;
    SeenBefore seen{engine->store(), name, Millis{window_ms}};
    const Result<bool> is_first = seen.is_first(list);
    if (!is_first.ok()) return c::say(is_first.error());
    store_if_wanted(first, *is_first ? 1 : 0);
    return int{SEMEL_OK};
  });
}
