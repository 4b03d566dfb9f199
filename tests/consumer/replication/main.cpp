// Three services in one process: what one of them has done, the others replay, also when one of
// them has ended.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
#include <semel/claims.hpp>
#include <semel/replication.hpp>
#include <semel/version.hpp>

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

/// Addresses of ports that were free a moment ago.
std::map<std::uint64_t, std::string> free_addresses() {
  std::map<std::uint64_t, std::string> addresses;
  std::vector<int> held;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    held.push_back(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    auto* const any = reinterpret_cast<sockaddr*>(&name);
    if (bind(held.back(), any, size) != 0 || getsockname(held.back(), any, &size) != 0) return {};
    addresses[id] = "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  }
  for (const int each : held) close(each);
  return addresses;
}

std::unique_ptr<semel::Replication> open(const semel::ReplicationOptions& options) {
  const semel::Status founded = semel::Replication::found(options);
  if (!founded) std::puts(founded.error().message().c_str());
  auto opened = semel::Replication::open(options);
  if (!opened) std::puts(opened.error().message().c_str());
  return opened ? *std::move(opened) : nullptr;
}

/// What the service answers for the order: "worked" for the first, the result for a repeat.
std::string ask(semel::Replication& service, const std::string& order) {
  auto orders = service.engine().claims("orders", semel::Policy{});
  if (!orders) return orders.error().message();
  const semel::ClaimOutcome claim = orders->claim({.key = order});
  if (claim.answer == semel::ClaimAnswer::replay) return claim.result;
  if (claim.answer != semel::ClaimAnswer::granted) return "refused";
  const auto done = orders->complete({.key = order, .epoch = claim.epoch, .payload = "paid"});
  return done.answer == semel::OwnerAnswer::ok ? "worked" : "lost";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::puts("usage: consumer DIR"), 2;
  semel::ReplicationOptions options;
  options.cluster_id = 7;
  options.peers = free_addresses();
  options.election = semel::Millis{300};
  options.patience = semel::Millis{20'000};
  std::map<std::uint64_t, std::unique_ptr<semel::Replication>> services;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    options.node_id = id;
    options.directory = std::string{argv[1]} + "-" + std::to_string(id);
    services[id] = open(options);
    if (services[id] == nullptr) return 1;
  }
  const std::string first = ask(*services[1], "order-4711");
  const std::string second = ask(*services[2], "order-4711");
  const std::string third = ask(*services[3], "order-4711");
  services[1].reset();
  const std::string later = ask(*services[2], "order-4712");
  const std::string repeat = ask(*services[3], "order-4712");
  std::printf("semel %s: %s, %s, %s; without the first: %s, %s\n", semel::version, first.c_str(),
              second.c_str(), third.c_str(), later.c_str(), repeat.c_str());
  const bool all = first == "worked" && second == "paid" && third == "paid";
  return all && later == "worked" && repeat == "paid" ? 0 : 1;
}
