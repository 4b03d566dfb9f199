#include "semel/replication.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/mutex.hpp"
#include "engine/replica/decision_scope.hpp"
#include "replication/node/group_calls.hpp"
#include "replication/node/replica.hpp"
#include "replication/node/replication_host.hpp"
#include "replication/node/shown_status.hpp"
#include "replication/transport/peer_stream.hpp"
#include "semel/process.hpp"

namespace semel {

using replication::GroupCalls;
using replication::Replica;
using replication::ReplicaOptions;
using replication::ReplicationHost;

namespace {

Status check(const char* name, Millis value, Millis least, Millis most) {
  if (value >= least && value <= most) return Done{};
  return Error{ErrorCode::bad_option, std::string{name} + " = " + std::to_string(value.count()) +
                                          " ms, range " + std::to_string(least.count()) + ".." +
                                          std::to_string(most.count())};
}

replication::PeerTls peer_tls(const ReplicationTls& files) {
  return {files.certificate, files.key, files.authority};
}

Result<ReplicaOptions> replica_options(const ReplicationOptions& from) {
  SEMEL_CHECK(check("election", from.election, Millis{50}, Millis{60'000}));
  SEMEL_CHECK(check("heartbeat", from.heartbeat, Millis{1}, from.election / 3));
  SEMEL_CHECK(check("patience", from.patience, Millis{0}, Millis{600'000}));
  if (from.engine.clock != nullptr) {
    return Error{ErrorCode::bad_option, "the time of a group is its log's: no clock of its own"};
  }
  const Durability level = from.engine.durability;
  if (level != Durability::memory && level != Durability::quorum) {
    return Error{ErrorCode::bad_option, "the durability of a group is quorum"};
  }
  ReplicaOptions options;
  options.cluster_id = from.cluster_id;
  options.node_id = from.node_id;
  options.directory = from.directory;
  options.founders = {from.peers.begin(), from.peers.end()};
  const auto own = from.peers.find(from.node_id);
  options.listen = from.listen;
  if (options.listen.empty() && own != from.peers.end()) options.listen = own->second;
  if (options.listen.empty()) {
    return Error{ErrorCode::bad_option, "this node is not among the peers, so it needs `listen`"};
  }
  options.address = from.address;
  if (options.address.empty()) {
    options.address = own != from.peers.end() ? own->second : options.listen;
  }
  for (const auto& [id, address] : options.founders) {
    SEMEL_CHECK(replication::check_member_address(address));
  }
  SEMEL_CHECK(replication::check_member_address(options.address));
  if (from.tls) options.tls = peer_tls(*from.tls);
  options.election = from.election;
  options.heartbeat = from.heartbeat;
  options.forwards = true;
  if (from.report) {
    options.report = [report = from.report](const replication::ReplicaEvent& event) {
      try {
        report("term " + std::to_string(event.term) + ": " + event.text);
      } catch (...) {  // the thread that applies entries does not end for it
      }
    };
  }
  options.engine = from.engine;
  options.engine.durability = Durability::memory;  // the replicated log is durable
  options.engine.memory_bytes += replication::memory_reserve;
  return options;
}

}  // namespace

class Replication::Impl {
 public:
  Impl(std::unique_ptr<Replica> made, Millis patience)
      : replica(std::move(made)), calls(*replica, patience) {}
  ~Impl() {
    stop();
    engine::set_call_log(replica->engine(), nullptr);
    calls.stop();
  }

  [[nodiscard]] Status start(replication::RequestRunner* runner) {
    engine::set_call_log(replica->engine(), &calls);
    SEMEL_CHECK(calls.start());  // its thread looks at the engine's waits from the beginning
    return replica->start(runner);
  }
  void stop() {
    is_ending_.store(true, std::memory_order_relaxed);  // mo: relaxed: see ready()
    const base::MutexLock lock{mutex_};
    if (std::exchange(is_stopped_, true)) return;
    replica->hand_over();
    replica->stop();  // from here on calls are answered `closing`
    engine::end_waits(replica->engine());
  }

  [[nodiscard]] Status ready(std::uint64_t lag_max) const {
    SEMEL_CHECK(here());
    // mo: relaxed: a call beside stop() may be before or behind it
    if (is_ending_.load(std::memory_order_relaxed)) {
      return Error{ErrorCode::closing, "this node leaves the group"};
    }
    return replication::check_ready(*replica, lag_max, "lag_max");
  }
  /// In a child process there is no thread that could answer.
  [[nodiscard]] Status here() const {
    if (!mark.is_here()) return Error{ErrorCode::forked, {}};
    return Done{};
  }

  const ProcessMark mark;
  std::unique_ptr<Replica> replica;
  GroupCalls calls;

 private:
  std::atomic<bool> is_ending_{false};
  base::Mutex mutex_;
  bool is_stopped_ SEMEL_GUARDED_BY(mutex_) = false;
};

Replication::Replication(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Replication::~Replication() {
  // In a child process nothing of the parent's is here but its memory.
  if (impl_ != nullptr && !impl_->mark.is_here()) static_cast<void>(impl_.release());
}

Status Replication::found(const ReplicationOptions& options) {
  SEMEL_TRY(made, replica_options(options));
  if (made.founders.empty()) {
    return Error{ErrorCode::bad_option, "a group is founded by its first members: `peers`"};
  }
  made.founds = true;
  SEMEL_CHECK(Replica::open(made));
  return Done{};
}

Result<std::unique_ptr<Replication>> Replication::open(const ReplicationOptions& options) {
  SEMEL_TRY(made, ReplicationHost::make(options));
  SEMEL_CHECK(ReplicationHost::start(*made, nullptr));
  return made;
}

Result<std::unique_ptr<Replication>> ReplicationHost::make(const ReplicationOptions& options) {
  SEMEL_TRY(made, replica_options(options));
  SEMEL_TRY(replica, Replica::open(made));
  auto impl = std::make_unique<Replication::Impl>(std::move(replica), options.patience);
  return std::unique_ptr<Replication>{new Replication{std::move(impl)}};
}
Status ReplicationHost::start(Replication& group, replication::RequestRunner* runner) {
  return group.impl_->start(runner);
}
void ReplicationHost::stop(Replication& group) {
  group.impl_->stop();
}
Replica& ReplicationHost::replica(Replication& group) noexcept {
  return *group.impl_->replica;
}

Engine& Replication::engine() noexcept {
  return impl_->replica->engine();
}

ReplicationStatus Replication::status() const {
  ReplicationStatus status;
  if (!impl_->mark.is_here()) {
    status.failed = sentence_of(ErrorCode::forked);
    return status;
  }
  const replication::ReplicaStatus from = impl_->replica->status();
  static_cast<ReplicationProgress&>(status) = replication::shown_progress(*impl_->replica, from);
  status.failed = from.failed;
  for (const replication::Member& each : from.members) {
    status.members.push_back(replication::shown_member(*impl_->replica, from, each));
  }
  return status;
}

Status Replication::ready(std::uint64_t lag_max) const {
  return impl_->ready(lag_max);
}

Status Replication::add(std::uint64_t id, const std::string& address) {
  SEMEL_CHECK(impl_->here());
  return impl_->replica->add(id, address);
}
Status Replication::promote(std::uint64_t id) {
  SEMEL_CHECK(impl_->here());
  return impl_->replica->promote(id);
}
Status Replication::demote(std::uint64_t id) {
  SEMEL_CHECK(impl_->here());
  return impl_->replica->demote(id);
}
Status Replication::remove(std::uint64_t id) {
  SEMEL_CHECK(impl_->here());
  return impl_->replica->remove(id);
}
Status Replication::transfer(std::uint64_t id) {
  SEMEL_CHECK(impl_->here());
  return impl_->replica->transfer(id);
}
Status Replication::upgrade() {
  SEMEL_CHECK(impl_->here());
  return impl_->replica->upgrade();
}
Status Replication::reload_tls(const ReplicationTls& files) {
  SEMEL_CHECK(impl_->here());
  return impl_->replica->reload_tls(peer_tls(files));
}

}  // namespace semel
