// CLUSTER, READONLY and READWRITE: the commands that clients of a Redis Cluster send, answered for
// a group. All slots belong to the leader, and every other node is its replica.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "net/cluster/group.hpp"
#include "net/cluster/group_round.hpp"
#include "net/cluster/key_slot.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"

namespace semel::net {

namespace {

/// 40 hex digits, as Redis' have.
std::string cluster_node_id(std::uint64_t cluster_id, std::uint64_t node_id) {
  char text[48];
  std::snprintf(text, sizeof text, "%016llx%08x%016llx",
                static_cast<unsigned long long>(cluster_id), 0U,
                static_cast<unsigned long long>(node_id));
  return text;
}

}  // namespace

std::pair<std::string, std::string> host_and_port(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {};
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return {host, address.substr(colon + 1)};
}

namespace {

std::int64_t number_of(const std::string& port) {
  return std::strtoll(port.c_str(), nullptr, 10);
}

/// The members, the leader first. Null: no leader is known, or there is no group; the error is
/// written.
bool in_order(Call& call, GroupView& view) {
  if (call.services.group == nullptr) {
    call.fail("ERR This instance has cluster support disabled");
    return false;
  }
  view = call.services.group->view();
  std::stable_partition(view.members.begin(), view.members.end(),
                        [&](const GroupMember& each) { return each.id == view.leader; });
  return true;
}

bool is_alive(const GroupView& view, const GroupMember& member) {
  return member.id == view.node_id || member.is_connected;
}

void write_node(Call& call, const GroupView& view, const GroupMember& member) {
  const auto [host, port] = host_and_port(member.client_address);
  call.reply.array(3);
  call.reply.bulk(host);
  call.reply.integer(number_of(port));
  call.reply.bulk(cluster_node_id(view.cluster_id, member.id));
}

}  // namespace

namespace handlers {

void cluster_slots(Call& call) {
  GroupView view;
  if (!in_order(call, view)) return;
  // Clients accept an empty array: they forget the nodes that they know, or fail with an error of
  // their own. After this error they retry.
  if (view.leader == 0) return call.fail("CLUSTERDOWN no leader is known");
  // As in a Redis Cluster: clients may read from any replica listed here.
  std::erase_if(view.members, [&](const GroupMember& each) {
    return each.id != view.leader && !is_alive(view, each);
  });
  call.reply.array(1);
  call.reply.array(2 + view.members.size());
  call.reply.integer(0);
  call.reply.integer(slot_count - 1);
  for (const GroupMember& each : view.members) write_node(call, view, each);
}

void cluster_shards(Call& call) {
  GroupView view;
  if (!in_order(call, view)) return;
  call.reply.array(1);
  call.reply.map(2);
  call.reply.bulk("slots");
  call.reply.array(2);
  call.reply.integer(0);
  call.reply.integer(slot_count - 1);
  call.reply.bulk("nodes");
  call.reply.array(view.members.size());
  for (const GroupMember& each : view.members) {
    const auto [host, port] = host_and_port(each.client_address);
    call.reply.map(7);
    call.reply.bulk("id"), call.reply.bulk(cluster_node_id(view.cluster_id, each.id));
    call.reply.bulk("port"), call.reply.integer(number_of(port));
    call.reply.bulk("ip"), call.reply.bulk(host);
    call.reply.bulk("endpoint"), call.reply.bulk(host);
    call.reply.bulk("role");
    call.reply.bulk(each.id == view.leader ? "master" : "replica");
    call.reply.bulk("replication-offset");
    call.reply.integer(static_cast<std::int64_t>(view.applied));
    call.reply.bulk("health"), call.reply.bulk(is_alive(view, each) ? "online" : "fail");
  }
}

void cluster_nodes(Call& call) {
  GroupView view;
  if (!in_order(call, view)) return;
  std::string text;
  const std::string leader = cluster_node_id(view.cluster_id, view.leader);
  for (const GroupMember& each : view.members) {
    const auto [host, port] = host_and_port(each.client_address);
    const bool leads = each.id == view.leader;
    text += cluster_node_id(view.cluster_id, each.id) + " " + host + ":" + port + "@0 " +
            (each.id == view.node_id ? "myself," : "") + (leads ? "master" : "slave") +
            (is_alive(view, each) ? " " : ",fail ") + (leads || view.leader == 0 ? "-" : leader) +
            " 0 0 " + std::to_string(view.term) +
            (is_alive(view, each) ? " connected" : " disconnected");
    if (leads) text += " 0-" + std::to_string(slot_count - 1);
    text += "\n";
  }
  call.reply.verbatim(text);
}

void cluster_info(Call& call) {
  GroupView view;
  if (!in_order(call, view)) return;
  const std::string slots = std::to_string(slot_count);
  const std::string nodes = std::to_string(view.members.size());
  const std::string term = std::to_string(view.term);
  call.reply.verbatim(
      std::string{"cluster_enabled:1\r\ncluster_state:"} + (view.leader != 0 ? "ok" : "fail") +
      "\r\ncluster_slots_assigned:" + slots +
      "\r\ncluster_slots_ok:" + (view.leader != 0 ? slots : "0") +
      "\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:" + (view.leader != 0 ? "0" : slots) +
      "\r\ncluster_known_nodes:" + nodes + "\r\ncluster_size:1\r\ncluster_current_epoch:" + term +
      "\r\ncluster_my_epoch:" + term + "\r\n");
}

void cluster_myid(Call& call) {
  GroupView view;
  if (in_order(call, view)) call.reply.bulk(cluster_node_id(view.cluster_id, view.node_id));
}

void cluster_keyslot(Call& call) {
  GroupView view;
  if (in_order(call, view)) call.reply.integer(slot_of(call.args[2]));
}

void readonly(Call& call) {
  GroupView view;
  if (!in_order(call, view)) return;
  call.client.reads_here = true;
  call.reply.ok();
}

void readwrite(Call& call) {
  GroupView view;
  if (!in_order(call, view)) return;
  call.client.reads_here = false;
  call.reply.ok();
}

namespace {

void change(Call& call, Group::Change what, std::string_view id_word, std::string_view address) {
  if (call.services.group == nullptr) return call.fail("ERR this node belongs to no group");
  std::int64_t id = 0;
  if (!id_word.empty()) {
    const auto number = integer_of(id_word);
    if (!number || *number < 1) return call.fail("ERR a node's number is from 1");
    id = *number;
  }
  const Status done =
      call.services.group->change(what, static_cast<std::uint64_t>(id), std::string{address});
  if (done) return call.reply.ok();
  const ErrorCode code = done.error().code;
  if (code == ErrorCode::not_leader) {
    const std::string moved = moved_error(*call.services.group, 0);
    return call.fail(moved.empty() ? group_error(*call.services.group, code, 0) : moved);
  }
  call.fail((code == ErrorCode::refused ? "TRYAGAIN " : "ERR ") + done.error().detail);
}

}  // namespace

void semel_group_add(Call& call) {
  change(call, Group::Change::add, call.args[2], call.args[3]);
}
void semel_group_promote(Call& call) {
  change(call, Group::Change::promote, call.args[2], {});
}
void semel_group_demote(Call& call) {
  change(call, Group::Change::demote, call.args[2], {});
}
void semel_group_remove(Call& call) {
  change(call, Group::Change::remove, call.args[2], {});
}
void semel_group_transfer(Call& call) {
  change(call, Group::Change::transfer, call.args.size() > 2 ? call.args[2] : std::string_view{},
         {});
}

void semel_group_upgrade(Call& call) {
  change(call, Group::Change::upgrade, {}, {});
}

void semel_group_status(Call& call) {
  if (call.services.group == nullptr) return call.fail("ERR this node belongs to no group");
  const GroupView view = call.services.group->view();
  const auto number = [&](std::string_view name, std::uint64_t value) {
    call.reply.bulk(name);
    call.reply.integer(static_cast<std::int64_t>(value));
  };
  call.reply.map(11);
  number("node", view.node_id);
  call.reply.bulk("role");
  call.reply.bulk(view.leads ? "leader" : "follower");
  number("leader", view.leader);
  number("term", view.term);
  number("commit", view.commit);
  number("applied", view.applied);
  number("elections_won", view.elections);
  number("changing", view.is_changing ? 1 : 0);
  number("feature_level", view.feature_level);
  number("feature_level_newest", view.feature_level_newest);
  call.reply.bulk("members");
  call.reply.array(view.members.size());
  for (const GroupMember& each : view.members) {
    call.reply.map(7);
    number("id", each.id);
    call.reply.bulk("address");
    call.reply.bulk(each.address);
    call.reply.bulk("client");
    call.reply.bulk(each.client_address);
    call.reply.bulk("role");
    call.reply.bulk(each.is_voter ? "voter" : "standby");
    number("match", each.match);
    number("feature_level", each.feature_level);
    number("connected", each.is_connected || each.id == view.node_id ? 1 : 0);
  }
}

}  // namespace handlers
}  // namespace semel::net
