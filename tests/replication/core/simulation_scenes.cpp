// What a simulation does in an order of its own: by chance alone it would hardly ever happen.
#include <algorithm>
#include <functional>

#include "tests/replication/core/simulated_node.hpp"
#include "tests/replication/core/simulation.hpp"

namespace semel::tests {

using namespace replication;

namespace {

constexpr unsigned turns = 12;
// Less than an election timeout: a leader that nobody answers for so long leads on.
constexpr std::uint64_t late_ms = 230;
constexpr std::uint64_t look_every_ms = 10;

bool has_all(SimulatedNode& node, SimulatedNode& of) {
  return node.is_up() && node.core().log().applied() >= of.core().log().commit();
}

}  // namespace

std::vector<NodeId> Simulation::gather() {
  cut_.clear();
  for (const auto& [id, node] : nodes_) {
    if (!node->is_up()) node->boot();
  }
  SimulatedNode* const by = leader();
  if (by == nullptr) return {};
  ConsensusCore& core = by->core();
  std::vector<NodeId> voters;
  for (const Member& each : core.raft().members()) {
    if (each.role == MemberRole::voter) voters.push_back(each.id);
  }
  if (voters.size() >= 3) return voters;
  for (const auto& [id, node] : nodes_) {
    if (std::find(voters.begin(), voters.end(), id) != voters.end()) continue;
    if (core.change(by->clock(), PromoteMember{id}) ||
        core.change(by->clock(), AddMember{id, "node-" + std::to_string(id)})) {
      ++counts_.changes;
      break;
    }
  }
  return {};
}

// --- the group's time ------------------------------------------------------------------------

void Simulation::begin_turns(unsigned tries) {
  const std::vector<NodeId> voters = gather();
  if (voters.size() < 3) {
    return after(200, [this, tries] { tries == 0 ? disturb() : begin_turns(tries - 1); });
  }
  SimulatedNode* const from = leader();
  turns_ = {.left = turns, .who = {from->id()}};
  for (const NodeId id : voters) {
    if (turns_.who.size() <= voters.size() / 2) turns_.who.insert(id);
  }
  for (const auto& [id, node] : nodes_) {
    for (const auto& [other, unused] : nodes_) {
      if (turns_.who.contains(id) != turns_.who.contains(other)) cut_.emplace(id, other);
    }
  }
  quiet_until_ = now_ + turns * 1'000;
  take_turn();
}

void Simulation::take_turn() {
  SimulatedNode* const from = leader();
  if (from == nullptr || !turns_.who.contains(from->id()) || is_healed_) return end_turns();
  for (const NodeId id : turns_.who) {
    if (id == from->id() || !from->core().transfer(from->clock(), id)) continue;
    ++counts_.transfers;
    return await([this, id] { return is_leading(id); }, 400, [this, id] { be_late(id); });
  }
  after(50, [this] { --turns_.left == 0 ? end_turns() : take_turn(); });
}

void Simulation::be_late(NodeId id) {
  if (is_leading(id)) {
    for (const NodeId other : turns_.who) {
      if (other == id) continue;
      nodes_.at(other)->pause(now_ + late_ms);
      ++counts_.pauses;
    }
    claim_lease(*nodes_.at(id));
  }
  after(late_ms, [this, id] {
    const auto is_done = [this, id] {
      return !is_leading(id) || std::all_of(turns_.who.begin(), turns_.who.end(), [&](NodeId each) {
        return has_all(*nodes_.at(each), *nodes_.at(id));
      });
    };
    await(is_done, 300, [this] { --turns_.left == 0 ? end_turns() : take_turn(); });
  });
}

void Simulation::end_turns() {
  cut_.clear();
  quiet_until_ = 0;
  // Of those from before the turns none has ended yet, by the time of the last of these leaders.
  first_leased_ += leased_keys;
  if (random_.chance(1, 2)) return after(300, [this] { lead_who_missed(20); });
  // The group follows them slowly, and grants leases by its own time.
  wall_ahead_ms_ += static_cast<std::int64_t>(random_.below(5'000));
  after(1'300, [this] { boot_all(); });
}

void Simulation::boot_all() {
  for (const auto& [id, node] : nodes_) {
    if (node->is_up()) node->crash();
    node->boot_machine();
  }
  ++counts_.boots;
  after(50 + random_.below(400), [this] { gather(); });
  after(4'000, [this] { disturb(); });
}

void Simulation::lead_who_missed(unsigned tries) {
  SimulatedNode* const last = leader();
  if (last != nullptr && turns_.who.contains(last->id())) {
    for (const Member& each : last->core().raft().members()) {
      if (turns_.who.contains(each.id) || each.role != MemberRole::voter) continue;
      if (last->core().transfer(last->clock(), each.id)) ++counts_.transfers;
    }
    if (tries > 0) return after(100, [this, tries] { lead_who_missed(tries - 1); });
  }
  after(3'000, [this] { disturb(); });
}

bool Simulation::is_leading(NodeId id) {
  SimulatedNode* const found = leader();
  return found != nullptr && found->id() == id &&
         found->core().log().applied() == found->core().log().last();
}

void Simulation::await(std::function<bool()> what, std::uint64_t most, std::function<void()> then) {
  if (most < look_every_ms || what()) return then();
  after(look_every_ms, [this, what = std::move(what), most, then = std::move(then)]() mutable {
    await(std::move(what), most - look_every_ms, std::move(then));
  });
}

// --- disks -----------------------------------------------------------------------------------

void Simulation::forget_and_vote(unsigned tries) {
  const std::vector<NodeId> voters = gather();
  SimulatedNode* const leads = leader();
  const auto forgets = std::find_if(voters.begin(), voters.end(), [&](NodeId id) {
    return id != leads->id() && may_wipe(*nodes_.at(id));
  });
  if (voters.size() < 3 || forgets == voters.end()) {
    return after(200, [this, tries] { tries == 0 ? disturb() : forget_and_vote(tries - 1); });
  }
  Forgetting parts{.forgets = *forgets, .stale = {}, .end = {leads->id()}};
  for (const NodeId id : voters) {
    if (id == *forgets || id == leads->id()) continue;
    // With the one that forgets they are just a majority.
    (parts.stale.size() < voters.size() / 2 ? parts.stale : parts.end).push_back(id);
  }
  for (const NodeId id : parts.stale) {
    for (const auto& [other, node] : nodes_) {
      cut_.emplace(id, other);
      cut_.emplace(other, id);
    }
  }
  after(700, [this, parts] { forget(parts); });
  after(4'000, [this] { disturb(); });
}

void Simulation::forget(const Forgetting& parts) {
  cut_.clear();
  SimulatedNode& node = *nodes_.at(parts.forgets);
  if (!may_wipe(node)) return;
  for (const NodeId id : parts.end) {
    if (nodes_.at(id)->is_up()) nodes_.at(id)->crash();
  }
  const bool is_of_three = parts.stale.size() == 1 && parts.end.size() == 1;
  if (is_of_three && random_.chance(1, 2)) {
    node.wipe();
    ++counts_.wipes;
    nodes_.at(parts.end[0])->boot();
    starved_ = {parts.end[0], parts.stale[0]};
    return end_when_begun(parts.end[0], parts.forgets, 2'000);
  }
  lose_segment(node);
  after(1'500, [this] { gather(); });
}

void Simulation::lose_segment(SimulatedNode& node) {
  if (node.is_up()) node.crash();
  node.lose_segment();
  ++counts_.lost_segments;
  node.boot();
}

void Simulation::end_when_begun(NodeId leads, NodeId forgets, unsigned tries) {
  SimulatedNode& node = *nodes_.at(leads);
  SimulatedNode& other = *nodes_.at(forgets);
  const bool has_begun = other.is_up() && !other.core().raft().members().empty();
  if (!has_begun && tries > 0) {
    return after(1, [this, leads, forgets, tries] { end_when_begun(leads, forgets, tries - 1); });
  }
  starved_.reset();
  if (!node.is_up()) return;
  node.crash();
  after(1'500, [&node] {
    if (!node.is_up()) node.boot();
  });
}

}  // namespace semel::tests
