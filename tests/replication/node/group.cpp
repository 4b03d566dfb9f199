#include "tests/replication/node/group.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <utility>

#include "base/assert.hpp"
#include "base/stopwatch.hpp"
#include "replication/node/memory_gate.hpp"
#include "semel/store.hpp"
#include "tests/support/socket.hpp"

namespace semel::tests {

using namespace replication;

namespace {

template <class Is>
bool wait_until(Is&& is) {
  const base::Stopwatch waited;
  while (!is()) {
    if (waited.seconds() > static_cast<double>(patience.count())) return false;
    poll(nullptr, 0, 1);  // the threads of three nodes need the processors
  }
  return true;
}

}  // namespace

std::uint16_t free_port() {
  // The kernel may offer one again that was not used yet.
  static std::set<std::uint16_t> given;
  for (;;) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(socket, reinterpret_cast<sockaddr*>(&address), size) != 0) std::abort();
    getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    close(socket);
    const std::uint16_t port = ntohs(address.sin_port);
    if (given.insert(port).second) return port;
  }
}

Group::Group(unsigned nodes, std::uint64_t snapshot_every, RunnerOf runner,
             replication::FeatureLevel level, bool forwards)
    : snapshot_every_(snapshot_every), runner_(std::move(runner)), forwards_(forwards) {
  std::string pattern = (std::filesystem::temp_directory_path() / "semel_group_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
  for (NodeId id = 1; id <= nodes + 1; ++id) {
    addresses_[id] = "127.0.0.1:" + std::to_string(free_port());
    if (id <= nodes) founders_[id] = addresses_[id];
    nodes_[id] = nullptr;
    levels_[id] = level;
  }
  for (NodeId id = 1; id <= nodes; ++id) open(id);
}

Group::~Group() {
  for (auto& [id, node] : nodes_) node.reset();
  std::filesystem::remove_all(path_);
}

std::string Group::address(NodeId id) const {
  return addresses_.at(id);
}

std::string Group::said() const {
  const std::lock_guard lock{mutex_};
  std::string all;
  for (const std::string& each : said_) all += each + "\n";
  return all;
}

void Group::open(NodeId id, bool founds, const Clock* clock) {
  SEMEL_ASSERT(nodes_.at(id) == nullptr);
  ReplicaOptions options;
  options.cluster_id = 77;
  options.clock = clock;
  options.node_id = id;
  options.directory = directory(id);
  options.listen = addresses_.at(id);
  if (founds && founders_.contains(id)) {
    options.founders = founders_;
    options.founds = !std::filesystem::exists(options.directory);
  }
  options.level = levels_.at(id);
  options.forwards = forwards_;
  options.election = Millis{150};
  options.heartbeat = Millis{30};
  options.segment_bytes = std::size_t{1} << 20;
  options.snapshot_every_bytes = snapshot_every_;
  options.trailing_bytes = snapshot_every_ / 4;
  options.engine.memory_bytes = memory_reserve + (std::size_t{64} << 20);
  options.report = [this, id](const ReplicaEvent& event) {
    const std::lock_guard lock{mutex_};
    said_.push_back(std::to_string(id) + ": " + event.text);
  };
  auto made = Replica::open(options);
  if (!made.ok()) {
    std::fprintf(stderr, "node %llu: %s\n", static_cast<unsigned long long>(id),
                 made.error().detail.c_str());
    std::abort();
  }
  nodes_[id] = *std::move(made);
  const Status started = nodes_[id]->start(runner_ ? runner_(id, nodes_[id]->engine()) : nullptr);
  if (!started) {
    std::fprintf(stderr, "node %llu: %s\n", static_cast<unsigned long long>(id),
                 started.error().detail.c_str());
    std::abort();
  }
}

void Group::close(NodeId id) {
  nodes_.at(id).reset();
}

bool Group::reopen_where_needed() {
  bool any = false;
  for (auto& [id, node] : nodes_) {
    if (node == nullptr || !node->status().needs_reopen) continue;
    close(id);
    open(id, false);
    any = true;
  }
  return any;
}

NodeId Group::wait_leader() {
  NodeId found = 0;
  const bool is_there = wait_until([&] {
    reopen_where_needed();
    for (auto& [id, node] : nodes_) {
      if (node != nullptr && node->is_leader() && node->read()) found = id;
    }
    return found != 0;
  });
  return is_there ? found : 0;
}

bool Group::wait_equal(NodeId id) {
  const std::string mark = std::to_string(++marks_);
  StoreCommand command;
  command.op.verb = Verb::set;
  command.op.key = "mark";
  command.op.value = mark;
  return wait_until([&] {
           const NodeId leader = wait_leader();
           return leader != 0 && node(leader).propose({command}).ok();
         }) &&
         wait_until([&] {
           reopen_where_needed();
           const auto found = node(id).engine().store().get("mark");
           return found.ok() && *found == mark;
         });
}

bool Group::wait_for(const std::function<bool()>& is) {
  return wait_until(is);
}

}  // namespace semel::tests
