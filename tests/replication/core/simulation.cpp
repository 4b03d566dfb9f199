#include "tests/replication/core/simulation.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "replication/core/configuration_codec.hpp"
#include "tests/replication/core/simulated_node.hpp"

namespace semel::tests {

using namespace replication;

namespace {

constexpr std::uint64_t faults_ms = 30'000;
constexpr std::uint64_t healed_ms = 10'000;
constexpr std::uint64_t keys = 400;
constexpr std::int64_t lease_ms = 4'000;
// Of which a lease may lack so much: clocks differ in rate by up to 3 %, a leader's is followed for
// two seconds by another one, and each follows its wall clock.
constexpr std::int64_t lease_lacks_ms = lease_ms / 20 + 150;

}  // namespace

void SimulationCounts::add(const SimulationCounts& other) {
  commits += other.commits;
  acknowledged += other.acknowledged;
  crashes += other.crashes;
  failed_syncs += other.failed_syncs;
  elections += other.elections;
  snapshots += other.snapshots;
  installs += other.installs;
  changes += other.changes;
  transfers += other.transfers;
  reads += other.reads;
  leases += other.leases;
  messages += other.messages;
  pauses += other.pauses;
  wipes += other.wipes;
  lost_segments += other.lost_segments;
  boots += other.boots;
  leases_granted += other.leases_granted;
}

Simulation::Simulation(std::uint64_t seed, const Guards& guards, std::set<std::string> without)
    : random_(seed), guards_(guards), without_(std::move(without)) {
  const std::uint64_t voters = random_.chance(1, 2) ? 3 : 5;
  loss_ = random_.below(4) * 30;
  latency_ = 1 + random_.below(20);
  slowness_ = 1 + random_.below(20);
  Configuration first;
  for (NodeId id = 1; id <= voters; ++id) {
    first.push_back({id, "node-" + std::to_string(id), MemberRole::voter});
  }
  const SharedData configuration = *encode_configuration(first);
  // One more waits to be a member.
  for (NodeId id = 1; id <= voters + 1; ++id) {
    nodes_[id] = std::make_unique<SimulatedNode>(*this, id);
    if (id <= voters) nodes_[id]->found(configuration);
  }
}
Simulation::~Simulation() = default;

void Simulation::after(std::uint64_t delay, std::function<void()> what) {
  queue_.push({now_ + delay, events_++, std::move(what)});
}

void Simulation::find(const std::string& what) {
  if (found_.empty()) found_ = what + ", at " + std::to_string(now_) + " ms";
}

SimulatedNode* Simulation::leader() {
  SimulatedNode* found = nullptr;
  for (const auto& [id, node] : nodes_) {
    if (!node->is_up() || !node->core().raft().is_leader()) continue;
    if (found == nullptr || node->core().raft().term() > found->core().raft().term())
      found = node.get();
  }
  return found;
}

std::string Simulation::run() {
  for (const auto& [id, node] : nodes_) node->boot();
  after(10, [this] { load(); });
  after(1'500, [this] { disturb(); });
  after(2'000, [this] { replace_wiped(); });
  const std::uint64_t end = now_ + faults_ms;
  while (found_.empty() && !queue_.empty() && now_ < end + healed_ms) {
    const Event next = queue_.top();
    queue_.pop();
    now_ = next.at;
    if (now_ >= end && !is_healed_) heal();
    next.what();
  }
  if (found_.empty()) judge();
  return found_;
}

void Simulation::heal() {
  is_healed_ = true;
  cut_.clear();
  loss_ = 0;
  for (const auto& [id, node] : nodes_) {
    if (!node->is_up()) node->boot();
  }
}

/// Clients claim keys at every node that takes itself for the leader, and read.
void Simulation::load() {
  for (const auto& [id, node] : nodes_) {
    if (!node->is_up() || !node->core().raft().is_leader()) continue;
    if (now_ < quiet_until_) continue;
    const std::uint64_t count = 1 + random_.below(4);
    for (std::uint64_t i = 0; i < count; ++i) node->claim(random_.below(keys), ++clients_, 0);
    claim_lease(*node);
    if (random_.chance(1, 8)) node->begin_read();
    ConsensusCore& core = node->core();
    if (core.leadership().lease_until(node->clock()) <= node->clock()) continue;
    ++counts_.leases;
    for (const auto& [other_id, other] : nodes_) {
      if (other_id != id && other->is_up() && other->core().raft().is_leader() &&
          other->core().raft().term() > core.raft().term()) {
        find("a lease is held while there is a newer leader");
      }
    }
  }
  // When all faults are over, a little goes on: what is stuck must come free.
  after(1 + random_.below(is_healed_ ? 200 : 6), [this] { load(); });
}

void Simulation::claim_lease(SimulatedNode& node) {
  node.claim(keys + first_leased_ + random_.below(leased_keys), ++clients_, lease_ms);
}

void Simulation::disturb() {
  if (is_healed_) return;
  if (random_.chance(1, 25)) return begin_turns(20);
  if (random_.chance(1, 25)) return forget_and_vote(20);
  auto chosen = nodes_.begin();
  std::advance(chosen, static_cast<std::ptrdiff_t>(random_.below(nodes_.size())));
  SimulatedNode& node = *chosen->second;
  const std::uint64_t what = random_.below(16);
  if (what < 4) {
    if (node.is_up()) {
      ++counts_.crashes;
      node.crash();
    }
    const auto down = std::count_if(nodes_.begin(), nodes_.end(),
                                    [](const auto& each) { return !each.second->is_up(); });
    const bool too_many = 2 * static_cast<std::size_t>(down) > nodes_.size();
    for (const auto& [id, other] : nodes_) {
      if (!other->is_up() && (too_many || random_.chance(1, 4))) other->boot();
    }
  } else if (what < 6) {
    for (const auto& [id, other] : nodes_) {
      if (!other->is_up()) other->boot();
    }
  } else if (what < 8) {
    cut_some();
  } else if (what < 9) {
    cut_.clear();
    for (const auto& [id, other] : nodes_) {
      if (id == node.id()) continue;
      cut_.emplace(node.id(), id);
      if (random_.chance(1, 2)) cut_.emplace(id, node.id());
    }
  } else if (what < 10) {
    cut_.clear();
  } else if (what < 11) {
    SimulatedNode* const from = leader();
    if (from != nullptr && from->core().transfer(from->clock(), random_.below(nodes_.size() + 1))) {
      ++counts_.transfers;
    }
  } else if (what < 13) {
    change_members();
  } else if (what < 14) {
    if (!may_wipe(node)) {
      // It, or its log, is what the others count on.
    } else if (random_.chance(1, 2)) {
      lose_segment(node);
    } else {
      ++counts_.wipes;
      node.wipe();
    }
  } else {
    ++counts_.pauses;
    node.pause(now_ + 50 + random_.below(900));
  }
  after(50 + random_.below(600), [this] { disturb(); });
}

bool Simulation::is_wiped(const Member& member) const {
  return member.log.is_known() && nodes_.at(member.id)->log_identity() != member.log;
}

bool Simulation::may_wipe(SimulatedNode& node) {
  bool is_member = false;
  for (const auto& [id, each] : nodes_) {
    std::size_t voters = 0;
    std::size_t wiped = 0;
    for (const Member& member :
         each->is_up() ? each->core().raft().members() : each->members_on_disk()) {
      if (member.role != MemberRole::voter) continue;
      ++voters;
      wiped += is_wiped(member) ? 1 : 0;
      if (member.id != node.id()) continue;
      if (!member.log.is_known()) return false;
      is_member = true;
    }
    if (voters != 0 && wiped + 1 > (voters - 1) / 2) return false;
  }
  return is_member;
}

void Simulation::replace_wiped() {
  after(300, [this] { replace_wiped(); });
  SimulatedNode* const by = leader();
  if (by == nullptr) return;
  const Configuration members = by->core().raft().members();
  for (const Member& each : members) {
    if (!is_wiped(each)) continue;
    if (by->core().change(by->clock(), RemoveMember{each.id})) ++counts_.changes;
    return;
  }
}

void Simulation::cut_some() {
  cut_.clear();
  for (const auto& [from, one] : nodes_) {
    for (const auto& [to, other] : nodes_) {
      if (from != to && random_.chance(1, 5)) cut_.emplace(from, to);
    }
  }
}

void Simulation::change_members() {
  SimulatedNode* const by = leader();
  if (by == nullptr) return;
  ConsensusCore& core = by->core();
  const Configuration members = core.raft().members();
  const NodeId id = 1 + random_.below(nodes_.size());
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Member& each) { return each.id == id; });
  const auto voters = std::count_if(members.begin(), members.end(), [](const Member& each) {
    return each.role == MemberRole::voter;
  });
  Status done{Done{}};
  if (found == members.end()) {
    done = core.change(by->clock(), AddMember{id, "node-" + std::to_string(id)});
  } else if (found->role == MemberRole::standby) {
    done = random_.chance(1, 6) ? core.change(by->clock(), RemoveMember{id})
                                : core.change(by->clock(), PromoteMember{id});
  } else if (voters > 2 && std::none_of(members.begin(), members.end(),
                                        [this](const Member& each) { return is_wiped(each); })) {
    done = core.change(by->clock(), DemoteMember{id});
  }
  if (!done) return;
  ++counts_.changes;
  // Some nodes have not heard yet that this one is committed.
  if (random_.chance(1, 2)) after(random_.below(100), [this] { change_members(); });
}

void Simulation::send(const RaftMessage& message) {
  ++counts_.messages;
  if (const auto* offer = std::get_if<TimeoutNow>(&message.what)) {
    // Else it would be ignored, and not be sent again. Who is in a newer term may have lost them.
    const SimulatedNode& to = *nodes_.at(message.to);
    if (to.stored_term() <= message.term && to.stored() < offer->last_index) {
      find("leadership is offered to node " + std::to_string(message.to) + ", which lacks entries");
    }
  }
  const LogIdentity log = nodes_.at(message.from)->log_identity();
  // It has connected, and been told which log is there.
  const SimulatedNode& to = *nodes_.at(message.to);
  if (!nodes_.at(message.from)->accepts(message.to, to.log_identity())) return;
  const std::pair<NodeId, NodeId> way{message.from, message.to};
  if (cut_.contains(way) || random_.below(1'000) < loss_) return;
  if (starved_ == way && std::holds_alternative<AppendRequest>(message.what)) return;
  const std::uint64_t copies = random_.chance(1, 100) ? 2 : 1;
  for (std::uint64_t i = 0; i < copies; ++i) {
    std::uint64_t delay = 1 + random_.below(latency_);
    if (random_.chance(1, 100)) delay += random_.below(300);
    after(delay, [this, message, log] { deliver(message, log); });
  }
}

void Simulation::deliver(const RaftMessage& message, const LogIdentity& log) {
  const auto to = nodes_.find(message.to);
  if (to == nodes_.end() || cut_.contains({message.from, message.to})) return;
  // Behind what has waited already, which was put into the queue before.
  const std::uint64_t until = to->second->paused_until();
  if (now_ < until) return after(until - now_, [this, message, log] { deliver(message, log); });
  // A connection ends with its process.
  if (nodes_.at(message.from)->log_identity() != log) return;
  if (to->second->accepts(message.from, log)) to->second->receive(message, log);
}

void Simulation::leased(LogIndex index, const SimulatedCommand& command) {
  const auto [known, is_new] = leases_.try_emplace(command.key, std::pair{command.asked_at, index});
  if (is_new) ++counts_.leases_granted;
  if (is_new || known->second.second >= index) return;  // another node has applied it before
  const auto passed = static_cast<std::int64_t>(command.asked_at - known->second.first);
  if (passed < lease_ms - lease_lacks_ms) {
    find("a lease of " + std::to_string(lease_ms) + " ms has ended after " +
         std::to_string(passed));
  }
  known->second = {command.asked_at, index};
  ++counts_.leases_granted;
}

void Simulation::committed(SimulatedNode& node, LogIndex index, const RaftEntry& entry) {
  const auto [known, is_new] = log_.try_emplace(index, Committed{entry.term, *entry.data});
  if (is_new) ++counts_.commits;
  if (known->second.term != entry.term || known->second.data != *entry.data) {
    find("node " + std::to_string(node.id()) + " has applied another entry " +
         std::to_string(index));
  }
}

/// After all faults are over: there is a leader, everyone has applied everything, and what clients
/// were told is so.
void Simulation::judge() {
  SimulatedNode* const first = leader();
  if (first == nullptr) return find("stuck: there is no leader");
  const LogIndex all = log_.empty() ? 0 : log_.rbegin()->first;
  const Configuration members = first->core().raft().members();
  for (const Member& each : members) {
    SimulatedNode& node = *nodes_.at(each.id);
    if (node.core().log().applied() + 20 < all) {
      return find("stuck: node " + std::to_string(each.id) + " has applied " +
                  std::to_string(node.core().log().applied()) + " of " + std::to_string(all));
    }
    if (node.core().raft().is_changing_members()) {
      return find("stuck: for node " + std::to_string(each.id) +
                  " a change of members does not end");
    }
    if (node.core().log().applied() == first->core().log().applied() &&
        node.state().digest != first->state().digest) {
      return find("states differ");
    }
  }
  if (first->core().log().commit() < answered_) return find("acknowledged entries are gone");
  for (const auto& [key, owner] : owners_) {
    const auto found = first->state().owners.find(key);
    if (found == first->state().owners.end() || found->second != owner) {
      return find("an acknowledged claim is lost");
    }
  }
}

}  // namespace semel::tests
