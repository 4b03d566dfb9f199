#include "semel/engine.hpp"
#include "semel/engine_host.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <string>
#include <system_error>

#include "base/random.hpp"
#include "engine/api/engine_impl.hpp"
#include "engine/api/store_calls.hpp"
#include "engine/core/apply.hpp"
#include "engine/core/core_update.hpp"
#include "engine/core/figures.hpp"
#include "engine/core/section.hpp"
#include "semel/claims.hpp"
#include "semel/hashes.hpp"
#include "semel/store.hpp"

namespace semel {

namespace {

Status check_range(const char* name, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
  if (value >= low && value <= high) return Done{};
  return Error{ErrorCode::bad_option, std::string{name} + " = " + std::to_string(value) +
                                          ", range " + std::to_string(low) + ".." +
                                          std::to_string(high)};
}

Status check_options(const Options& options) {
  SEMEL_CHECK(check_range("memory_bytes", options.memory_bytes, limits::memory_bytes_min,
                          limits::memory_bytes_max));
  if (options.memory_room_bytes > limits::memory_bytes_max) {
    return Error{ErrorCode::bad_option,
                 "memory_room_bytes = " + std::to_string(options.memory_room_bytes) + ", at most " +
                     std::to_string(limits::memory_bytes_max)};
  }
  SEMEL_CHECK(check_range("key_bytes_max", options.key_bytes_max, 1, limits::key_bytes_max));
  SEMEL_CHECK(check_range("value_bytes_max", options.value_bytes_max, 0, limits::value_bytes_max));
  SEMEL_CHECK(check_range("shard_count", options.shard_count, 1, limits::shard_count_max));
  if (!std::has_single_bit(options.shard_count)) {
    return Error{ErrorCode::bad_option,
                 "shard_count = " + std::to_string(options.shard_count) + ", not a power of two"};
  }
  if (options.background) {
    SEMEL_CHECK(check_range("background", static_cast<std::uint64_t>(options.background->count()),
                            0, 1000));
  }
  SEMEL_CHECK(check_range("decision_log_bytes", options.decision_log_bytes, 0,
                          std::min(limits::decision_log_bytes_max, options.memory_bytes / 4)));
  SEMEL_CHECK(check_range("spill_above", options.spill_above, 5, 90));
  SEMEL_CHECK(check_range("spill_ttl_min",
                          static_cast<std::uint64_t>(options.spill_ttl_min.count()), 0,
                          static_cast<std::uint64_t>(limits::ttl_max.count())));
  if (options.durability != Durability::memory && options.journal == nullptr) {
    return Error{ErrorCode::bad_option, "durability above memory needs a journal"};
  }
  SEMEL_CHECK(check_range("first_version", options.first_version, 1, limits::version_max - 1));
  if (options.clock != nullptr && options.clock->now() > Timestamp{limits::time_max}) {
    return Error{ErrorCode::bad_option,
                 "clock: " + std::to_string(options.clock->now().time_since_epoch().count()) +
                     " ms, allowed up to " + std::to_string(limits::time_max.count())};
  }
  if (options.replicated && options.cold != nullptr) {
    return Error{ErrorCode::bad_option, "a replica has no cold store"};
  }
  // The largest record must fit into the journal, which may not refuse once it is visible.
  const std::size_t record = options.value_bytes_max + options.key_bytes_max + 1024;
  if (options.journal != nullptr && record > options.journal->group_bytes_max()) {
    return Error{ErrorCode::bad_option,
                 "value_bytes_max = " + std::to_string(options.value_bytes_max) +
                     " with its key is more than the journal takes at once, " +
                     std::to_string(options.journal->group_bytes_max())};
  }
  return Done{};
}

/// How often the engine's own thread is to come by; none: there is none.
std::optional<Millis> background_of(const Options& options) {
  constexpr Millis usual{100};
  if (options.background != Millis{0}) return options.background;
  // A test moves a manual clock and then expects to see the effect.
  if (dynamic_cast<const ManualClock*>(options.clock) != nullptr) return std::nullopt;
  return usual;
}

}  // namespace

Engine::Impl::Impl(const Options& options, std::uint64_t incarnation)
    : own_clock_(options.clock == nullptr ? std::make_unique<SystemClock>() : nullptr),
      clock_(options.clock == nullptr ? *own_clock_ : *options.clock),
      core_(options, clock_),
      sessions_(options.replicated ? 0 : incarnation) {}

Engine::Impl::~Impl() {
  spiller_.stop();
  background_.stop();
  if (core_.journal() != nullptr) core_.journal()->engine_ends();
  wait_queue_.close();
}

void Engine::Impl::apply_or_refuse(engine::Operation& operation,
                                   const engine::KeyLocation& location, const StoreOp& op,
                                   Timestamp now, StoreOutcome& outcome) noexcept {
  try {
    engine::apply_at(core_, operation, location, op, now, outcome);
  } catch (const std::bad_alloc&) {
    engine::refuse(outcome, ErrorCode::memory_full);  // before anything was changed
  }
}

void Engine::Impl::apply(const StoreOp& op, StoreOutcome& outcome, Timestamp now) noexcept {
  engine::ThreadContext* const found = core_.threads().try_context();
  if (found == nullptr) [[unlikely]]
    return engine::refuse(outcome, core_.why_no_context());
  engine::ThreadContext& own = *found;
  if (!engine::begin_apply(op, core_.options(), outcome, own)) [[unlikely]]
    return;
  {
    engine::KeyLocation location = core_.keys().location_of({op.db, op.key});
    engine::Operation operation{core_, own};
    if (operation.admit(location, {op.db, op.key})) [[likely]] {
      operation.keep_up(now);
      apply_or_refuse(operation, location, op, now, outcome);
    } else {
      outcome.error = ErrorCode::section_held;
    }
  }
  after_operation(own, {op.db, op.key}, outcome.applied);
  if (outcome.error != ErrorCode::ok) return;  // errors need no durability wait
  if (const ErrorCode unknown = confirm(own); unknown != ErrorCode::ok) outcome.error = unknown;
}

Status Engine::Impl::confirm_ticket(Ticket ticket) {
  Journal* const journal = core_.journal();
  const Durability level = core_.options().durability;
  // Inside a section commit() waits, once for the whole group.
  const bool waits = level != Durability::memory && core_.context().section == nullptr;
  if (ticket == 0 || journal == nullptr || !waits) return Done{};
  core_.guarded_journal().pace();
  if (core_.guarded_journal().wait_for(ticket, level)) return Done{};
  return Error{ErrorCode::outcome_unknown, {}};
}

Status Engine::Impl::confirm(Durability level) {
  if (core_.threads().is_forked()) return Error{ErrorCode::forked, {}};
  Journal* const journal = core_.journal();
  if (journal == nullptr) return Error{ErrorCode::bad_option, "no journal"};
  // A record that another thread has published but not yet appended does not count: no call has
  // returned it, because each waits for the append before it answers from a record.
  Status status = Error{ErrorCode::outcome_unknown, {}};
  core_.callbacks().run(Callback::journal,
                        [&] { status = journal->wait(journal->newest(), level); });
  return status;
}

void Engine::Impl::apply(std::span<const StoreOp> ops, std::span<StoreOutcome> outcomes,
                         std::optional<Timestamp> given) noexcept {
  ErrorCode no = core_.begin_call();
  if (ops.size() > limits::batch_max) no = ErrorCode::too_many_keys;
  if (no != ErrorCode::ok) [[unlikely]] {
    for (StoreOutcome& outcome : outcomes) engine::refuse(outcome, no);
    return;
  }
  Timestamp now = given.value_or(core_.now(core_.context()));
  for (std::size_t at = 0; at < ops.size(); at += engine::Core::group_max) {
    const std::size_t count = std::min(engine::Core::group_max, ops.size() - at);
    const auto group = ops.subspan(at, count);
    engine::for_group(
        core_, count, now,
        [&](std::size_t i) {
          return KeyRef{group[i].db, group[i].key};
        },
        [&](std::size_t i, engine::Operation& operation, const engine::KeyLocation& location) {
          StoreOutcome& outcome = outcomes[at + i];
          if (!engine::begin_apply(group[i], core_.options(), outcome, operation.context())) return;
          if (location.shard != nullptr) [[likely]] {
            apply_or_refuse(operation, location, group[i], given.value_or(now), outcome);
          } else {
            outcome.error = ErrorCode::section_held;
          }
        });
    if (wait_queue_.has_waiters()) [[unlikely]] {
      for (std::size_t i = 0; i < count; ++i) {
        if (outcomes[at + i].applied) changed(core_.context(), {group[i].db, group[i].key});
      }
    }
  }
  const ErrorCode unknown = confirm_batch();
  if (unknown == ErrorCode::ok) [[likely]]
    return;
  for (StoreOutcome& outcome : outcomes) {
    if (outcome.error == ErrorCode::ok) outcome.error = unknown;
  }
}

std::size_t Engine::Impl::advance(std::size_t budget) {
  if (core_.begin_call() != ErrorCode::ok) return budget;
  const Timestamp now = engine::now_of(clock_);
  const std::size_t left = upkeep_.advance(now, budget, false);
  if (upkeep_.evictor().limit_bytes() != 0 && core_.context().section == nullptr) {
    static_cast<void>(upkeep_.keeps_within_limit(core_.context()));
  }
  wait_queue_.poll(now);
  return left;
}

Status Engine::Impl::start() {
  SEMEL_CHECK(core_.start());
  upkeep_.start();
  const Options& options = core_.options();
  const std::optional<Millis> every = background_of(options);
  if (!every) return Done{};
  background_.start(*every, [this] { step_background(); });
  if (options.cold != nullptr) spiller_.start(*every);
  return Done{};
}

void Engine::Impl::step_background() {
  if (restorer_.is_recovering()) return;
  // In small parts, so that threads with timers to hand over are not kept out for long.
  try {
    while (advance(10'000) == 0) {
    }
    upkeep_.go_on_compacting();
  } catch (const std::bad_alloc&) {  // the next round may have more
  }
  core_.region().touch_ahead();
}

Engine::Engine(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Engine::~Engine() {
  // In a child nothing of the parent's is ended: neither threads, which are not here, nor a journal
  // or sections that the parent goes on with.
  if (impl_ != nullptr && impl_->core().threads().is_forked()) static_cast<void>(impl_.release());
}

void Engine::prepare_process() noexcept {
  static_cast<void>(engine::Barrier::of_kernel().prepare());
}

[[gnu::cold]] Result<std::unique_ptr<Engine>> Engine::open(const Options& options) {
  SEMEL_CHECK(check_options(options));
  if (!ProcessMark::is_watching()) return Error{ErrorCode::out_of_address_space, "atfork"};
  try {
    auto impl = std::make_unique<Impl>(options, base::random_number());
    SEMEL_CHECK(impl->start());
    return std::unique_ptr<Engine>{new Engine{std::move(impl)}};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_address_space, "heap"};
  } catch (const std::system_error& failed) {
    return Error{ErrorCode::no_thread, failed.what()};
  }
}

EngineHost Engine::host() noexcept {
  return EngineHost{*this};
}

EngineHost::EngineHost(Engine& engine) noexcept
    : engine_(&engine), impl_(&engine::impl_of(engine)) {}

Store Engine::store(std::uint8_t db) noexcept {
  return Store{*this, db};
}

Hashes Engine::hashes(std::uint8_t db) noexcept {
  return Hashes{*this, db};
}

void EngineHost::apply(const StoreOp& op, StoreOutcome& outcome) noexcept {
  if (const engine::LoggedCall log = impl_->log_for_call()) [[unlikely]]
    return store_calls::apply_logged(*log, *engine_, op, outcome);
  impl_->apply(op, outcome, impl_->now());
}

void EngineHost::apply(std::span<const StoreOp> ops, std::span<StoreOutcome> outcomes) noexcept {
  if (const engine::LoggedCall log = impl_->log_for_call()) [[unlikely]]
    return store_calls::apply_logged(*log, *engine_, ops, outcomes);
  impl_->apply(ops, outcomes, {});
}

void EngineHost::apply_at(std::span<const StoreOp> ops, std::span<StoreOutcome> outcomes,
                          Timestamp now) noexcept {
  impl_->apply(ops, outcomes, now);
}

std::size_t Engine::advance(std::size_t budget) {
  return impl_->advance(budget);
}

std::size_t EngineHost::compact() {
  return impl_->upkeep().compact();
}

std::uint64_t Engine::subscribe_expired(ExpiredSink sink) {
  auto all = section({});  // no sink is called while sinks change
  if (!all) return 0;
  return impl_->core().insight().add_sink(std::move(sink));
}

void Engine::unsubscribe_expired(std::uint64_t handle) {
  auto all = section({});
  if (!all) return;
  impl_->core().insight().remove_sink(handle);
}

SessionId Engine::open_session() {
  if (const engine::LoggedCall log = impl_->log_for_call()) {
    const auto answer =
        engine::decided(*log, {replication::SessionCommand{}}, engine::Repeat::never);
    return answer.ok() ? static_cast<SessionId>(answer->number) : 0;
  }
  if (impl_->core().begin_call() != ErrorCode::ok || !impl_->accepts_changes()) return 0;
  // A replica opens sessions by its replicated log: engine::open_session().
  if (impl_->core().context().decision != nullptr) return 0;
  return impl_->sessions().open();
}

void Engine::close_session(SessionId session) {
  if (const engine::LoggedCall log = impl_->log_for_call()) {
    // If it fails, claims bound to the session end by their leases.
    static_cast<void>(engine::decided(
        *log, {replication::SessionCommand{replication::SessionCommand::What::close, session}},
        engine::Repeat::safe));
    return;
  }
  if (impl_->core().begin_call() != ErrorCode::ok || !impl_->accepts_changes()) return;
  if (impl_->sessions().close(session)) impl_->wait_queue().session_closed(session);
}

std::uint64_t Engine::size(std::uint8_t db) const {
  if (db >= limits::db_count) return 0;
  engine::Core& core = impl_->core();
  if (core.begin_call() != ErrorCode::ok) return 0;
  // Expired keys do not count. Do not wait for the advancing thread: it may wait for our section.
  impl_->upkeep().advance(impl_->now(), ~std::size_t{0}, core.context().section == nullptr);
  const std::uint8_t stored = core.databases().stored(db);
  const std::uint64_t beyond = core.cold() == nullptr ? 0 : core.cold()->size(stored, impl_->now());
  return engine::records_in(core, stored) + beyond;
}

Result<SpillReport> EngineHost::spill() {
  if (const ErrorCode no = impl_->core().begin_call(); no != ErrorCode::ok) return Error{no, {}};
  return impl_->spiller().spill();
}

ColdStore* EngineHost::cold_store() const noexcept {
  return impl_->core().cold();
}
ColdMark EngineHost::cold_mark() const noexcept {
  return cold_store() != nullptr ? impl_->core().cold()->mark() : ColdMark{};
}

bool EngineHost::spill_due() const {
  return !impl_->core().threads().is_forked() && impl_->spiller().is_due();
}

std::vector<NamespaceCounts> EngineHost::claim_counts() const {
  engine::Core& core = impl_->core();
  if (core.threads().is_forked() || core.insight().claim_counts() == nullptr) return {};
  return core.insight().claim_counts()->all();
}

void EngineHost::set_client(Bytes client) noexcept {
  engine::Core& core = impl_->core();
  if (core.insight().decisions() == nullptr) return;
  if (!core.threads().is_last()) [[unlikely]] {
    if (core.threads().try_context() != nullptr) set_client(client);
    return;
  }
  engine::ThreadContext& own = engine::Threads::last_context();
  const std::size_t size = std::min(client.size(), own.client.size());
  own.client_size = static_cast<std::uint8_t>(size);
  if (size != 0) engine::copy_bytes(own.client.data(), client.data(), size);
}

Status Engine::set_memory_limit(std::size_t bytes) {
  const Options& options = impl_->core().options();
  if (options.cold != nullptr || options.replicated) {
    return Error{ErrorCode::bad_option,
                 options.replicated
                     ? "all nodes of a group have one limit, set at their start"
                     : "the limit of an engine with a cold store is set at its open"};
  }
  const std::size_t most = std::max(options.memory_bytes, options.memory_room_bytes);
  SEMEL_CHECK(check_range("memory_bytes", bytes, limits::memory_bytes_min, most));
  if (!impl_->core().region().set_limit(bytes)) {
    return Error{ErrorCode::bad_option, "memory_bytes = " + std::to_string(bytes)};
  }
  return Done{};
}

Stats Engine::stats() const {
  if (impl_->core().threads().is_forked()) return {};
  Stats stats = engine::stats_of(impl_->core());
  impl_->upkeep().add_to(stats);
  stats.waiters = impl_->wait_queue().waiting();
  stats.callbacks_threw = impl_->core().callbacks().threw();
  stats.spills = impl_->spiller().spills();
  stats.spills_failed = impl_->spiller().failed();
  const engine::Namespaces::Figures namespaces = impl_->namespaces().figures();
  stats.namespaces = namespaces.count;
  stats.namespaces_dropped = namespaces.dropped;
  stats.bytes_namespaces = namespaces.bytes;
  return stats;
}

const Clock& Engine::clock() const noexcept {
  // mo: relaxed: set before calls are made
  const engine::CallLog* const log = impl_->call_log.load(std::memory_order_relaxed);
  if (log == nullptr) [[likely]]
    return impl_->clock();
  // A replica's own clock stands still between entries: no one could compute a deadline from it.
  // Within one it is the entry's time, which is the same on each replica.
  const engine::ThreadContext* const own = impl_->core().threads().try_context();
  return own != nullptr && own->sees_replica() ? impl_->clock() : log->clock();
}

Timestamp Engine::now() const noexcept {
  const engine::LoggedCall log = impl_->log_for_call();
  return log ? log->clock().now() : impl_->now();
}

bool EngineHost::is_replica() const noexcept {
  return impl_->core().options().replicated;
}

Status Engine::confirm(Durability level) {
  // Of a group every answer has the highest level; only what others have seen may be newer.
  if (const engine::LoggedCall log = impl_->log_for_call()) return log->read();
  return impl_->confirm(level);
}

void EngineHost::quiesce() {
  if (impl_->core().begin_call() != ErrorCode::ok) return;
  impl_->core().threads().collect_all(impl_->core().context());
  impl_->upkeep().free_all_large();
}

std::vector<std::string> EngineHost::check_invariants() {
  std::vector<std::string> broken;
  if (impl_->core().threads().is_forked()) return {"the engine belongs to the parent process"};
  impl_->upkeep().check_invariants(broken);
  return broken;
}

}  // namespace semel
