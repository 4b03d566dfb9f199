// An engine with its clock and its storage.
#include <limits>

#include "bindings/c/sized.hpp"
#if SEMEL_WITH_STORAGE
#include "semel/storage.hpp"
#endif

using namespace semel;

namespace {

constexpr Millis background_usual{100};

[[nodiscard]] Status open_storage(const semel_options& given, [[maybe_unused]] semel_engine& made,
                                  [[maybe_unused]] Options& options) {
  if (given.storage_directory == nullptr) return Done{};
#if SEMEL_WITH_STORAGE
  StorageOptions with{.directory = given.storage_directory};
  if (given.sync_every_ms != 0) with.sync_every = Millis{given.sync_every_ms};
  if (given.log_bytes != 0) with.log_bytes = given.log_bytes;
  SEMEL_TRY(storage, Storage::open(with, *made.clock));
  options.first_version = storage->first_version();
  options.journal = storage.get();
  made.storage = std::move(storage);
  return Done{};
#else
  return Error{ErrorCode::storage_failed, "this library was built without a storage"};
#endif
}

[[nodiscard]] Status recover([[maybe_unused]] semel_engine& made) {
#if SEMEL_WITH_STORAGE
  if (made.storage == nullptr) return Done{};
  SEMEL_CHECK(static_cast<Storage&>(*made.storage).recover(*made.engine));
#endif
  return Done{};
}

[[nodiscard]] Result<Durability> durability_of(const semel_options& given) {
  switch (given.durability) {
    case SEMEL_DURABILITY_USUAL:
      return given.storage_directory == nullptr ? Durability::memory : Durability::logged;
    case SEMEL_DURABILITY_MEMORY:
      return Durability::memory;
    case SEMEL_DURABILITY_LOGGED:
      return Durability::logged;
    case SEMEL_DURABILITY_SYNCED:
      return Durability::synced;
    default:
      return Error{ErrorCode::bad_option,
                   "durability = " + std::to_string(given.durability) + ", allowed 0..3"};
  }
}

[[nodiscard]] Result<std::unique_ptr<semel_engine>> open(const semel_options& given) {
  auto made = std::make_unique<semel_engine>();
  if (given.manual_clock != 0) {
    auto clock = std::make_unique<ManualClock>();
    made->manual = clock.get();
    made->clock = std::move(clock);
  } else {
    made->clock = std::make_unique<SystemClock>();
  }
  if (given.work_max_ms < 0 || given.work_max_ms > limits::ttl_max.count()) {
    return Error{ErrorCode::bad_option, "work_max_ms = " + std::to_string(given.work_max_ms) +
                                            ", allowed 0.." +
                                            std::to_string(limits::ttl_max.count())};
  }
  if (given.work_max_ms != 0) made->work_max = Millis{given.work_max_ms};
  Options options{.clock = made->clock.get()};
  SEMEL_TRY(durability, durability_of(given));
  options.durability = durability;
  if (given.memory_bytes != 0) options.memory_bytes = given.memory_bytes;
  if (given.key_bytes_max != 0) options.key_bytes_max = given.key_bytes_max;
  if (given.value_bytes_max != 0) options.value_bytes_max = given.value_bytes_max;
  options.decision_log_bytes = given.decision_log_bytes;
  options.background.reset();
  if (given.background_ms == 0 && given.manual_clock == 0) options.background = background_usual;
  if (given.background_ms != 0 && given.background_ms != -1) {
    options.background = Millis{given.background_ms};
  }
  if (Status opened = open_storage(given, *made, options); !opened) return opened.error();
  SEMEL_TRY(engine, Engine::open(options));
  made->key_bytes_max = options.key_bytes_max;
  made->value_bytes_max = options.value_bytes_max;
  made->engine = std::move(engine);
  if (Status recovered = recover(*made); !recovered) return recovered.error();
  return made;
}

void fill(semel_stats& to, const Stats& stats) noexcept {
  to.records = stats.records;
  to.operations = stats.operations;
  to.hits = stats.hits;
  to.misses = stats.misses;
  to.expired = stats.expired;
  to.refused = stats.refused;
  to.claims_granted = stats.claims_granted;
  to.claims_duplicate = stats.claims_duplicate;
  to.takeovers = stats.takeovers;
  to.stale_owners = stats.stale_owners;
  to.waiters = stats.waiters;
  to.bytes_used = stats.bytes_used;
  to.bytes_limit = stats.bytes_limit;
}

}  // namespace

Watchdog& semel_engine::keeper() {
  const base::MutexLock lock{mutex};
  if (watchdog == nullptr) {
    watchdog = std::make_unique<Watchdog>(
        *engine, WatchdogOptions{.every = c::keeper_every, .work_max = work_max});
  }
  return *watchdog;
}

int semel_engine_open(const semel_options* options, semel_engine** engine) {
  if (engine == nullptr) return c::say_null("engine");
  *engine = nullptr;
  semel_options given;
  if (const int error = c::read_sized(options, given); error != SEMEL_OK) return error;
  return c::guarded([&] {
    auto made = open(given);
    if (!made) return c::say(made.error());
    *engine = made.value().release();
    return int{SEMEL_OK};
  });
}

int semel_engine_close(semel_engine* engine) {
  if (engine == nullptr) return SEMEL_OK;
  if (const int error = c::check_process(*engine)) return error;
  return c::guarded([&] {
    const std::unique_ptr<semel_engine> ends{engine};
    {
      const base::MutexLock lock{ends->mutex};
      ends->watchdog.reset();
    }
    return ends->storage == nullptr ? int{SEMEL_OK}
                                    : c::say(ends->engine->confirm(Durability::synced));
  });
}

int semel_engine_advance(semel_engine* engine, semel_int64 ms) {
  if (engine == nullptr) return c::say_null("engine");
  if (const int error = c::check_process(*engine)) return error;
  return c::guarded([&] {
    if (ms < 0) return c::say(ErrorCode::bad_option, "ms = " + std::to_string(ms));
    if (ms > 0 && engine->manual == nullptr) {
      return c::say(ErrorCode::bad_option, "the clock is not a manual one");
    }
    if (ms > limits::ttl_max.count()) {
      return c::say(ErrorCode::bad_option, "ms = " + std::to_string(ms) + ", at most 100 years");
    }
    if (ms > 0) engine->manual->advance(Millis{ms});
    while (engine->engine->advance() == 0) {
    }
    return int{SEMEL_OK};
  });
}

int semel_engine_stats(semel_engine* engine, semel_stats* stats) {
  if (engine == nullptr || stats == nullptr) return c::say_null("engine or stats");
  if (const int error = c::check_process(*engine)) return error;
  c::Answer answer{stats};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    fill(*answer.operator->(), engine->engine->stats());
    answer->accepting = engine->storage == nullptr || engine->storage->accepts_writes() ? 1 : 0;
    return answer.deliver(SEMEL_OK);
  });
}
