// Certificate and key of a node, read again on request or when their files change.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/mutex.hpp"
#include "net/admin/log.hpp"
#include "net/group/node_group.hpp"
#include "net/server/server.hpp"
#include "net/settings/settings.hpp"

namespace semel::tool {

/// Safe from any thread.
class NodeCertificates {
 public:
  /// One set of files and its user.
  struct Use {
    std::string_view name;              ///< of the events: NAME_loaded and NAME_not_loaded
    std::array<net::Setting, 4> files;  ///< the certificate first; one may be there twice
    std::function<bool()> is_on;        ///< they are used
    std::function<Status()> read;       ///< takes the files; an error changes nothing
  };
  /// All must outlive this. The files have just been read.
  NodeCertificates(const net::Settings& settings, net::Log& log, Use use);

  /// False: they are not usable. The reason is logged and those in use stay.
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
  const Use use_;
  base::Mutex mutex_;
  Stamps seen_ SEMEL_GUARDED_BY(mutex_);
};

/// For the client ports. Both arguments must outlive it.
[[nodiscard]] NodeCertificates::Use client_certificates(const net::Settings& settings,
                                                        net::Server& server);
/// For the connections between the nodes of a group, which must outlive it.
[[nodiscard]] NodeCertificates::Use group_certificates(net::NodeGroup& group);

}  // namespace semel::tool
