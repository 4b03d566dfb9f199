#include "net/group/node_group.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include "net/group/entry_runner.hpp"
#include "net/group/group_settings.hpp"
#include "net/group/replicated_group.hpp"
#include "replication/node/shown_status.hpp"

namespace semel::net {

using replication::Replica;
using replication::ReplicaOptions;
using replication::ReplicaStatus;

struct NodeGroup::Parts {
  Parts(std::unique_ptr<Replica> made, GroupTerms terms)
      : replica(std::move(made)), group(*replica, std::move(terms)) {}
  ~Parts() { replica->stop(); }  // its thread uses the others
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  const std::unique_ptr<Replica> replica;
  ReplicatedGroup group;
  std::optional<EntryRunner> runner;
};

namespace {

Error with_whole_text(const Error& error, const std::string& where = {}) {
  return {error.code, where.empty() ? error.message() : where + ": " + error.message()};
}

/// Clients of a forwarding node see nothing of a leader's end. A client that follows MOVED waits
/// only for requests under way, and briefly: this node may be the one that is cut off.
GroupTerms terms_of(const ReplicaOptions& options, std::int64_t port) {
  GroupTerms terms{.cluster_id = options.cluster_id,
                   .node_id = options.node_id,
                   .forwards = options.forwards,
                   .calls = {.asks_again = 3 * options.election},
                   .client_port = std::to_string(port)};
  if (options.forwards) {
    terms.calls = {.patience = 10 * options.election, .asks_again = 10 * options.election};
  }
  return terms;
}

/// The event names of operations.md.
std::pair<std::string_view, bool> named(replication::ReplicaEvent::What what) {
  using What = replication::ReplicaEvent::What;
  switch (what) {
    case What::role:
      return {"group_role", false};
    case What::members:
      return {"group_members", false};
    case What::snapshot:
      return {"group_snapshot", false};
    case What::snapshot_failed:
      return {"group_snapshot_failed", true};
    case What::peer_refused:
      return {"group_peer_refused", true};
    case What::peer_unreachable:
      return {"group_peer_unreachable", true};
    case What::disk_full:
      return {"group_disk_full", true};
    case What::disk_has_space:
      return {"group_disk_has_space", false};
    case What::disk_slow:
      return {"group_disk_slow", true};
    case What::disk_in_time:
      return {"group_disk_in_time", false};
    case What::stalled:
      return {"group_stalled", true};
    case What::goes_on:
      return {"group_goes_on", false};
    case What::clock_off:
      return {"group_clock_off", true};
    case What::clock_right:
      return {"group_clock_right", false};
    case What::stopped:
      return {"group_stopped", true};
  }
  return {"group", false};
}

}  // namespace

NodeGroup::NodeGroup(const Settings& settings) : settings_(settings) {}
NodeGroup::~NodeGroup() = default;

Status NodeGroup::prepare() {
  ReplicaOptions options;
  SEMEL_CHECK(read_replica_options(settings_, options));
  if (options.founders.empty()) {
    return Error{ErrorCode::bad_option, "cluster-init: the first members are needed, as `peer`"};
  }
  options.founds = true;
  auto opened = Replica::open(options);
  return opened.ok() ? Status{Done{}} : with_whole_text(opened.error(), options.directory);
}

Status NodeGroup::check() const {
  ReplicaOptions options;
  return read_replica_options(settings_, options);
}

Status NodeGroup::open(const Options& engine, Report report) {
  ReplicaOptions options;
  SEMEL_CHECK(read_replica_options(settings_, options));
  options.engine = engine;
  // The memory for records is the same on all nodes, whatever the size of their decision logs.
  options.engine.memory_bytes += replication::memory_reserve + engine.decision_log_bytes;
  options.report = [report = std::move(report)](const replication::ReplicaEvent& event) {
    const auto& [name, is_warning] = named(event.what);
    report({.name = name, .is_warning = is_warning, .term = event.term, .text = event.text});
  };
  auto opened = Replica::open(options);
  if (!opened.ok()) return with_whole_text(opened.error(), options.directory);
  parts_ = std::make_unique<Parts>(*std::move(opened),
                                   terms_of(options, settings_.integer(Setting::port)));
  return Done{};
}

Engine& NodeGroup::engine() noexcept {
  return parts_->replica->engine();
}

Status NodeGroup::start(Node& node) {
  parts_->runner.emplace(node);
  node.set_group(parts_->group);
  const Status started = parts_->replica->start(&*parts_->runner);
  if (!started) return with_whole_text(started.error());
  return Done{};
}

void NodeGroup::hand_over() {
  if (parts_ != nullptr) parts_->replica->hand_over();
}
void NodeGroup::stop() {
  if (parts_ != nullptr) parts_->replica->stop();
}
NodeGroup::Ending NodeGroup::ending() const {
  if (parts_ == nullptr) return {};
  ReplicaStatus status = parts_->replica->status();
  return {.reason = std::move(status.failed), .needs_reopen = status.needs_reopen};
}
Status NodeGroup::ready() const {
  if (parts_ == nullptr) return Done{};
  const auto lag_max = static_cast<std::uint64_t>(settings_.integer(Setting::cluster_ready_lag));
  return replication::check_ready(*parts_->replica, lag_max, "cluster-ready-lag");
}

Status NodeGroup::reload_tls() {
  if (!uses_tls()) return Done{};
  return parts_->replica->reload_tls(peer_tls(settings_));
}

}  // namespace semel::net
