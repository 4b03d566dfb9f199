#include "gateway/proxy/claim_backend.hpp"

#include <utility>

#include "gateway/store/embedded_store.hpp"
#include "gateway/store/node_setup.hpp"
#include "gateway/store/node_store.hpp"

namespace semel::gateway {
namespace {

constexpr Millis watch_every{250};  // leases are 1 s at least

}  // namespace

ClaimBackend::ClaimBackend(const Settings& settings, const Clock& clock, Counters& counters,
                           MemoryBudget& memory, CurrentTls& node_tls)
    : settings_(settings), clock_(clock), counters_(counters), node_tls_(node_tls), held_(memory) {}

Status ClaimBackend::open() {
  if (!settings_.node.is_used()) return open_engine();
  node_ = std::make_unique<NodeContext>(NodeContext{.settings = settings_.node,
                                                    .tls = node_tls_,
                                                    .connect_timeout = settings_.connect_timeout,
                                                    .counters = counters_,
                                                    .trouble = trouble_});
  return Done{};
}

Status ClaimBackend::open_engine() {
  Options options{.clock = &clock_,
                  .memory_bytes = settings_.memory_bytes,
                  .value_bytes_max = semel::limits::value_bytes_max};
  const auto in_store = [&](const Error& error) {
    return Error{error.code, "store '" + settings_.store + "': " + error.message()};
  };
  if (!settings_.store.empty()) {
    auto opened = Storage::open({.directory = settings_.store}, clock_);
    if (!opened) return in_store(opened.error());
    storage_ = *std::move(opened);
    options.journal = storage_.get();
    options.first_version = storage_->first_version();
  }
  // At the level memory no call waits; requests wait for confirm_async(), see session.hpp.
  auto engine = Engine::open(options);
  if (!engine) return Error{engine.error().code, "the engine: " + engine.error().message()};
  engine_ = *std::move(engine);
  if (storage_ == nullptr) return Done{};
  const auto recovered = storage_->recover(*engine_);
  return recovered ? Status{Done{}} : Status{in_store(recovered.error())};
}

Result<std::shared_ptr<ClaimBackend::Generation>> ClaimBackend::make(const RoutePolicy& policy,
                                                                     CurrentTls& tls) {
  auto made = std::make_shared<Generation>();
  if (node_ == nullptr) {
    SEMEL_TRY(guards, Guards::open(*engine_, policy.routes(), policy.keys(), watch_every));
    made->guards = std::move(guards);
    if (storage_ != nullptr) SEMEL_CHECK(engine_->confirm(settings_.durability));
    return made;
  }
  SEMEL_TRY(rules, RequestRules::open(policy.routes(), policy.keys()));
  made->rules = std::move(rules);
  const NodeContext visited{.settings = node_->settings,
                            .tls = tls,
                            .connect_timeout = node_->connect_timeout,
                            .counters = counters_,
                            .trouble = trouble_,
                            .group = node_->group};
  SEMEL_TRY(setup, set_up_node(visited, *made->rules));
  if (!node_->group) node_->group = std::move(setup.group);  // before there are threads
  made->declarations = std::move(setup.declarations);
  return made;
}

Result<Terms> ClaimBackend::prepare(std::shared_ptr<const RoutePolicy> policy, CurrentTls& tls) {
  forget_unused();
  Result<std::shared_ptr<Generation>> made = make(*policy, tls);
  if (!made) {
    // Some namespaces may have the new terms. A longer memory is the one change that cannot be
    // undone.
    const bool may_have_begun = made.error().code != ErrorCode::refused;  // no node was reached
    if (policy_ != nullptr && may_have_begun) static_cast<void>(make(*policy_, node_tls_));
    return made.error();
  }
  generations_.push_back(*made);
  policy_ = policy;
  const RoutePolicy* const read = policy.get();
  const auto end_use = [policy = std::move(policy), use = (*made)->use](const RoutePolicy*) {
    const base::MutexLock lock{use->mutex};
    use->is_over = true;
  };
  return terms_of(std::shared_ptr<const RoutePolicy>{read, end_use}, **made);
}

Terms ClaimBackend::terms_of(std::shared_ptr<const RoutePolicy> policy, Generation& made) {
  Terms terms{.policy = std::move(policy)};
  // `made` lives as long as a request has the policy.
  if (node_ == nullptr) {
    const Durability level = storage_ == nullptr ? Durability::memory : settings_.durability;
    terms.make_store = [this, &made, level](asio::io_context& /*io*/,
                                            const std::shared_ptr<Bridge>& bridge,
                                            const std::shared_ptr<ClaimStore>& /*before*/) {
      return std::make_shared<EmbeddedStore>(*made.guards, held_, level, bridge);
    };
    return terms;
  }
  terms.make_store = [this, &made](asio::io_context& io, const std::shared_ptr<Bridge>& /*bridge*/,
                                   const std::shared_ptr<ClaimStore>& before) {
    const auto known = std::static_pointer_cast<NodeStore>(before);
    auto store = std::make_shared<NodeStore>(io, *made.rules, held_, *node_,
                                             known == nullptr ? nullptr : known->link());
    store->link()->declare(made.declarations);
    store->link()->start();
    return store;
  };
  return terms;
}

void ClaimBackend::use() {
  const base::MutexLock lock{mutex_};
  current_ = generations_.back();
}

bool ClaimBackend::is_over(const Generation& generation) {
  const base::MutexLock lock{generation.use->mutex};
  return generation.use->is_over;
}

/// The generations of policies that no request uses any more.
void ClaimBackend::forget_unused() {
  std::erase_if(generations_,
                [&](const auto& each) { return each != generations_.back() && is_over(*each); });
}

std::shared_ptr<ClaimBackend::Generation> ClaimBackend::current() const {
  const base::MutexLock lock{mutex_};
  return current_;
}

Status ClaimBackend::ready() const {
  if (node_ != nullptr && counters_.store_connections.get() == 0) {
    return Error{ErrorCode::refused,
                 "there is no connection to a node of the store: " + trouble_.get()};
  }
  if (storage_ != nullptr && !storage_->accepts_writes()) {
    return Error{ErrorCode::refused, storage_->stats().trouble};
  }
  return Done{};
}

Status ClaimBackend::resolve(std::string_view route, std::string_view key, bool is_done) {
  const std::shared_ptr<Generation> used = current();
  if (node_ != nullptr) return resolve_at_node(*node_, *used->rules, route, key, is_done);
  SEMEL_CHECK(used->guards->resolve(route, key, is_done));
  return storage_ == nullptr ? Status{Done{}} : engine_->confirm(settings_.durability);
}

void ClaimBackend::close() {
  {
    const base::MutexLock lock{mutex_};
    current_.reset();
  }
  generations_.clear();
  engine_.reset();
  storage_.reset();
}

}  // namespace semel::gateway
