// Certificate and key of a node, read again on request or when their files change.
#pragma once

#include <array>
#include <filesystem>
#include <string>

#include "base/mutex.hpp"
#include "net/admin/log.hpp"
#include "net/server/server.hpp"
#include "net/settings/settings.hpp"

namespace semel::tool {

/// Safe from any thread.
class NodeCertificates {
 public:
  /// All of them must outlive this. `server` has just read the files.
  NodeCertificates(const net::Settings& settings, net::Log& log, net::Server& server);

  /// False: they cannot be used. The reason is logged and those in use stay.
  [[nodiscard]] bool reload();
  /// Reloads if a file has changed and tls-reload is on. To be called about once a second.
  void tick();

 private:
  struct Stamp {
    std::filesystem::file_time_type changed{};
    std::uintmax_t bytes = 0;
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::array<Stamp, 4>;
  [[nodiscard]] Stamps look() const;
  [[nodiscard]] bool reload_locked() SEMEL_REQUIRES(mutex_);

  const net::Settings& settings_;
  net::Log& log_;
  net::Server& server_;
  base::Mutex mutex_;
  Stamps seen_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::tool
