#include "tools/semel/node/node_group.hpp"

#include <poll.h>
#include <algorithm>

#include <charconv>
#include <map>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "net/cluster/group.hpp"
#include "net/node/group_runner.hpp"
#include "replication/node/memory_gate.hpp"
#include "replication/node/replica.hpp"
#include "replication/state/library_fields.hpp"
#include "tools/semel/node/node_options.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

using net::Setting;
using replication::Replica;
using replication::ReplicaOptions;
using replication::ReplicaStatus;

namespace {

std::optional<std::uint64_t> number_of(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

/// "id=host:port" and, perhaps, ",host:port".
Status read_peers(const std::vector<std::string>& words,
                  std::map<std::uint64_t, std::string>& peers) {
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const auto id = number_of(std::string_view{word}.substr(0, equals), 10);
    const std::string address = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (!id || *id == 0 || !replication::check_member_address(address)) {
      return usage_error("peer: '" + word + "' is not id=host:port or id=host:port,host:port");
    }
    if (!peers.emplace(*id, address).second) {
      return usage_error("peer: node " + std::to_string(*id) + " stands there twice");
    }
  }
  return Done{};
}

}  // namespace

class NodeGroup::Inside final : public net::Group, public replication::RequestRunner {
 public:
  Inside(std::unique_ptr<Replica> made, const ReplicaOptions& options, std::string port)
      : replica(std::move(made)),
        cluster_id_(options.cluster_id),
        node_id_(options.node_id),
        forwards_(options.forwards),
        terms_(terms_of(options)),
        port_(std::move(port)) {}

  // --- net::Group ---------------------------------------------------------------------------
  [[nodiscard]] bool leads() const noexcept override { return replica->is_leader(); }
  [[nodiscard]] bool forwards() const noexcept override { return forwards_; }

  [[nodiscard]] net::GroupView view() const override {
    const ReplicaStatus status = replica->status();
    net::GroupView view;
    view.cluster_id = cluster_id_;
    view.node_id = node_id_;
    view.leader = status.leader;
    view.leads = replica->is_leader();
    view.term = status.term;
    view.commit = status.commit;
    view.applied = status.applied;
    view.elections = status.elections;
    view.leader_commit = status.leader_commit;
    view.level = std::max(status.level, replication::feature_level_first);
    view.level_newest = status.level_newest;
    view.is_changing = status.is_changing_members;
    view.is_fetching = status.is_fetching || status.needs_reopen;
    view.disk_is_full = status.disk_is_full;
    view.clock_off_ms = status.clock_off_ms;
    view.stalled_ms = status.stalled_ms;
    view.log_bytes = status.log_bytes;
    view.snapshot_bytes_sent = status.totals.snapshot_bytes_sent;
    view.snapshot_bytes_received = status.totals.snapshot_bytes_received;
    view.refused = status.totals.refused;
    for (const replication::Member& each : status.members) {
      const auto peer = status.peers.find(each.id);
      view.members.push_back(
          {.id = each.id,
           .client_address = client_address(each.address),
           .address = each.address,
           .is_voter = each.role == replication::MemberRole::voter,
           .is_connected = peer != status.peers.end() && peer->second.is_connected,
           .level = peer == status.peers.end() ? 0 : peer->second.level,
           .match = match_of(status, each.id),
           .bytes_sent = peer == status.peers.end() ? 0 : peer->second.bytes_sent,
           .frames_received = peer == status.peers.end() ? 0 : peer->second.frames_received});
    }
    return view;
  }

  void submit(net::GroupRequest request, net::MemoryUse use,
              std::function<void(net::GroupReply)> done) override {
    if (use == net::MemoryUse::grows && gate_.is_full(replica->bytes_besides()))
      return failed(done, Error{ErrorCode::memory_full, {}});
    auto prepared = replication::prepare({std::move(request)});
    if (!prepared.ok()) return failed(done, prepared.error());
    replica->propose(
        *std::move(prepared),
        [done = std::move(done)](Result<replication::Answer> answer) {
          if (!answer.ok()) return failed(done, answer.error());
          auto* const plain = std::get_if<replication::PlainAnswer>(&answer->what);
          if (plain == nullptr) return failed(done, Error{ErrorCode::outcome_unknown, {}});
          done({.error = ErrorCode::ok, .replies = std::move(plain->text), .detail = {}});
        },
        terms_);
  }

  void change_libraries(const replication::LibraryChange& change,
                        std::function<void(net::GroupLibraryAnswer)> done) override {
    const auto failed = [](const auto& call, const Error& error) {
      call({.error = error.code, .detail = error.detail, .verdict = {}});
    };
    const replication::FeatureLevel level = replica->status().level;
    if (level < replication::feature_level_libraries) {
      return failed(done, Error{ErrorCode::refused, needs_level(level)});
    }
    if (!change.libraries.empty() && gate_.is_full(replica->bytes_besides())) {
      return failed(done, Error{ErrorCode::memory_full, {}});
    }
    auto prepared = replication::prepare({replication::command_of(change)});
    if (!prepared.ok()) return failed(done, prepared.error());
    replica->propose(
        *std::move(prepared),
        [done = std::move(done), failed](Result<replication::Answer> answer) {
          if (!answer.ok()) return failed(done, answer.error());
          auto* const plain = std::get_if<replication::PlainAnswer>(&answer->what);
          if (plain == nullptr || plain->error != ErrorCode::ok) {
            return failed(done, Error{ErrorCode::outcome_unknown, {}});
          }
          using Fault = replication::LibraryVerdict::Fault;
          done({.error = ErrorCode::ok,
                .detail = {},
                .verdict = {static_cast<Fault>(plain->number), std::move(plain->text)}});
        },
        terms_);
  }

  void read(std::function<void(ErrorCode)> done) override {
    replica->read(
        [done = std::move(done)](const Result<replication::Answer>& answer) {
          done(answer.ok() ? ErrorCode::ok : answer.error().code);
        },
        terms_);
  }

  void open_session(std::function<void(ErrorCode, SessionId)> done) override {
    const auto& owner = replica->session_owner();
    auto prepared =
        replication::prepare({replication::SessionCommand{.node = owner.node, .life = owner.life}});
    if (!prepared.ok()) return done(prepared.error().code, 0);
    replica->propose(
        *std::move(prepared),
        [done = std::move(done)](const Result<replication::Answer>& answer) {
          if (!answer.ok()) return done(answer.error().code, 0);
          const auto* const plain = std::get_if<replication::PlainAnswer>(&answer->what);
          done(ErrorCode::ok, plain == nullptr ? 0 : static_cast<SessionId>(plain->number));
        },
        terms_);
  }

  void close_session(SessionId session) noexcept override {
    using replication::SessionCommand;
    constexpr Millis day{std::int64_t{24} * 3600 * 1000};
    try {
      auto prepared = replication::prepare(
          {SessionCommand{.what = SessionCommand::What::close, .session = session}});
      if (!prepared.ok()) return;
      replica->propose(*std::move(prepared), [](const Result<replication::Answer>&) {},
                       {.repeats = true, .patience = day, .forwards = true, .is_numbered = false});
    } catch (const std::bad_alloc&) {  // the bound claims end by their lease
    }
  }

  [[nodiscard]] Timestamp now() const noexcept override { return replica->clock().now(); }

  [[nodiscard]] bool wait_for_change(Bytes name, Bytes key, Timestamp deadline, ClaimCallback done,
                                     WaitTicket& ticket, ClaimOutcome& outcome) override {
    return replica->wait_for_change(name, key, deadline, std::move(done), ticket, outcome);
  }
  void stop_waiting(WaitTicket ticket) noexcept override { replica->stop_waiting(ticket); }
  [[nodiscard]] bool repeat_claim(const Claims& claims, const ClaimRequest& request,
                                  ClaimOutcome& outcome) override {
    return replica->repeat_claim(claims, request, outcome);
  }

  [[nodiscard]] Status change(Change what, std::uint64_t id, const std::string& address) override {
    switch (what) {
      case Change::add:
        return replica->add(id, address);
      case Change::promote:
        return replica->promote(id);
      case Change::demote:
        return replica->demote(id);
      case Change::remove:
        return replica->remove(id);
      case Change::transfer:
        return replica->transfer(id);
      case Change::upgrade:
        return replica->upgrade();
    }
    return Error{ErrorCode::bad_option, {}};
  }

  // --- replication::RequestRunner -----------------------------------------------------------
  [[nodiscard]] bool knows(const replication::RequestCommand& command) const noexcept override {
    return std::all_of(command.requests.begin(), command.requests.end(),
                       [](const auto& words) { return net::GroupRunner::knows(words); });
  }
  [[nodiscard]] replication::PlainAnswer run(const replication::RequestCommand& command) override {
    net::GroupRunner::Result result = runner->run(command);
    replication::PlainAnswer answer{.text = std::move(result.replies)};
    for (const ErrorCode each : result.failures) {
      if (replication::local_error({replication::PlainAnswer{.error = each}})) answer.error = each;
    }
    return answer;
  }

  void libraries_changed(const replication::LibraryChange& change) override {
    runner->change_libraries(change);
  }

  std::unique_ptr<Replica> replica;
  std::unique_ptr<net::GroupRunner> runner;

 private:
  static std::string needs_level(replication::FeatureLevel level) {
    const auto used = std::max(level, replication::feature_level_first);
    return "functions need feature level " + std::to_string(replication::feature_level_libraries) +
           ", the group uses " + std::to_string(used) +
           ": when all of its nodes have this release, `semel cluster upgrade` (a new group does "
           "it by itself when all of its members have met)";
  }
  /// Clients of a forwarding node see nothing of a leader's end. A client that follows MOVED waits
  /// only for requests under way, and briefly: this node may be the one that is cut off.
  static replication::ProposalTerms terms_of(const ReplicaOptions& options) {
    if (options.forwards) {
      return {.patience = 10 * options.election, .asks_again = 10 * options.election};
    }
    return {.asks_again = 3 * options.election};
  }
  static std::uint64_t match_of(const ReplicaStatus& status, std::uint64_t id) {
    const auto found = status.matches.find(id);
    return found == status.matches.end() ? 0 : found->second;
  }
  static void failed(const std::function<void(net::GroupReply)>& done, const Error& error) {
    done({.error = error.code, .replies = {}, .detail = error.detail});
  }
  /// The part behind the comma, or else the host of the other part with this node's own port.
  [[nodiscard]] std::string client_address(const std::string& address) const {
    const std::size_t comma = address.find(',');
    if (comma != std::string::npos) return address.substr(comma + 1);
    return address.substr(0, address.rfind(':') + 1) + port_;
  }

  const std::uint64_t cluster_id_;
  const std::uint64_t node_id_;
  const bool forwards_;
  const replication::ProposalTerms terms_;
  const std::string port_;
  replication::MemoryGate gate_{replica->engine()};
};

NodeGroup::NodeGroup(const net::Settings& settings) : settings_(settings) {}
NodeGroup::~NodeGroup() = default;

bool NodeGroup::is_wanted() const {
  return settings_.integer(Setting::node_id) != 0;
}

namespace {

replication::PeerTls peer_tls(const net::Settings& settings) {
  return {settings.text(Setting::cluster_tls_cert_file),
          settings.text(Setting::cluster_tls_key_file),
          settings.text(Setting::cluster_tls_ca_cert_file)};
}

/// All but the engine. The detail of an error is the whole text.
Status read_options(const net::Settings& settings, ReplicaOptions& options) {
  if (settings.boolean(Setting::test_clock)) {
    return usage_error("test-clock: the time of a node in a group is the group's");
  }
  options.node_id = static_cast<std::uint64_t>(settings.integer(Setting::node_id));
  const auto cluster = number_of(settings.text(Setting::cluster_id), 16);
  if (!cluster || *cluster == 0) {
    return usage_error("cluster-id: '" + settings.text(Setting::cluster_id) +
                       "' is not a number of 1 to 16 hex digits, and not 0");
  }
  options.cluster_id = *cluster;
  options.directory = settings.text(Setting::dir);
  if (options.directory.empty()) return usage_error("dir: a node of a group needs a directory");
  if (settings.boolean(Setting::storage_enabled)) {
    return usage_error("storage-enabled: a node of a group keeps the group's log, not a storage");
  }
  SEMEL_CHECK(read_peers(settings.list(Setting::peer), options.founders));
  const auto own = options.founders.find(options.node_id);
  options.address = settings.text(Setting::cluster_announce);
  if (!options.address.empty()) {
    if (const Status right = replication::check_member_address(options.address); !right) {
      return usage_error("cluster-announce: " + right.error().detail);
    }
  }
  options.listen = settings.text(Setting::cluster_listen);
  if (options.address.empty()) {
    options.address = own != options.founders.end() ? own->second : options.listen;
  }
  if (options.listen.empty()) options.listen = replication::peer_part(options.address);
  if (options.listen.empty()) {
    return usage_error("cluster-listen: this node is not among `peer`, so it needs an address");
  }
  options.election = Millis{settings.integer(Setting::cluster_election_timeout)};
  options.heartbeat = Millis{settings.integer(Setting::cluster_heartbeat)};
  if (!settings.text(Setting::cluster_tls_cert_file).empty()) options.tls = peer_tls(settings);
  options.forwards = settings.boolean(Setting::cluster_forward);
  options.reads_by_lease = settings.boolean(Setting::cluster_lease_reads);
  options.snapshot_bytes_per_s =
      static_cast<std::uint64_t>(settings.integer(Setting::cluster_snapshot_rate));
  return Done{};
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

Status NodeGroup::prepare() {
  ReplicaOptions options;
  SEMEL_CHECK(read_options(settings_, options));
  if (options.founders.empty()) {
    return usage_error("cluster-init: the first members are needed, as `peer`");
  }
  options.founds = true;
  auto opened = Replica::open(options);
  return opened.ok() ? Status{Done{}} : with_whole_text(opened.error(), options.directory);
}

Status NodeGroup::check() const {
  ReplicaOptions options;
  return read_options(settings_, options);
}

Status NodeGroup::open(const Options& engine, Report report) {
  ReplicaOptions options;
  SEMEL_CHECK(read_options(settings_, options));
  options.engine = engine;
  // The memory for records is the same on all nodes, whatever the size of their decision logs.
  options.engine.memory_bytes += replication::memory_reserve + engine.decision_log_bytes;
  options.report = [report = std::move(report)](const replication::ReplicaEvent& event) {
    const auto& [name, is_warning] = named(event.what);
    report({.name = name, .is_warning = is_warning, .term = event.term, .text = event.text});
  };
  auto opened = Replica::open(options);
  if (!opened.ok()) return with_whole_text(opened.error(), options.directory);
  inside_ = std::make_unique<Inside>(*std::move(opened), options,
                                     std::to_string(settings_.integer(Setting::port)));
  return Done{};
}

bool NodeGroup::is_open() const noexcept {
  return inside_ != nullptr;
}
Engine& NodeGroup::engine() noexcept {
  return inside_->replica->engine();
}

Status NodeGroup::start(net::Node& node) {
  inside_->runner = std::make_unique<net::GroupRunner>(node);
  node.set_group(*inside_);
  const Status started = inside_->replica->start(inside_.get());
  if (!started) return with_whole_text(started.error());
  return Done{};
}

void NodeGroup::hand_over() {
  if (inside_ == nullptr) return;
  Replica& replica = *inside_->replica;
  if (!replica.is_leader() || !replica.transfer(0)) return;
  constexpr int tries = 300;
  for (int i = 0; i < tries && replica.is_leader(); ++i) poll(nullptr, 0, 1);
}
void NodeGroup::stop() {
  if (inside_ != nullptr) inside_->replica->stop();
}
std::string NodeGroup::failed() const {
  return inside_ == nullptr ? std::string{} : inside_->replica->status().failed;
}
bool NodeGroup::needs_reopen() const {
  return inside_ != nullptr && inside_->replica->status().needs_reopen;
}
Status NodeGroup::ready() const {
  if (inside_ == nullptr) return Done{};
  const ReplicaStatus status = inside_->replica->status();
  if (!status.failed.empty()) return file_error("this node takes part no longer: " + status.failed);
  if (status.is_fetching) {
    return file_error("a snapshot is fetched from the leader, " +
                      std::to_string(status.totals.snapshot_bytes_received) + " bytes so far");
  }
  if (status.leader == 0) return file_error("the group has no leader, or it is not known");
  const std::uint64_t lag =
      status.leader_commit < status.applied ? 0 : status.leader_commit - status.applied;
  const auto lag_max = static_cast<std::uint64_t>(settings_.integer(Setting::cluster_ready_lag));
  if (lag <= lag_max) return Done{};
  return file_error("this node lags behind by " + std::to_string(lag) +
                    " entries, and cluster-ready-lag is " + std::to_string(lag_max));
}

bool NodeGroup::uses_tls() const {
  return inside_ != nullptr && !settings_.text(Setting::cluster_tls_cert_file).empty();
}
Status NodeGroup::reload_tls() {
  if (!uses_tls()) return Done{};
  return inside_->replica->reload_tls(peer_tls(settings_));
}

}  // namespace semel::tool
