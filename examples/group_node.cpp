// Three nodes of a group in one program: claims by the calls of C++ and by Redis' commands are the
// same claims, at each of the three, and the end of the leader loses none.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
#include <semel/claims.hpp>
#include <semel/group_node.hpp>
#include <semel/store.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace {

/// Addresses of this machine that were free a moment ago. Services have theirs in a configuration.
std::map<std::uint64_t, std::string> free_addresses() {
  std::map<std::uint64_t, std::string> addresses;
  int held[3];
  for (int& each : held) {
    each = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    auto* const any = reinterpret_cast<sockaddr*>(&name);
    if (bind(each, any, size) != 0 || getsockname(each, any, &size) != 0) return {};
    addresses[addresses.size() + 1] = "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  }
  for (const int each : held) close(each);
  return addresses;
}

/// As each of the services would do it.
std::unique_ptr<semel::GroupNode> begin(std::uint64_t id, const std::string& directory,
                                        const std::map<std::uint64_t, std::string>& addresses) {
  semel::ReplicationOptions options{.cluster_id = 0xC0FFEE, .node_id = id, .directory = directory};
  options.peers = addresses;
  options.report = [id](const std::string& what) {
    std::fprintf(stderr, "node %u: %s\n", static_cast<unsigned>(id), what.c_str());
  };
  const semel::Status founded = semel::GroupNode::found(options);  // before its first start
  auto opened = semel::GroupNode::open(options);
  if (!founded || !opened) {
    std::puts((founded ? opened.error() : founded.error()).message().c_str());
    return nullptr;
  }
  return *std::move(opened);
}

/// The claim is the same by whatever face, at whichever node.
std::string one_claim(semel::GroupNode& node, semel::GroupNode& other) {
  auto orders = node.engine().claims("orders", semel::Policy{}).value();
  const semel::ClaimOutcome work = orders.claim({.key = "1001"});
  const auto elsewhere = other.redis().call({"SEMEL.CLAIM", "orders", "1001"});  // in_flight
  static_cast<void>(orders.complete({.key = "1001", .epoch = work.epoch, .payload = "paid"}));
  const auto repeat = other.redis().call({"SEMEL.CLAIM", "orders", "1001"});  // replay, paid
  return elsewhere.items[1].text + " " + repeat.items[1].text;
}

/// A service's check of its health.
bool is_ready(semel::GroupNode& node) {
  const semel::Status ready = node.group().ready();
  if (!ready) std::fprintf(stderr, "not ready: %s\n", ready.error().detail.c_str());
  const semel::ReplicationStatus status = node.group().status();
  std::fprintf(stderr, "leader %u, %u entries behind\n", static_cast<unsigned>(status.leader),
               static_cast<unsigned>(status.lag()));
  return ready.ok();
}

bool is(const std::string& actual, const std::string& expected) {
  std::printf("%s\n", actual.c_str());
  return actual == expected;
}

}  // namespace

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "group_node_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const auto addresses = free_addresses();
  std::map<std::uint64_t, std::unique_ptr<semel::GroupNode>> nodes;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    nodes[id] = begin(id, folder + "/" + std::to_string(id), addresses);
    if (nodes[id] == nullptr) return 1;
  }
  bool right = is(one_claim(*nodes[1], *nodes[2]), "in_flight replay");
  const std::uint64_t leader = nodes[1]->group().status().leader;
  nodes.erase(leader);  // it hands the lead over; one that is killed would be missed soon after
  semel::GroupNode& first = *nodes.begin()->second;
  semel::GroupNode& second = *nodes.rbegin()->second;
  const auto again = second.redis().call({"SEMEL.CLAIM", "orders", "1001"});
  right = is(again.items[1].text, "replay") && right;
  right = is(to_text(first.redis().call({"INCR", "shipped"})), "(integer) 1") && right;
  right = is(*second.engine().store().get("shipped").value(), "1") && is_ready(second) && right;
  nodes.clear();
  std::filesystem::remove_all(folder);
  return right ? 0 : 1;
}
