#include "net/node/node_memory.hpp"

#include <algorithm>
#include <array>

#include "semel/engine_host.hpp"

namespace semel::net {
namespace {

engine::EvictionTerms eviction_terms_of(const Settings& settings, const MemoryPlan& plan) {
  using engine::EvictionOrder;
  constexpr std::int64_t samples_max = 64;
  const auto number = [&](Setting setting) {
    return static_cast<std::uint64_t>(settings.integer(setting));
  };
  engine::EvictionTerms terms{
      .databases = cache_databases_of(settings.text(Setting::cache_databases)),
      .samples = static_cast<unsigned>(
          std::min(settings.integer(Setting::maxmemory_samples), samples_max)),
      .lfu_log_factor = number(Setting::lfu_log_factor),
      .lfu_decay_minutes = number(Setting::lfu_decay_time),
      .limit_bytes = plan.counts ? plan.limit_bytes : 0};
  const MemoryPolicy policy = memory_policy_of(settings);
  terms.only_with_ttl = policy <= MemoryPolicy::volatile_ttl;
  switch (policy) {
    case MemoryPolicy::volatile_lru:
    case MemoryPolicy::allkeys_lru:
      terms.order = EvictionOrder::lru;
      break;
    case MemoryPolicy::volatile_lfu:
    case MemoryPolicy::allkeys_lfu:
      terms.order = EvictionOrder::lfu;
      break;
    case MemoryPolicy::volatile_random:
    case MemoryPolicy::allkeys_random:
      terms.order = EvictionOrder::random;
      break;
    case MemoryPolicy::volatile_ttl:
      terms.order = EvictionOrder::ttl;
      break;
    case MemoryPolicy::noeviction:
      terms.order = EvictionOrder::none;
      break;
  }
  return terms;
}

}  // namespace

NodeMemory::NodeMemory(Engine& engine, Settings& settings, KeyspaceEvents& events,
                       Tracking& tracking)
    : guard(engine),
      engine_(engine),
      settings_(settings),
      events_(events),
      tracking_(tracking),
      arena_bytes_(engine.stats().bytes_limit) {
  constexpr std::array of_memory = {Setting::maxmemory,       Setting::maxmemory_policy,
                                    Setting::cache_databases, Setting::maxmemory_samples,
                                    Setting::lfu_log_factor,  Setting::lfu_decay_time};
  settings_.apply_with(of_memory, [this] { return apply(); });
  engine::on_evicted(engine_, [this](std::uint8_t db, Bytes key) { note_evicted(db, key); });
}

NodeMemory::~NodeMemory() {
  engine::on_evicted(engine_, nullptr);
}

/// The limit of an engine with a cold store, or in a group, stays: a lower maxmemory limits the
/// counted bytes.
Status NodeMemory::apply() {
  MemoryPlan plan = memory_plan_of(settings_);
  if (engine_.host().is_replica()) {
    SEMEL_CHECK(engine_.set_memory_limit(plan.limit_bytes));  // says why not
  } else if (engine_.host().cold_store() != nullptr) {
    if (plan.limit_bytes > arena_bytes_) return engine_.set_memory_limit(plan.limit_bytes);
    plan.counts = plan.counts || plan.limit_bytes < arena_bytes_;
  } else {
    SEMEL_CHECK(fit_arena(plan));
  }
  return guard.set(eviction_terms_of(settings_, plan));
}

Status NodeMemory::fit_arena(const MemoryPlan& plan) {
  if (!plan.counts) return engine_.set_memory_limit(plan.limit_bytes);
  Status set = engine_.set_memory_limit(std::max(plan.arena_bytes, arena_bytes_));
  // There are not always addresses for more than was asked for at the start.
  if (set || plan.limit_bytes > arena_bytes_) return set;
  return engine_.set_memory_limit(arena_bytes_);
}

Status NodeMemory::open() {
  const MemoryPlan plan = memory_plan_of(settings_);
  if (!plan.counts) return Done{};
  return guard.set(eviction_terms_of(settings_, plan));
}

/// By the thread that evicts, which may be in the middle of a command: published and sent later.
void NodeMemory::note_evicted(std::uint8_t db, std::string_view key) {
  events_.queue_evicted(db, key);
  if (tracking_.any()) tracking_.changed(Tracking::nobody, key);
}

}  // namespace semel::net
