#include "replication/node/replica.hpp"

#include <poll.h>

#include <future>
#include <utility>

#include "base/assert.hpp"
#include "replication/core/consensus_core.hpp"
#include "replication/node/replica_loop.hpp"
#include "replication/parts/members.hpp"
#include "replication/transport/peer_transport.hpp"

namespace semel::replication {

Replica::Replica(std::unique_ptr<ReplicaLoop> loop) : loop_(std::move(loop)) {}
Replica::~Replica() = default;

Result<std::unique_ptr<Replica>> Replica::open(const ReplicaOptions& options) {
  if (options.cluster_id == 0 || options.node_id == 0 || options.directory.empty()) {
    return Error{ErrorCode::bad_option,
                 "a replica needs a cluster id, a node id from 1 and a directory"};
  }
  if (options.engine.journal != nullptr || options.engine.cold != nullptr) {
    return Error{ErrorCode::bad_option, "a replica's engine has neither journal nor cold store"};
  }
  static storage::Disk file_system;
  storage::Disk& disk = options.disk == nullptr ? file_system : *options.disk;
  SEMEL_TRY(found, open_disk(options, disk));
  return std::unique_ptr<Replica>{
      new Replica{std::make_unique<ReplicaLoop>(options, disk, std::move(found))}};
}

Engine& Replica::engine() noexcept {
  return loop_->state().engine();
}
Status Replica::start(RequestRunner* runner) {
  return loop_->start(runner);
}
void Replica::hand_over() {
  constexpr int tries = 300;
  if (!is_leader() || !transfer(0)) return;
  for (int i = 0; i < tries && is_leader(); ++i) poll(nullptr, 0, 1);
}
void Replica::stop() {
  loop_->stop();
}
void Replica::propose(PreparedCommand command, ProposalDone done, ProposalTerms terms) {
  loop_->calls().propose(std::move(command), std::move(done), terms);
}
void Replica::read(ProposalDone done, ProposalTerms terms) {
  loop_->calls().read(std::move(done), terms);
}
const engine::GroupTime& Replica::clock() const noexcept {
  return loop_->group_time();
}
bool Replica::is_own_thread() const noexcept {
  return loop_->is_own_thread();
}

namespace {

/// Waits for what `ask` is answered.
template <class Ask>
Result<Answer> waited(Ask&& ask) {
  auto promise = std::make_shared<std::promise<Result<Answer>>>();
  auto result = promise->get_future();
  ask([promise](Result<Answer> answer) { promise->set_value(std::move(answer)); });
  return result.get();
}

}  // namespace

Result<Answer> Replica::propose(const Command& command, ProposalTerms terms) {
  SEMEL_ASSERT(!is_own_thread());
  SEMEL_TRY(prepared, prepare(command));
  return waited([&](ProposalDone done) { propose(std::move(prepared), std::move(done), terms); });
}
Status Replica::read(ProposalTerms terms) {
  SEMEL_ASSERT(!is_own_thread());
  const Result<Answer> answer = waited([&](ProposalDone done) { read(std::move(done), terms); });
  return answer.ok() ? Status{Done{}} : Status{answer.error()};
}
ReplicaStatus Replica::status() const {
  return loop_->status().get();
}
bool Replica::is_leader() const noexcept {
  return loop_->status().leads();
}
const engine::SessionOwner& Replica::session_owner() const noexcept {
  return loop_->session_owner();
}
std::size_t Replica::bytes_besides() const noexcept {
  return loop_->state().bytes_besides();
}
std::uint16_t Replica::port() const noexcept {
  return loop_->port();
}

Status Replica::change(const MemberChange& change) {
  return loop_->call(
      [&](ReplicaParts& parts, std::uint64_t now) { return parts.core->change(now, change); });
}
Status Replica::add(NodeId id, const std::string& address) {
  SEMEL_CHECK(check_member_address(address));
  return change(AddMember{id, address});
}
Status Replica::promote(NodeId id) {
  return loop_->call([&](ReplicaParts& parts, std::uint64_t now) -> Status {
    SEMEL_CHECK(parts.members->check_promotion(id));
    return parts.core->change(now, PromoteMember{id});
  });
}
Status Replica::demote(NodeId id) {
  return change(DemoteMember{id});
}
Status Replica::remove(NodeId id) {
  return change(RemoveMember{id});
}
Status Replica::transfer(NodeId id) {
  return loop_->call(
      [&](ReplicaParts& parts, std::uint64_t now) { return parts.core->transfer(now, id); });
}
Status Replica::upgrade() {
  Result<FeatureLevel> level = Error{ErrorCode::closing, {}};
  SEMEL_CHECK(loop_->call([&](ReplicaParts& parts, std::uint64_t) {
    level = parts.members->common_level();
    return level.ok() ? Status{Done{}} : Status{level.error()};
  }));
  if (*level <= loop_->status().get().level) return Done{};
  const Result<Answer> answer =
      propose({FeatureLevelCommand{*level}}, {.repeats = true, .is_numbered = false});
  return answer.ok() ? Status{Done{}} : Status{answer.error()};
}
Status Replica::reload_tls(const PeerTls& files) {
  return loop_->call(
      [&](ReplicaParts& parts, std::uint64_t) { return parts.transport->reload_tls(files); });
}

}  // namespace semel::replication
