#include "tests/replication/node/services.hpp"

#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/stopwatch.hpp"
#include "tests/replication/node/group.hpp"
#include "tests/support/socket.hpp"

namespace semel::tests {

Services::Services(unsigned count, const Options& engine, Millis calls_wait)
    : engine_(engine), patience_(calls_wait) {
  std::string pattern = (std::filesystem::temp_directory_path() / "semel_group_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
  for (std::uint64_t id = 1; id <= count; ++id) {
    peers_[id] = "127.0.0.1:" + std::to_string(free_port());
  }
  for (std::uint64_t id = 1; id <= count; ++id) {
    if (const Status founded = Replication::found(options(id)); !founded) {
      std::fprintf(stderr, "%s\n", founded.error().message().c_str());
      std::abort();
    }
    open(id);
  }
}

Services::~Services() {
  for (auto& [id, service] : open_) service.reset();
  std::filesystem::remove_all(path_);
}

ReplicationOptions Services::options(std::uint64_t id) const {
  ReplicationOptions options;
  options.cluster_id = 78;
  options.node_id = id;
  options.directory = path_ + "/" + std::to_string(id);
  options.peers = peers_;
  options.election = Millis{150};
  options.heartbeat = Millis{30};
  options.patience = patience_;
  options.engine = engine_;
  options.report = [this, id](const std::string& what) {
    const std::lock_guard lock{mutex_};
    said_.push_back(std::to_string(id) + ": " + what);
  };
  return options;
}

void Services::open(std::uint64_t id) {
  auto made = Replication::open(options(id));
  if (!made.ok()) {
    std::fprintf(stderr, "service %llu: %s\n", static_cast<unsigned long long>(id),
                 made.error().message().c_str());
    std::abort();
  }
  open_[id] = *std::move(made);
}

std::uint64_t Services::leader() {
  const base::Stopwatch waited;
  while (waited.seconds() < static_cast<double>(patience.count())) {
    for (const auto& [id, service] : open_) {
      if (service != nullptr && service->status().leads) return id;
    }
    poll(nullptr, 0, 1);
  }
  return 0;
}

std::uint64_t Services::follower() {
  const std::uint64_t leads = leader();
  for (const auto& [id, service] : open_) {
    if (service != nullptr && id != leads) return id;
  }
  return 0;
}

std::string Services::said() const {
  const std::lock_guard lock{mutex_};
  std::string all;
  for (const std::string& each : said_) all += each + "\n";
  return all;
}

}  // namespace semel::tests
