#include "net/group/node_group.hpp"

#include <poll.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "net/group/entry_runner.hpp"
#include "net/group/group_settings.hpp"
#include "net/group/replicated_group.hpp"

namespace semel::net {

using replication::Replica;
using replication::ReplicaOptions;
using replication::ReplicaStatus;

struct NodeGroup::Parts {
  Parts(std::unique_ptr<Replica> made, const ReplicaOptions& options, std::string client_port)
      : replica(std::move(made)), group(*replica, options, std::move(client_port)) {}
  ~Parts() { replica->stop(); }  // its thread uses the others
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  const std::unique_ptr<Replica> replica;
  ReplicatedGroup group;
  std::optional<EntryRunner> runner;
};

namespace {

Error not_ready(std::string text) {
  return {ErrorCode::storage_failed, std::move(text)};
}
Error with_whole_text(const Error& error, const std::string& where = {}) {
  return {error.code, where.empty() ? error.message() : where + ": " + error.message()};
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
  parts_ = std::make_unique<Parts>(*std::move(opened), options,
                                   std::to_string(settings_.integer(Setting::port)));
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
  if (parts_ == nullptr) return;
  Replica& replica = *parts_->replica;
  if (!replica.is_leader() || !replica.transfer(0)) return;
  constexpr int tries = 300;
  for (int i = 0; i < tries && replica.is_leader(); ++i) poll(nullptr, 0, 1);
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
  const ReplicaStatus status = parts_->replica->status();
  if (!status.failed.empty()) return not_ready("this node takes part no longer: " + status.failed);
  if (status.is_fetching) {
    return not_ready("a snapshot is fetched from the leader, " +
                     std::to_string(status.totals.snapshot_bytes_received) + " bytes so far");
  }
  if (status.leader == 0) return not_ready("the group has no leader, or it is not known");
  const std::uint64_t lag =
      status.leader_commit < status.applied ? 0 : status.leader_commit - status.applied;
  const auto lag_max = static_cast<std::uint64_t>(settings_.integer(Setting::cluster_ready_lag));
  if (lag <= lag_max) return Done{};
  return not_ready("this node lags behind by " + std::to_string(lag) +
                   " entries, and cluster-ready-lag is " + std::to_string(lag_max));
}

Status NodeGroup::reload_tls() {
  if (!uses_tls()) return Done{};
  return parts_->replica->reload_tls(peer_tls(settings_));
}

}  // namespace semel::net
