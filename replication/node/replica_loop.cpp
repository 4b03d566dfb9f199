#include "replication/node/replica_loop.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "engine/replica/decision_scope.hpp"
#include "replication/core/consensus_core.hpp"
#include "replication/log/log_writer.hpp"
#include "replication/parts/core_effects.hpp"
#include "replication/parts/forwarder.hpp"
#include "replication/parts/group_reads.hpp"
#include "replication/parts/members.hpp"
#include "replication/parts/peer_input.hpp"
#include "replication/parts/proposer.hpp"
#include "replication/parts/replica_time.hpp"
#include "replication/parts/replica_view.hpp"
#include "replication/parts/snapshots.hpp"
#include "replication/transport/peer_transport.hpp"

namespace semel::replication {
namespace {

ConsensusOptions consensus_options(const ReplicaOptions& options) {
  ConsensusOptions made;
  made.id = options.node_id;
  made.address = options.address.empty() ? options.listen : options.address;
  made.election = options.election;
  made.heartbeat = options.heartbeat;
  made.seed = static_cast<std::uint32_t>(base::random_number());
  return made;
}

TransportOptions transport_options(const ReplicaOptions& options, const LogIdentity& log) {
  TransportOptions made;
  made.cluster_id = options.cluster_id;
  made.node_id = options.node_id;
  made.level = options.level;
  if (options.level >= feature_level_identities) made.log = log;
  made.listen = options.listen;
  made.address = options.address;
  made.tls = options.tls;
  made.snapshot_bytes_per_s = options.snapshot_bytes_per_s;
  return made;
}

}  // namespace

ReplicaLoop::ReplicaLoop(const ReplicaOptions& options, storage::Disk& disk, ReplicaDisk found)
    : options_(options),
      owner_{options.node_id, base::random_number()},
      disk_(disk),
      wall_(options.clock == nullptr ? static_cast<const Clock&>(system_clock_) : *options.clock),
      thread_({.begin =
                   [this] {
                     parts_.proposals.begin_life(millis_of(wall_));
                     wake_soon();
                   },
               .tick = [this] { tick(); },
               .tick_after = [this] { return tick_after(); },
               .starved = [this] { memory_ended(); }}),
      group_time_(wall_),
      found_(std::move(found)),
      parts_{.options = options_,
             .wall = wall_,
             .state = *found_.state,
             .thread = thread_,
             .calls = calls_,
             .host = *this,
             .proposals = Proposals{owner_}},
      calls_(options_, wall_, thread_, [this] { turn(); }) {
  parts_.view = std::make_unique<ReplicaView>(parts_);
  group_time_.begin(*found_.state);
}

ReplicaLoop::~ReplicaLoop() {
  stop();
}

const PublishedStatus& ReplicaLoop::status() const noexcept {
  return parts_.view->status();
}

// --- begin and end ------------------------------------------------------------------------------

Status ReplicaLoop::start(RequestRunner* runner) {
  SEMEL_ASSERT(found_.log != nullptr);
  SEMEL_CHECK(start_parts(runner));
  // With an entry that this release cannot apply it has ended already, and answers no call.
  if (!is_ended_) calls_.queue().open();
  const Status started = thread_.start();
  if (!started) calls_.queue().close();
  return started;
}

Status ReplicaLoop::start_parts(RequestRunner* runner) {
  ReplicaParts& parts = parts_;
  SEMEL_CHECK(parts.state.set_runner(runner));
  engine::set_group_clock(parts.state.engine(), &group_time_);
  parts.input = std::make_unique<PeerInput>(parts, runner);
  SEMEL_TRY(transport,
            PeerTransport::open(thread_.context(), transport_options(options_, found_.identity),
                                *parts.input));
  parts.transport = std::move(transport);
  port_ = parts.transport->port();
  const LogIndex snapshot = found_.stored.snapshot ? found_.stored.snapshot->index : 0;
  SEMEL_CHECK(make_core(snapshot));
  parts.forwarder = std::make_unique<Forwarder>(
      Forwarder::Parts{options_, wall_, parts.state, *parts.core, *parts.transport, parts.proposals,
                       parts.reads, *this});
  parts.proposer = std::make_unique<Proposer>(
      Proposer::Parts{options_, wall_, parts.state, *parts.core, *parts.members, *parts.time,
                      parts.proposals, *parts.forwarder, *this});
  parts.group_reads = std::make_unique<GroupReads>(GroupReads::Parts{
      options_, wall_, *parts.core, parts.reads, *parts.forwarder, *parts.proposer, *this});
  SEMEL_CHECK(parts.core->start(millis_of(wall_), std::move(found_.stored)));
  parts.members->connect();
  parts.view->show();
  return Done{};
}

/// And what it and its effects need.
Status ReplicaLoop::make_core(LogIndex snapshot) {
  ReplicaParts& parts = parts_;
  parts.effects = std::make_unique<CoreEffects>(parts, std::move(found_.votes), found_.vote);
  SEMEL_TRY(core, ConsensusCore::make(consensus_options(options_), *parts.effects));
  parts.core = std::move(core);
  parts.writer =
      std::make_unique<LogWriter>(std::move(found_.log), [this](const LogWriter::Written& written) {
        thread_.post_surely([this, written] { note_written(written); });
      });
  parts.time = std::make_unique<ReplicaTime>(
      ReplicaTime::Parts{options_, wall_, parts.state, *parts.core, *parts.writer, group_time_},
      std::move(found_.time), found_.stored.snapshot);
  make_snapshots(snapshot);
  parts.members = std::make_unique<Members>(
      Members::Parts{options_, *parts.core, *parts.transport, parts.state, found_.identity});
  return Done{};
}

void ReplicaLoop::make_snapshots(LogIndex newest) {
  Snapshots::Hooks hooks;
  hooks.work_done = [this] {
    thread_.post_surely([this] {
      if (is_ended_) return;
      parts_.snapshots->finish(millis_of(wall_));
      if (!is_ended_) parts_.view->show();
    });
  };
  hooks.report = [this](ReplicaEvent::What what, const std::string& text) {
    parts_.view->say(what, text);
  };
  hooks.must_reopen = [this] {
    parts_.view->note_needs_reopen();
    stop_with("a snapshot has come: it takes the place of the state when the replica is opened");
  };
  const Snapshots::Parts parts{options_,          disk_,         parts_.state, *parts_.core,
                               *parts_.transport, *parts_.writer};
  parts_.snapshots =
      std::make_unique<Snapshots>(parts, std::move(hooks), newest, found_.snapshot_bytes);
}

void ReplicaLoop::stop() {
  calls_.queue().close();
  thread_.join([this] { end(); });
  parts_.snapshots.reset();
  calls_.await_wakers();
  thread_.drain();
  parts_.transport.reset();
  parts_.writer.reset();
}

void ReplicaLoop::end() noexcept {
  if (std::exchange(is_ended_, true)) return;
  calls_.queue().close();
  parts_.view->note_end();
  thread_.stop_ticking();
  parts_.forwarder->close();
  for (Proposal& each : calls_.queue().take_rest().proposals) {
    parts_.proposals.finish(each, Error{ErrorCode::closing, {}});
  }
  parts_.proposals.close();
  parts_.reads.close();
  try {
    parts_.time->keep();
  } catch (const std::bad_alloc&) {  // a start lets more time pass
  }
  parts_.transport->stop();
}

void ReplicaLoop::stop_with(const std::string& why) {
  if (is_ended_) return;
  parts_.view->note_failed(why);
  parts_.view->say(ReplicaEvent::What::stopped, "this node takes part no longer: " + why);
  end();
  parts_.view->show();
}

void ReplicaLoop::memory_ended() noexcept {
  if (is_ended_) return;
  parts_.view->note_failed("no memory");  // within the string itself
  end();
  parts_.view->say(ReplicaEvent::What::stopped, "no memory");
}

// --- the loop ---------------------------------------------------------------------------------

void ReplicaLoop::turn() {
  if (is_ended_) return;
  calls_.take_to(parts_.proposals, parts_.reads);
  parts_.members->connect();
  parts_.group_reads->finish();
  parts_.time->lead(parts_.proposer->has_entries());
  parts_.proposer->propose_waiting();
  parts_.group_reads->ask_waiting();
  parts_.proposer->tell_idle();
  if (!is_ended_) parts_.snapshots->consider();
  CallQueue& queue = calls_.queue();
  if (!is_ended_ && !queue.shows_busy() && parts_.proposals.is_full()) queue.show_busy();
  if (parts_.proposals.figures().can_number) wake_soon();
  parts_.check_invariants();
  apply_soon();
}

/// Messages and timers come between two parts. One post at a time: each turn would add another.
void ReplicaLoop::apply_soon() {
  if (is_applying_ || is_ended_ || !parts_.core->must_apply_more()) return;
  // Without memory the next turn does it.
  is_applying_ = thread_.post([this] {
    is_applying_ = false;
    if (is_ended_) return;
    parts_.core->apply_more(millis_of(wall_));
    turn();
  });
}

std::uint64_t ReplicaLoop::tick_after() const {
  const std::uint64_t at = parts_.core->raft().next_timeout();
  const std::uint64_t here = millis_of(wall_);
  const auto most = static_cast<std::uint64_t>(options_.heartbeat.count());
  return at <= here ? 1 : std::clamp<std::uint64_t>(at - here, 1, std::max<std::uint64_t>(most, 1));
}

void ReplicaLoop::tick() {
  // One that cannot write for long keeps everything in memory.
  constexpr std::size_t unwritten_max = std::size_t{256} << 20;
  if (parts_.writer->bytes_waiting() > unwritten_max) {
    return stop_with("the disk has not taken " + std::to_string(unwritten_max) + " bytes");
  }
  if (parts_.core->raft().next_timeout() <= millis_of(wall_)) parts_.core->tick(millis_of(wall_));
  parts_.proposer->tick();
  parts_.members->learn_logs(millis_of(wall_));
  parts_.time->tick();
  static_cast<void>(engine::poll_waits(parts_.state.engine(), group_time_.now()));
  parts_.time->keep();
  parts_.view->report_changes();
  parts_.forwarder->give_up_late();
  turn();
  parts_.view->show();
}

void ReplicaLoop::note_written(const LogWriter::Written& written) {
  if (is_ended_) return;
  if (!written.status) return stop_with(written.status.error().detail);
  parts_.core->persisted(millis_of(wall_), written.last, written.term);
  turn();
}

Status ReplicaLoop::call(const Call& what) {
  return calls_.run([&]() -> Status {
    if (is_ended_) return Error{ErrorCode::closing, {}};
    Status done = what(parts_, millis_of(wall_));
    turn();
    if (!is_ended_) parts_.view->show();
    return done;
  });
}

}  // namespace semel::replication
