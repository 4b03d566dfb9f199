#include "net/group/replicated_group.hpp"

#include <algorithm>
#include <new>
#include <utility>
#include <variant>

#include "replication/node/shown_status.hpp"
#include "replication/state/library_fields.hpp"

namespace semel::net {
namespace {

using replication::Answer;
using replication::PlainAnswer;
using replication::ReplicaStatus;
using replication::SessionCommand;

std::string needs_level(std::string_view what, replication::FeatureLevel needed,
                        replication::FeatureLevel level) {
  const auto used = std::max(level, replication::feature_level_first);
  return std::string{what} + " feature level " + std::to_string(needed) + ", the group uses " +
         std::to_string(used) +
         ": when all of its nodes have this release, `semel cluster upgrade` (a new group does "
         "it by itself when all of its members have met)";
}

void fail(const std::function<void(GroupReply)>& done, const Error& error) {
  done({.error = error.code, .replies = {}, .detail = error.detail});
}

void fail(const std::function<void(GroupLibraryAnswer)>& done, const Error& error) {
  done({.error = error.code, .detail = error.detail, .verdict = {}});
}

}  // namespace

ReplicatedGroup::ReplicatedGroup(replication::Replica& replica, GroupTerms terms)
    : replica_(replica), terms_(std::move(terms)), gate_(replica.engine()) {}

/// The part behind the comma, or else the host of the other part with this node's own port.
std::string ReplicatedGroup::client_address(const std::string& address) const {
  const std::size_t comma = address.find(',');
  if (comma != std::string::npos) return address.substr(comma + 1);
  if (terms_.client_port.empty()) return {};
  return address.substr(0, address.rfind(':') + 1) + terms_.client_port;
}

bool ReplicatedGroup::is_full() {
  return gate_.is_full(replica_.bytes_besides());
}

GroupMember ReplicatedGroup::member_of(const ReplicaStatus& status,
                                       const replication::Member& member) const {
  GroupMember made{replication::shown_member(replica_, status, member)};
  made.client_address = client_address(member.address);
  if (const auto found = status.matches.find(member.id); found != status.matches.end()) {
    made.match = found->second;
  }
  const auto peer = status.peers.find(member.id);
  if (peer == status.peers.end()) return made;
  made.bytes_sent = peer->second.bytes_sent;
  made.frames_received = peer->second.frames_received;
  return made;
}

GroupView ReplicatedGroup::view() const {
  const ReplicaStatus status = replica_.status();
  GroupView view{replication::shown_progress(replica_, status)};
  view.cluster_id = terms_.cluster_id;
  view.node_id = terms_.node_id;
  view.elections = status.elections;
  view.is_changing = status.is_changing_members;
  view.log_bytes = status.log_bytes;
  view.snapshot_bytes_sent = status.totals.snapshot_bytes_sent;
  view.snapshot_bytes_received = status.totals.snapshot_bytes_received;
  view.refused = status.totals.refused;
  for (const replication::Member& each : status.members) {
    view.members.push_back(member_of(status, each));
  }
  return view;
}

std::string ReplicatedGroup::lacks_objects() const {
  // A group never goes back to a lower level.
  // mo: relaxed: a fact, not an order: a thread that misses it looks for itself
  if (has_objects_.load(std::memory_order_relaxed)) [[likely]]
    return {};
  const replication::FeatureLevel level = replica_.status().level;
  if (level < replication::feature_level_objects) {
    return needs_level("needs", replication::feature_level_objects, level);
  }
  has_objects_.store(true, std::memory_order_relaxed);  // mo: relaxed: as above
  return {};
}

void ReplicatedGroup::submit(GroupRequest request, MemoryUse use,
                             std::function<void(GroupReply)> done) {
  if (use == MemoryUse::grows && is_full()) return fail(done, Error{ErrorCode::memory_full, {}});
  auto prepared = replication::prepare({std::move(request)});
  if (!prepared.ok()) return fail(done, prepared.error());
  replica_.propose(
      *std::move(prepared),
      [done = std::move(done)](Result<Answer> answer) {
        if (!answer.ok()) return fail(done, answer.error());
        auto* const plain = std::get_if<PlainAnswer>(&answer->what);
        if (plain == nullptr) return fail(done, Error{ErrorCode::outcome_unknown, {}});
        done({.error = ErrorCode::ok, .replies = std::move(plain->text), .detail = {}});
      },
      terms_.calls);
}

void ReplicatedGroup::change_libraries(const replication::LibraryChange& change,
                                       std::function<void(GroupLibraryAnswer)> done) {
  const replication::FeatureLevel level = replica_.status().level;
  if (level < replication::feature_level_libraries) {
    return fail(done,
                Error{ErrorCode::refused,
                      needs_level("functions need", replication::feature_level_libraries, level)});
  }
  if (!change.libraries.empty() && is_full()) {
    return fail(done, Error{ErrorCode::memory_full, {}});
  }
  auto prepared = replication::prepare({replication::command_of(change)});
  if (!prepared.ok()) return fail(done, prepared.error());
  replica_.propose(
      *std::move(prepared),
      [done = std::move(done)](Result<Answer> answer) {
        if (!answer.ok()) return fail(done, answer.error());
        auto* const plain = std::get_if<PlainAnswer>(&answer->what);
        if (plain == nullptr || plain->error != ErrorCode::ok) {
          return fail(done, Error{ErrorCode::outcome_unknown, {}});
        }
        using Fault = replication::LibraryVerdict::Fault;
        done({.error = ErrorCode::ok,
              .detail = {},
              .verdict = {static_cast<Fault>(plain->number), std::move(plain->text)}});
      },
      terms_.calls);
}

void ReplicatedGroup::read(std::function<void(ErrorCode)> done) {
  replica_.read(
      [done = std::move(done)](const Result<Answer>& answer) {
        done(answer.ok() ? ErrorCode::ok : answer.error().code);
      },
      terms_.calls);
}

void ReplicatedGroup::open_session(std::function<void(ErrorCode, SessionId)> done) {
  const auto& owner = replica_.session_owner();
  auto prepared = replication::prepare({SessionCommand{.node = owner.node, .life = owner.life}});
  if (!prepared.ok()) return done(prepared.error().code, 0);
  replica_.propose(
      *std::move(prepared),
      [done = std::move(done)](const Result<Answer>& answer) {
        if (!answer.ok()) return done(answer.error().code, 0);
        const auto* const plain = std::get_if<PlainAnswer>(&answer->what);
        done(ErrorCode::ok, plain == nullptr ? 0 : static_cast<SessionId>(plain->number));
      },
      terms_.calls);
}

void ReplicatedGroup::close_session(SessionId session) noexcept {
  constexpr Millis day{std::int64_t{24} * 3600 * 1000};
  try {
    auto prepared = replication::prepare(
        {SessionCommand{.what = SessionCommand::What::close, .session = session}});
    if (!prepared.ok()) return;
    replica_.propose(*std::move(prepared), [](const Result<Answer>&) {},
                     {.repeats = true, .patience = day, .forwards = true, .is_numbered = false});
  } catch (const std::bad_alloc&) {  // the bound claims end by their lease
  }
}

Status ReplicatedGroup::change(Change what, std::uint64_t id, const std::string& address) {
  switch (what) {
    case Change::add:
      return replica_.add(id, address);
    case Change::promote:
      return replica_.promote(id);
    case Change::demote:
      return replica_.demote(id);
    case Change::remove:
      return replica_.remove(id);
    case Change::transfer:
      return replica_.transfer(id);
    case Change::upgrade:
      return replica_.upgrade();
  }
  return Error{ErrorCode::bad_option, {}};
}

}  // namespace semel::net
