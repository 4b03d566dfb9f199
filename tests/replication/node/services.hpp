// Three services in one process that link Semel and form a group, each with a directory of its own.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "semel/replication.hpp"

namespace semel::tests {

class Services {
 public:
  explicit Services(unsigned count, const Options& engine = {}, Millis calls_wait = Millis{20'000});
  ~Services();
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  void open(std::uint64_t id);
  void close(std::uint64_t id) { open_.at(id).reset(); }
  [[nodiscard]] Replication& at(std::uint64_t id) { return *open_.at(id); }
  [[nodiscard]] Engine& engine(std::uint64_t id) { return at(id).engine(); }
  /// Waits for it. 0: none in time.
  [[nodiscard]] std::uint64_t leader();
  /// One that does not lead.
  [[nodiscard]] std::uint64_t follower();
  [[nodiscard]] ReplicationOptions options(std::uint64_t id) const;
  [[nodiscard]] std::string said() const;

 private:
  const Options engine_;
  const Millis patience_;
  std::string path_;
  std::map<std::uint64_t, std::string> peers_;
  std::map<std::uint64_t, std::unique_ptr<Replication>> open_;
  mutable std::mutex mutex_;
  mutable std::vector<std::string> said_;
};

}  // namespace semel::tests
