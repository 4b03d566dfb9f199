#include "tests/replication/core/simulated_node.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "replication/core/configuration_codec.hpp"

namespace semel::tests {

using namespace replication;

namespace {

constexpr LogIndex snapshot_every = 60;
constexpr std::size_t trailing = 10;
constexpr std::uint64_t segment_entries = 40;
constexpr std::size_t command_bytes = sizeof(SimulatedCommand);
constexpr std::int64_t wall_ahead_max = 7 * 24 * 3'600'000;

}  // namespace

std::uint64_t SimulatedState::apply(LogIndex index, const SimulatedCommand& command) {
  const std::uint64_t key = command.key;
  const std::uint64_t client = command.client;
  digest = (digest ^ (key * 1'000'003 + client)) * 0x9e3779b97f4a7c15ULL + index;
  group_ms = command.group_ms;
  if (command.lease_ms == 0) return owners.emplace(key, client).first->second;
  const auto [lease, is_new] = leases.try_emplace(key, Lease{});
  if (is_new || lease->second.until <= command.group_ms) {
    lease->second = {client, command.group_ms + command.lease_ms, command.asked_at};
  }
  return lease->second.client;
}

SimulatedNode::SimulatedNode(Simulation& world, NodeId id)
    : world_(world),
      id_(id),
      offset_(static_cast<std::int64_t>(world.random_.below(100'000'000))),
      rate_(1'000'000 + static_cast<std::int64_t>(world.random_.below(60'000)) - 30'000),
      identity_{1 + world.random_.below(1'000'000), id} {}
SimulatedNode::~SimulatedNode() = default;

std::uint64_t SimulatedNode::clock() const noexcept {
  return static_cast<std::uint64_t>(offset_ +
                                    static_cast<std::int64_t>(world_.now_) * rate_ / 1'000'000);
}

void SimulatedNode::found(const SharedData& configuration) {
  term_ = 1;
  log_.push_back({1, EntryType::configuration, configuration});
}

void SimulatedNode::boot() {
  SEMEL_ASSERT(core_ == nullptr);
  // This is damage: the node does not start, and the runbook empties its directory.
  if (written_ < tail_ && !world_.without_.contains("tail")) return wipe();
  ++life_;
  state_ = {};
  reads_.clear();
  is_taking_ = false;
  member_logs_ = {};
  time_ = GroupClock{{.counts_terms = !world_.without_.contains("time"),
                      .counts_behind = !world_.without_.contains("boots")}};
  ConsensusOptions options;
  options.id = id_;
  options.address = "node-" + std::to_string(id_);
  options.election = Millis{300};
  options.heartbeat = Millis{50};
  options.seed = static_cast<std::uint32_t>(world_.random_.bits());
  options.guards = world_.guards_;
  options.message_bytes_max = command_bytes * 8;
  // Half of them apply at once what they can, the others lag behind.
  if (world_.random_.chance(1, 2)) {
    options.apply_entries_max = 1 + world_.random_.below(8);
    options.apply_bytes_max = command_bytes * (1 + world_.random_.below(8));
  }
  auto made = ConsensusCore::make(options, *this);
  SEMEL_ASSERT(made.ok());
  StoredState stored{.term = term_, .voted_for = vote_};
  if (snapshot_) {
    // Entries that do not join the snapshot are those of before it was installed.
    const LogIndex index = snapshot_->id.index;
    const LogIndex last = first_ + log_.size() - 1;
    const bool joins = first_ <= index + 1 && last >= index &&
                       (first_ == index + 1 || log_[index - first_].term == snapshot_->id.term);
    if (!joins) {
      log_.clear();
      first_ = index + 1;
    }
    stored.snapshot = snapshot_->id;
    state_ = snapshot_->state;
  }
  stored.first = first_;
  stored.entries.assign(log_.begin(), log_.end());
  const auto boot_ms = static_cast<std::int64_t>(clock());
  time_.begin(state_.group_ms, world_.wall_ms(), boot_ms, wall_ahead_max);
  if (kept_time_) time_.recall(*kept_time_, is_time_of_boot_, boot_ms);
  if (snapshot_) time_.saw(state_.group_ms, boot_ms, snapshot_->id.term);
  core_ = std::move(*made);
  const Status started = core_->start(clock(), std::move(stored));
  if (!started) world_.find("a node does not start: " + started.error().detail);
  tick_soon();
}

void SimulatedNode::boot_machine() {
  SEMEL_ASSERT(!is_up());
  offset_ = static_cast<std::int64_t>(world_.random_.below(100'000'000));
  is_time_of_boot_ = false;
}

void SimulatedNode::stop() {
  core_.reset();
  writing_.clear();
}

void SimulatedNode::wipe() {
  stop();
  term_ = 0;
  vote_ = 0;
  snapshot_.reset();
  kept_time_.reset();
  sent_.clear();
  first_ = 1;
  log_.clear();
  written_ = tail_ = 0;
  segment_ = {};
  ++identity_.high;
  boot();
}

void SimulatedNode::lose_segment() {
  SEMEL_ASSERT(!is_up());
  first_ = segment_.first;
  log_ = segment_.log;
  written_ = segment_.written;
}

Configuration SimulatedNode::members_on_disk() const {
  for (std::size_t i = log_.size(); i-- > 0;) {
    if (log_[i].type == EntryType::configuration) return *decode_configuration(*log_[i].data);
  }
  return snapshot_ ? snapshot_->id.configuration : Configuration{};
}

bool SimulatedNode::accepts(NodeId id, const LogIdentity& log) {
  if (!is_up() || !core_->raft().is_leader() || world_.without_.contains("identities")) return true;
  const auto expected = member_logs_.expected(core_->raft().term(), core_->raft().members());
  const auto found = expected.find(id);
  return found == expected.end() || found->second == log;
}

/// As a replica does whose group has this level of features.
void SimulatedNode::learn_logs() {
  if (!core_->raft().is_leader() || core_->raft().is_changing_members()) return;
  const auto logs =
      member_logs_.to_learn(core_->raft().term(), core_->raft().members(), id_, identity_);
  if (!logs.empty()) static_cast<void>(core_->change(clock(), LearnLogs{logs}));
}

void SimulatedNode::crash() {
  const std::uint64_t kept = world_.random_.below(writing_.size() + 1);
  for (std::uint64_t i = 0; i < kept; ++i) {
    Write& write = writing_[i];
    if (i + 1 == kept) write.entries.resize(1 + world_.random_.below(write.entries.size()));
    put(write);
  }
  stop();
}

void SimulatedNode::tick_soon() {
  world_.after(5 + world_.random_.below(6), [this, life = life_] {
    if (!is_up() || life != life_) return;
    if (world_.now_ < paused_until_) return tick_soon();
    if (core_->raft().next_timeout() <= clock()) core_->tick(clock());
    if (!is_up() || life != life_) return;
    if (core_->must_apply_more()) core_->apply_more(clock());
    if (!is_up() || life != life_) return;
    finish_reads();
    lead_time();
    keep_time();
    learn_logs();
    if (world_.random_.chance(1, 16)) check_members();
    tick_soon();
  });
}

/// The members are those of the newest configuration in the log, committed or not.
void SimulatedNode::check_members() {
  if (core_->log().is_installing()) return;
  std::optional<Configuration> newest;
  for (LogIndex index = core_->log().last(); index >= core_->log().first() && !newest; --index) {
    const RaftEntry* const entry = core_->log().entry(index);
    if (entry->type == EntryType::configuration) newest = *decode_configuration(*entry->data);
  }
  if (!newest && snapshot_) newest = snapshot_->id.configuration;
  if (newest && core_->raft().members() != *newest) {
    world_.find("node " + std::to_string(id_) + " has other members than its log");
  }
}

void SimulatedNode::receive(const RaftMessage& message, const LogIdentity& log) {
  if (!is_up()) return;
  if (std::holds_alternative<VoteReply>(message.what) && !world_.without_.contains("identities") &&
      has_other_log(core_->raft().members(), message.from, log)) {
    return;
  }
  const auto boot_ms = static_cast<std::int64_t>(clock());
  time_.hear(message, core_->raft().term(), boot_ms);
  keep_time();
  core_->receive(clock(), message);
  if (!is_up()) return;
  if (std::holds_alternative<AppendReply>(message.what) && core_->raft().is_leader() &&
      message.term == core_->raft().term() && core_->raft().match(message.from) != 0) {
    member_logs_.replied(message.term, message.from, log);
  }
  finish_reads();
  if (core_->raft().is_leader() && world_.random_.chance(1, 4)) core_->tell_commit(message.from);
}

void SimulatedNode::keep_time() {
  const auto known = time_.to_keep(static_cast<std::int64_t>(clock()), world_.wall_ms());
  if (!known) return;
  kept_time_ = known;
  is_time_of_boot_ = true;
}

/// As a replica does: once all entries of former leaders are applied.
void SimulatedNode::lead_time() {
  if (!core_->raft().is_leader() || !time_.has_to_lead(core_->raft().term())) return;
  if (core_->log().applied() < core_->log().last()) return;
  const Configuration members = core_->raft().members();
  time_.lead(core_->raft().term(), static_cast<std::size_t>(std::count_if(
                                       members.begin(), members.end(), [](const Member& each) {
                                         return each.role == MemberRole::voter;
                                       })));
}

void SimulatedNode::claim(std::uint64_t key, std::uint64_t client, std::int64_t lease_ms) {
  lead_time();
  if (time_.has_to_lead(core_->raft().term())) return;
  const SimulatedCommand command{
      .key = key,
      .client = client,
      .group_ms = time_.next(static_cast<std::int64_t>(clock()), world_.wall_ms()),
      .asked_at = world_.now_,
      .lease_ms = lease_ms};
  std::string data(command_bytes, '\0');
  std::memcpy(data.data(), &command, sizeof command);
  static_cast<void>(core_->propose(clock(), std::make_shared<const std::string>(std::move(data))));
}

/// A read must see all that was acknowledged before it began, by whatever node.
void SimulatedNode::begin_read() {
  const auto round = core_->read(clock());
  if (round.ok()) reads_.push_back({*round, world_.answered_});
}

void SimulatedNode::finish_reads() {
  if (!is_up() || reads_.empty()) return;
  if (!core_->raft().is_leader()) return reads_.clear();
  std::erase_if(reads_, [&](const Read& read) {
    if (core_->leadership().confirmed() < read.round ||
        core_->log().applied() < core_->leadership().read_index()) {
      return false;
    }
    ++world_.counts_.reads;
    if (core_->log().applied() < read.least)
      world_.find("a read did not see what was acknowledged");
    return true;
  });
}

// --- effects --------------------------------------------------------------------------------

Status SimulatedNode::save_vote(Term term, NodeId vote) {
  if (term < term_) world_.find("a term went back");
  if (term == term_ && vote_ != 0 && vote != vote_) world_.find("a second vote in one term");
  term_ = term;
  vote_ = vote;
  return Done{};
}

std::uint64_t SimulatedNode::disk_delay() {
  std::uint64_t delay = 1 + world_.random_.below(world_.slowness_);
  if (world_.random_.chance(1, 50)) delay += world_.random_.below(200);
  disk_free_ = std::max(disk_free_, world_.now_ + delay);
  return disk_free_ - world_.now_;
}

void SimulatedNode::append(LogIndex first, std::vector<RaftEntry> entries) {
  const LogIndex last = first + entries.size() - 1;
  const Term term = entries.back().term;
  writing_.push_back({first, std::move(entries)});
  world_.after(disk_delay(), [this, life = life_, last, term] { write_done(life, last, term); });
}

void SimulatedNode::write_done(std::uint64_t life, LogIndex last, Term term) {
  if (!is_up() || life != life_ || writing_.empty()) return;
  if (world_.now_ < paused_until_) {
    return world_.after(paused_until_ - world_.now_,
                        [this, life, last, term] { write_done(life, last, term); });
  }
  if (!world_.is_healed_ && world_.random_.chance(1, 5'000)) {
    ++world_.counts_.failed_syncs;  // what is on the disk is not known, so the node stops
    return crash();
  }
  put(writing_.front());
  writing_.pop_front();
  tail_ = written_;
  core_->persisted(clock(), last, term);
}

void SimulatedNode::put(const Write& write) {
  if (written_ >= segment_.written + segment_entries) segment_ = {first_, log_, written_};
  if (write.first < first_ || write.first > first_ + log_.size()) {
    log_.clear();
    first_ = write.first;
  }
  log_.resize(write.first - first_);
  log_.insert(log_.end(), write.entries.begin(), write.entries.end());
  written_ += write.entries.size();
}

void SimulatedNode::send(RaftMessage message) {
  time_.tell(message, core_->raft().is_leader(), static_cast<std::int64_t>(clock()));
  if (world_.without_.contains("time")) {  // as before level 4
    if (auto* const append = std::get_if<AppendRequest>(&message.what)) append->unix_ms = 0;
    if (auto* const vote = std::get_if<VoteReply>(&message.what)) vote->time_term = 0;
  }
  if (const auto* offer = std::get_if<SnapshotOffer>(&message.what)) {
    SEMEL_ASSERT(snapshot_.has_value());
    // Its state goes another way; here it is found by the index.
    if (snapshot_->id.index == offer->snapshot.index) {
      sent_[offer->snapshot.index] = *snapshot_;
    }
  }
  world_.send(message);
}

void SimulatedNode::apply(LogIndex index, const RaftEntry& entry) {
  world_.committed(*this, index, entry);
  if (entry.type == EntryType::command) {
    SimulatedCommand command;
    std::memcpy(&command, entry.data->data(), sizeof command);
    if (command.group_ms < state_.group_ms) world_.find("the group's time goes back");
    const std::uint64_t owner = state_.apply(index, command);
    const auto boot_ms = static_cast<std::int64_t>(clock());
    time_.saw(command.group_ms, boot_ms, entry.term);
    const bool is_followed = entry.term == core_->raft().term() && !core_->raft().is_leader() &&
                             index == core_->log().commit();
    if (is_followed) time_.follow(command.group_ms, boot_ms, entry.term);
    if (command.lease_ms != 0) {
      if (owner == command.client) world_.leased(index, command);
      return consider_snapshot();
    }
    const std::uint64_t key = command.key;
    // The client waits for the leader that proposed it, which is of the entry's term.
    if (core_->raft().is_leader() && entry.term == core_->raft().term()) {
      ++world_.counts_.acknowledged;
      world_.answered_ = std::max(world_.answered_, index);
      const auto [told, is_new] = world_.owners_.emplace(key, owner);
      if (!is_new && told->second != owner) world_.find("two owners of one key were told so");
    }
  }
  consider_snapshot();
}

void SimulatedNode::consider_snapshot() {
  const LogIndex index = core_->log().applied();
  const LogIndex before = snapshot_ ? snapshot_->id.index : 0;
  if (is_taking_ || index < before + snapshot_every) return;
  is_taking_ = true;
  Snapshot made{{index, core_->log().term_of(index), core_->applied_members().index,
                 core_->applied_members().members},
                state_};
  world_.after(5 + world_.random_.below(40), [this, life = life_, made = std::move(made)] {
    if (!is_up() || life != life_) return;
    is_taking_ = false;
    if (core_->log().is_installing() || (snapshot_ && snapshot_->id.index >= made.id.index)) return;
    ++world_.counts_.snapshots;
    snapshot_ = made;
    const LogIndex keep = made.id.index - std::min<LogIndex>(trailing, made.id.index);
    while (first_ <= keep && !log_.empty()) {
      log_.pop_front();
      ++first_;
    }
    core_->snapshot_taken(clock(), made.id, trailing);
  });
}

void SimulatedNode::install(const SnapshotOffer& offer) {
  const LogIndex index = offer.snapshot.index;
  Snapshot made{offer.snapshot, {}};
  bool is_found = false;
  for (const auto& [id, node] : world_.nodes_) {
    const auto sent = node->sent_.find(index);
    if (sent == node->sent_.end() || sent->second.id.term != offer.snapshot.term) continue;
    made.state = sent->second.state;
    is_found = true;
  }
  if (!is_found) return world_.find("a snapshot that nobody has sent is installed");
  world_.after(disk_delay() + world_.random_.below(100), [this, life = life_, made] {
    if (!is_up() || life != life_) return;
    ++world_.counts_.installs;
    snapshot_ = made;
    log_.clear();
    first_ = made.id.index + 1;
    writing_.clear();
    state_ = made.state;
    core_->installed(clock(), made.id);
  });
}

void SimulatedNode::changed() {
  if (!core_->raft().is_leader()) return;
  const auto [known, is_new] = world_.leaders_.emplace(core_->raft().term(), id_);
  if (is_new) ++world_.counts_.elections;
  if (known->second != id_) world_.find("two leaders of one term");
}

void SimulatedNode::failed(const Error& error) {
  world_.find("node " + std::to_string(id_) + " stops: " + error.detail);
}

}  // namespace semel::tests
