#include "replication/node/replica_loop.hpp"

#include <poll.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <future>
#include <new>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "engine/replica/decision_scope.hpp"
#include "replication/core/configuration_codec.hpp"

namespace semel::replication {

namespace asio = boost::asio;

ReplicaLoop::ReplicaLoop(const ReplicaOptions& options, storage::Disk& disk, ReplicaDisk found)
    : options_(options),
      owner_{options.node_id, base::random_number()},
      disk_(disk),
      wall_(options.clock == nullptr ? static_cast<const Clock&>(system_clock_) : *options.clock),
      thread_({[this] { begin(); }, [this] { tick(); }, [this] { return tick_after(); },
               [this] { memory_ended(); }}),
      group_time_(wall_),
      state_(std::move(found.state)),
      votes_(std::move(found.votes)),
      vote_(found.vote),
      kept_time_(std::move(found.time)),
      stored_(std::move(found.stored)),
      log_(std::move(found.log)),
      proposals_(owner_),
      reports_(options_.report),
      log_identity_(found.identity),
      snapshot_bytes_(found.snapshot_bytes),
      calls_(options.proposals_bytes_max) {
  group_time_.begin(*state_);
}

ReplicaLoop::~ReplicaLoop() {
  stop();
}

std::uint64_t ReplicaLoop::now() const noexcept {
  return static_cast<std::uint64_t>(wall_.now().time_since_epoch().count());
}
std::int64_t ReplicaLoop::unix_ms() const noexcept {
  return wall_.unix_ms();
}
Status ReplicaLoop::start(RequestRunner* runner) {
  SEMEL_ASSERT(log_ != nullptr);
  SEMEL_CHECK(start_parts(runner));
  calls_.open();
  const Status started = thread_.start();
  if (!started) calls_.close();
  return started;
}

Status ReplicaLoop::start_parts(RequestRunner* runner) {
  runner_ = runner;
  SEMEL_CHECK(state_->set_runner(runner));
  engine::set_group_clock(state_->engine(), &group_time_);
  clock_.begin(state_->unix_ms() == 1 ? 0 : state_->unix_ms(), unix_ms(),
               static_cast<std::int64_t>(now()), options_.clock_ahead_max.count());
  if (const auto& known = kept_time_.found()) {
    clock_.recall(*known, kept_time_.is_of_this_boot(), static_cast<std::int64_t>(now()));
  }
  const LogIndex snapshot = stored_.snapshot ? stored_.snapshot->index : 0;
  if (stored_.snapshot) {
    clock_.saw(state_->unix_ms(), static_cast<std::int64_t>(now()), stored_.snapshot->term);
  }
  TransportOptions transport;
  transport.cluster_id = options_.cluster_id;
  transport.node_id = options_.node_id;
  transport.level = options_.level;
  if (options_.level >= feature_level_identities) transport.log = log_identity_;
  transport.listen = options_.listen;
  transport.address = options_.address;
  transport.tls = options_.tls;
  transport.snapshot_bytes_per_s = options_.snapshot_bytes_per_s;
  SEMEL_TRY(opened, PeerTransport::open(thread_.context(), transport, *this));
  transport_ = std::move(opened);
  port_ = transport_->port();
  ConsensusOptions consensus;
  consensus.id = options_.node_id;
  consensus.address = options_.address.empty() ? options_.listen : options_.address;
  consensus.election = options_.election;
  consensus.heartbeat = options_.heartbeat;
  consensus.seed = static_cast<std::uint32_t>(base::random_number());
  SEMEL_TRY(core, ConsensusCore::make(consensus, *this));
  core_ = std::move(core);
  writer_ = std::make_unique<LogWriter>(std::move(log_), [this](const LogWriter::Written& written) {
    thread_.post_surely([this, written] {
      if (is_ended_) return;
      if (!written.status) return stop_with(written.status.error().detail);
      core_->persisted(now(), written.last, written.term);
      turn();
    });
  });
  begin_snapshots(snapshot);
  members_ = std::make_unique<Members>(
      Members::Parts{options_, *core_, *transport_, *state_, log_identity_});
  SEMEL_CHECK(core_->start(now(), std::move(stored_)));
  members_->connect();
  show();
  return semel::Done{};
}

void ReplicaLoop::begin_snapshots(LogIndex newest) {
  Snapshots::Hooks hooks;
  hooks.work_done = [this] {
    thread_.post_surely([this] {
      if (is_ended_) return;
      snapshots_->finish(now());
      if (!is_ended_) show();
    });
  };
  hooks.report = [this](ReplicaEvent::What what, const std::string& text) { report(what, text); };
  hooks.must_reopen = [this] {
    status_.set_needs_reopen();
    stop_with("a snapshot has come: it takes the place of the state when the replica is opened");
  };
  const Snapshots::Parts parts{options_, disk_, *state_, *core_, *transport_, *writer_};
  snapshots_ = std::make_unique<Snapshots>(parts, std::move(hooks), newest, snapshot_bytes_);
}

void ReplicaLoop::begin() {
  proposals_.begin_life(now());
  wake_soon();
}

void ReplicaLoop::memory_ended() noexcept {
  if (is_ended_) return;
  status_.set_failed("no memory");  // within the string itself
  end();
  report(ReplicaEvent::What::stopped, "no memory");
}

void ReplicaLoop::stop() {
  calls_.close();
  thread_.join([this] { end(); });
  snapshots_.reset();
  while (calls_.is_waking()) poll(nullptr, 0, 1);
  thread_.drain();
  transport_.reset();
  writer_.reset();
}

/// The replica takes part no longer. Commands that were not proposed were not decided; the outcome
/// of the others is unknown.
void ReplicaLoop::end() noexcept {
  if (std::exchange(is_ended_, true)) return;
  calls_.close();
  status_.set_leads(false);
  thread_.stop_ticking();
  for (auto& [id, each] : forwards_.take_all()) {
    // The destructor of a Reply answers the reader.
    if (Proposal* const proposal = each.proposal()) {
      proposals_.finish(*proposal, Error{ErrorCode::outcome_unknown, {}});
    }
  }
  for (Proposal& each : calls_.take_rest().proposals) {
    proposals_.finish(each, Error{ErrorCode::closing, {}});
  }
  proposals_.close();
  reads_.close();
  applied_waits_.run(log_index_max);  // they are decided, if not applied here
  try {
    keep_time();
  } catch (const std::bad_alloc&) {  // a start lets more time pass
  }
  transport_->stop();
}

void ReplicaLoop::stop_with(const std::string& why) {
  if (is_ended_) return;
  status_.set_failed(why);
  report(ReplicaEvent::What::stopped, "this node takes part no longer: " + why);
  end();
  show();
}

// --- for the operator's log ---------------------------------------------------------------------

void ReplicaLoop::report(ReplicaEvent::What what, const std::string& text) const noexcept {
  reports_.say(what, core_ == nullptr ? vote_.term : core_->raft().term(), text);
}

void ReplicaLoop::on_event(Event event, const std::string& what) {
  report(event == Event::refused ? ReplicaEvent::What::peer_refused
                                 : ReplicaEvent::What::peer_unreachable,
         what);
}

void ReplicaLoop::report_changes() {
  const bool leads = core_->raft().is_leader();
  const bool has_leader = leads || core_->raft().leader() != 0;
  const Proposals::Figures proposals = proposals_.figures();
  // A forwarded read does not advance the applied index.
  const bool waits =
      proposals.entries + proposals.ready + proposals.held + forwards_.proposals() != 0;
  ReplicaReports::Facts facts;
  facts.now = now();
  facts.term = core_->raft().term();
  facts.is_disk_full = writer_->is_full();
  facts.is_disk_writing = writer_->is_writing();
  facts.syncs = writer_->syncs();
  // Without a leader everything waits, which `role` has said.
  facts.has_work = (leads && core_->log().applied() < core_->log().last()) || (has_leader && waits);
  facts.applied = core_->log().applied();
  facts.patience_ms = answer_patience();
  // Before its first entry the group's time is not known here.
  if (core_->log().applied() != 0 && has_leader) {
    facts.clock_off_ms = clock_.off_by(static_cast<std::int64_t>(now()), unix_ms());
  }
  reports_.look(facts, [this] { return what_waits(); });
}

/// And what they wait for: entries for this node's disk or for other nodes, commands for entries.
std::string ReplicaLoop::what_waits() const {
  const Proposals::Figures proposals = proposals_.figures();
  std::string text = std::to_string(proposals.commands) + " commands are under way, " +
                     std::to_string(forwards_.proposals()) + " were forwarded, " +
                     std::to_string(proposals.ready) + " wait, " + std::to_string(proposals.held) +
                     " have no number; last entry " + std::to_string(core_->log().last()) +
                     ", on the disk " + std::to_string(core_->raft().stored()) + ", committed " +
                     std::to_string(core_->log().commit()) + ", applied " +
                     std::to_string(core_->log().applied());
  if (!proposals.has_life) text += ", this node has no number of its own yet";
  const std::map<NodeId, PeerStats> peers = transport_->stats();
  for (const Member& each : core_->raft().members()) {
    if (each.id == options_.node_id) continue;
    text += "; node " + std::to_string(each.id);
    if (core_->raft().is_leader()) text += " has " + std::to_string(core_->raft().match(each.id));
    const auto found = peers.find(each.id);
    const bool is_connected = found != peers.end() && found->second.is_connected;
    text += is_connected ? ", connected" : ", not connected";
  }
  return text;
}

// --- the loop ---------------------------------------------------------------------------------

/// Not under the queue's mutex: the loop runs at once where a processor is free, and would wait for
/// it. In between, a tick may take the call and answer it, and this replica may be ended.
void ReplicaLoop::post_turn() {
  // Without memory the next tick takes the calls.
  calls_.end_wake(thread_.post([this] { turn(); }));
}

void ReplicaLoop::wake_soon() {
  if (calls_.begin_wake()) post_turn();
}

void ReplicaLoop::turn() {
  if (is_ended_) return;
  take_calls();
  members_->connect();
  finish_reads();
  lead_time();
  propose_waiting();
  ask_waiting_reads();
  tell_idle();
  if (!is_ended_) snapshots_->consider();
  if (!is_ended_ && !calls_.shows_busy() && proposals_.is_full()) calls_.show_busy();
  if (proposals_.figures().can_number) wake_soon();
  check_invariants();
  apply_soon();
}

void ReplicaLoop::check_invariants() const noexcept {
  proposals_.check_invariants();
  forwards_.check_invariants();
  reads_.check_invariants();
}

/// Messages and timers come between two parts. One post at a time: each turn would add another.
void ReplicaLoop::apply_soon() {
  if (is_applying_ || is_ended_ || !core_->must_apply_more()) return;
  // Without memory the next turn does it.
  is_applying_ = thread_.post([this] {
    is_applying_ = false;
    if (is_ended_) return;
    core_->apply_more(now());
    turn();
  });
}

std::uint64_t ReplicaLoop::tick_after() const {
  const std::uint64_t at = core_->raft().next_timeout();
  const std::uint64_t here = now();
  const auto most = static_cast<std::uint64_t>(options_.heartbeat.count());
  return at <= here ? 1 : std::clamp<std::uint64_t>(at - here, 1, std::max<std::uint64_t>(most, 1));
}

void ReplicaLoop::tick() {
  // One that cannot write for long keeps everything in memory.
  constexpr std::size_t unwritten_max = std::size_t{256} << 20;
  if (writer_->bytes_waiting() > unwritten_max) {
    return stop_with("the disk has not taken " + std::to_string(unwritten_max) + " bytes");
  }
  if (core_->raft().next_timeout() <= now()) core_->tick(now());
  proposals_.begin_life(now());
  propose_time();
  begin_level();
  members_->learn_logs(now());
  freshness_.leads(core_->leadership().heard_at(now()), core_->log().commit());
  show_fresh();
  static_cast<void>(engine::poll_waits(state_->engine(), group_time_.now()));
  keep_time();
  report_changes();
  lose_forwards(forwards_.take_late(now(), answer_patience()));
  applied_waits_.give_up(now());
  turn();
  show();
}

void ReplicaLoop::show() {
  ReplicaStatus is;
  is.role = core_->raft().role();
  is.term = core_->raft().term();
  is.leader = core_->raft().is_leader() ? options_.node_id : core_->raft().leader();
  is.commit = core_->log().commit();
  is.applied = core_->log().applied();
  is.first = core_->log().first();
  is.last = core_->log().last();
  is.snapshot = snapshots_->newest();
  is.members = core_->raft().members();
  for (const Member& each : is.members) {
    if (each.id == is.leader) is.leader_address = each.address;
    if (core_->raft().is_leader()) is.matches[each.id] = core_->raft().match(each.id);
  }
  is.peers = transport_->stats();
  is.elections = elections_;
  is.syncs = writer_->syncs();
  is.leader_commit = std::max(members_->leader_commit(), is.commit);
  is.level = state_->level();
  is.level_newest = options_.level;
  is.is_changing_members = core_->raft().is_changing_members();
  is.is_fetching = snapshots_->is_fetching();
  is.log_bytes = writer_->disk_bytes();
  is.totals = transport_->totals();
  is.disk_is_full = writer_->is_full();
  is.stalled_ms = reports_.stalled_ms();
  is.clock_off_ms = clock_.off_by(static_cast<std::int64_t>(now()), unix_ms());
  if (is_ended_) is.role = Role::follower;
  show_time();
  status_.set(std::move(is));
}

// --- effects of the core ------------------------------------------------------------------------

Status ReplicaLoop::save_vote(Term term, NodeId voted_for) {
  vote_.term = term;
  vote_.voted_for = voted_for;
  return votes_->write_and_sync(vote_);
}

void ReplicaLoop::append(LogIndex first, std::vector<RaftEntry> entries) {
  for (const RaftEntry& each : entries) {
    if (each.type == EntryType::configuration) members_->note_change();
  }
  writer_->append(first, std::move(entries));
}

void ReplicaLoop::send(RaftMessage message) {
  clock_.tell(message, core_->raft().is_leader(), static_cast<std::int64_t>(now()));
  if (auto* const reply = std::get_if<AppendReply>(&message.what)) {
    reply->mark = freshness_.mark(now());
  }
  if (auto* const append = std::get_if<AppendRequest>(&message.what)) {
    append->mark =
        freshness_.mark_of(message.to, message.term, core_->leadership().heard_at(now()));
  }
  transport_->send(message);
}

namespace {

/// The members that it names. None: it names none.
std::vector<NodeId> members_of(const RaftEntry& entry) {
  std::vector<NodeId> ids;
  if (entry.type != EntryType::configuration) return ids;
  const auto members = decode_configuration(*entry.data);
  if (!members.ok()) return ids;
  for (const Member& each : *members) ids.push_back(each.id);
  return ids;
}

}  // namespace

void ReplicaLoop::apply(LogIndex index, const RaftEntry& entry) {
  snapshots_->applies(index, entry.data->size());
  Result<std::vector<Answer>> answers = std::vector<Answer>{};
  const FeatureLevel level = state_->level();
  if (entry.type == EntryType::command) {
    answers = state_->apply(index, *entry.data);
    const auto here = static_cast<std::int64_t>(now());
    clock_.saw(state_->unix_ms(), here, entry.term);
    // A leader before level 4 says the time by its entries alone. Of many that come together only
    // the newest says what time it is for it.
    const bool is_followed = entry.term == core_->raft().term() && !core_->raft().is_leader() &&
                             index == core_->log().commit();
    if (is_followed) clock_.follow(state_->unix_ms(), here, entry.term);
  } else if (const Status skipped = state_->skip(index, members_of(entry)); !skipped) {
    answers = skipped.error();
  } else if (entry.type == EntryType::configuration) {
    reports_.say_members(core_->raft().term(), *entry.data);
  }
  show_time();
  if (state_->level() != level) status_.set_level(state_->level());
  proposals_.answer(index, entry.term, answers, now());
  if (answers.ok()) applied_waits_.run(index);
  if (!answers.ok()) {
    // Its state is that of no index. It must not answer reads, and begins anew from a snapshot.
    return stop_with("entry " + std::to_string(index) + ": " + answers.error().detail);
  }
}

void ReplicaLoop::install(const SnapshotOffer&) {
  SEMEL_ASSERT(false);  // it is fetched, and taken by open()
}

void ReplicaLoop::changed() {
  const bool leads = core_->raft().is_leader();
  if (leads && !status_.leads()) ++elections_;
  status_.set_leads(leads);
  report(ReplicaEvent::What::role, leads ? "this node leads"
                                   : core_->raft().leader() != 0
                                       ? "node " + std::to_string(core_->raft().leader()) + " leads"
                                       : "no leader is known");
  if (!leads) {
    proposals_.lose_entries(now());
    reads_.lose(now());
  }
  members_->note_change();  // the leader judges their logs
  lose_forwards(forwards_.take_of_others(core_->raft().leader()));
  show();
}

void ReplicaLoop::failed(const Error& error) {
  stop_with(error.detail);
}

// --- of the transport ---------------------------------------------------------------------------

void ReplicaLoop::on_message(RaftMessage message) {
  // Its caller is a connection, which would take it for its own trouble.
  if (!is_ended_) thread_.run_part([&] { take_message(std::move(message)); });
}

void ReplicaLoop::take_message(RaftMessage message) {
  if (std::holds_alternative<VoteReply>(message.what) && members_->has_lost_log(message.from))
    return;
  const auto* const append = std::get_if<AppendRequest>(&message.what);
  if (append != nullptr && message.term >= core_->raft().term()) {
    members_->note_commit(append->commit);
  }
  // The winner of an election has heard a majority.
  clock_.hear(message, core_->raft().term(), static_cast<std::int64_t>(now()));
  if (append != nullptr) {
    keep_time();
    show_time();
  }
  const bool is_fetched =
      std::holds_alternative<SnapshotOffer>(message.what) && snapshots_->fetch(message);
  if (!is_fetched) {
    const MarkNote note = mark_in(message);
    core_->receive(now(), std::move(message));
    if (!is_ended_) take_mark(note);
  }
  if (!is_ended_) turn();
}

void ReplicaLoop::on_peer(NodeId id, const std::string& address) {
  if (is_ended_) return;
  thread_.run_part([&] {
    if (members_->meet(id, address)) turn();
  });
}

// --- calls of operators ------------------------------------------------------------------

Status ReplicaLoop::call(const std::function<Status(ConsensusCore&, std::uint64_t now)>& what) {
  std::promise<Status> promise;
  auto result = promise.get_future();
  const bool is_posted = calls_.run_if_open([&] {
    asio::post(thread_.context(), [&] {
      Status done = Error{ErrorCode::closing, {}};
      thread_.run_part([&] {
        if (is_ended_) return;
        done = what(*core_, now());
        turn();
        if (!is_ended_) show();
      });
      promise.set_value(std::move(done));
    });
  });
  if (!is_posted) return Error{ErrorCode::closing, {}};
  return result.get();
}

Result<FeatureLevel> ReplicaLoop::common_level() {
  Result<FeatureLevel> common = Error{ErrorCode::closing, {}};
  SEMEL_CHECK(call([&](ConsensusCore&, std::uint64_t) {
    common = members_->common_level();
    return common.ok() ? Status{semel::Done{}} : Status{common.error()};
  }));
  return common;
}

Status ReplicaLoop::promote(NodeId id) {
  return call([&](ConsensusCore& core, std::uint64_t now) -> Status {
    SEMEL_CHECK(members_->check_promotion(id));
    return core.change(now, PromoteMember{id});
  });
}

Status ReplicaLoop::reload_tls(const PeerTls& files) {
  return call([&](ConsensusCore&, std::uint64_t) { return transport_->reload_tls(files); });
}

}  // namespace semel::replication
