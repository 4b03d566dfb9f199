// Three nodes of a group, two in this process and one in another that is killed while it leads. A
// claim of one node is a duplicate at the next, by the calls of C++ and by Redis' commands.
#include <arpa/inet.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <semel/claims.hpp>
#include <semel/group_node.hpp>
#include <semel/version.hpp>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

namespace {

constexpr std::uint64_t killed = 3;
constexpr int tries = 20'000;  // of a millisecond

using Addresses = std::map<std::uint64_t, std::string>;

/// Addresses of ports that were free a moment ago.
Addresses free_addresses() {
  Addresses addresses;
  int held[3];
  for (int& each : held) {
    each = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
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

std::unique_ptr<semel::GroupNode> open(std::uint64_t id, const std::string& path,
                                       const Addresses& addresses) {
  semel::ReplicationOptions options;
  options.cluster_id = 7;
  options.node_id = id;
  options.directory = path + "-" + std::to_string(id);
  options.peers = addresses;
  options.election = semel::Millis{300};
  options.patience = semel::Millis{20'000};
  const semel::Status founded = semel::GroupNode::found(options);
  if (!founded) std::puts(founded.error().message().c_str());
  auto opened = semel::GroupNode::open(options);
  if (!opened) std::puts(opened.error().message().c_str());
  return opened ? *std::move(opened) : nullptr;
}

/// The other process, as which this program runs once more. It ends when it is killed.
pid_t begin_other(const char* program, const std::string& path, const Addresses& addresses) {
  std::string words[] = {program, path, addresses.at(1), addresses.at(2), addresses.at(3)};
  char* arguments[6] = {};
  for (int i = 0; i < 5; ++i) arguments[i] = words[i].data();
  pid_t child = 0;
  return posix_spawn(&child, program, nullptr, nullptr, arguments, environ) == 0 ? child : 0;
}

template <class Is>
bool comes_true(Is&& is) {
  for (int i = 0; i < tries; ++i) {
    if (is()) return true;
    poll(nullptr, 0, 1);
  }
  return false;
}

/// The lead goes to the one that is to be killed.
bool let_other_lead(semel::GroupNode& first, semel::GroupNode& second) {
  return comes_true([&] {
    for (semel::GroupNode* const each : {&first, &second}) {
      const semel::ReplicationStatus status = each->group().status();
      if (status.leader == killed) return true;
      if (status.leads) static_cast<void>(each->group().transfer(killed));
    }
    return false;
  });
}

std::string answer_of(const semel::Reply& reply) {
  return reply.items.size() < 2 ? to_text(reply) : reply.items[1].text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5) {
    const auto node = open(killed, argv[1], {{1, argv[2]}, {2, argv[3]}, {3, argv[4]}});
    return node == nullptr ? 1 : pause();
  }
  if (argc != 2) return std::puts("usage: consumer DIR"), 2;
  const Addresses addresses = free_addresses();
  const pid_t other = begin_other(argv[0], argv[1], addresses);
  const auto first = open(1, argv[1], addresses);
  const auto second = open(2, argv[1], addresses);
  if (other == 0 || first == nullptr || second == nullptr) return 1;
  bool right = let_other_lead(*first, *second);

  auto orders = first->engine().claims("orders", semel::Policy{}).value();
  const semel::ClaimOutcome work = orders.claim({.key = "4711"});
  const std::string early = answer_of(second->redis().call({"SEMEL.CLAIM", "orders", "4711"}));
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  const auto done = orders.complete({.key = "4711", .epoch = work.epoch, .payload = "paid"});
  const std::string late = answer_of(second->redis().call({"SEMEL.CLAIM", "orders", "4711"}));
  const std::string next = answer_of(first->redis().call({"SEMEL.CLAIM", "orders", "4712"}));
  right = right && work.answer == semel::ClaimAnswer::granted && early == "in_flight";
  right = right && done.answer == semel::OwnerAnswer::ok && late == "replay" && next == "granted";
  std::printf("semel %s: %s, %s; without the leader: %s, %s\n", semel::version,
              work.answer == semel::ClaimAnswer::granted ? "granted" : "refused", early.c_str(),
              late.c_str(), next.c_str());
  return right ? 0 : 1;
}
