// A connection of the node behind a socket of the server.
//
// Replies that depend on the disk (durability synced) are held until every change that the engine
// had made or shown by then is on the disk; the thread serves other connections in the meantime. If
// the sync fails, each of them becomes an error: the requests were carried out, but may not
// survive.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/mutex.hpp"
#include "net/node/connection.hpp"
#include "net/server/session.hpp"
#include "semel/journal.hpp"

namespace semel::net {

/// Whether `info` is a connection of another machine without a verified certificate: under
/// protected-mode it needs a password. `asks_for_certificates`: the server accepts no TLS client
/// without one. Also true for this machine, if it connects by an address that others reach.
[[nodiscard]] bool is_remote(const SessionInfo& info, bool asks_for_certificates);

/// The session of a new connection: a NodeSession or, if protected-mode refuses the connection
/// because the user default needs no password, a session that sends the refusal and closes.
/// Arguments as of NodeSession.
[[nodiscard]] std::unique_ptr<Session> make_node_session(Node& node, Batch& batch, Durability level,
                                                         const SessionInfo& info,
                                                         std::shared_ptr<SessionHost> host);

class NodeSession final : public Session, private ClientHost {
 public:
  /// `node` and `batch` must live as long as the server; `level`: the durability that a reply waits
  /// for.
  NodeSession(Node& node, Batch& batch, Durability level, const SessionInfo& info,
              std::shared_ptr<SessionHost> host);
  ~NodeSession() override;

  void receive(std::string_view bytes, std::string& out) override;
  void collect(std::string& out) override;
  [[nodiscard]] Splices take_large() override;
  void hold_output(std::size_t own, std::size_t large, std::size_t parts) override;
  [[nodiscard]] bool is_killed() const noexcept override { return connection_.is_killed(); }
  [[nodiscard]] bool accepts_input() const noexcept override {
    return !node_.client_memory->is_over();
  }
  [[nodiscard]] bool memory_is_tight() const noexcept override {
    return node_.client_memory->is_tight();
  }
  [[nodiscard]] bool closes() const noexcept override;
  [[nodiscard]] bool waits() const noexcept override;
  [[nodiscard]] bool more() const noexcept override;
  [[nodiscard]] bool works() const noexcept override { return connection_.works(); }
  [[nodiscard]] SessionInput input() const noexcept override;
  [[nodiscard]] OutputClass output_class() const noexcept override;
  [[nodiscard]] bool is_unauthenticated() const noexcept override {
    return connection_.client().user.needs_auth();
  }
  void end() noexcept override;

 private:
  /// The result of a sync, which may arrive after the end of the session.
  struct Sync {
    base::Mutex mutex;
    bool answered SEMEL_GUARDED_BY(mutex) = false;
    bool failed SEMEL_GUARDED_BY(mutex) = false;
    std::shared_ptr<SessionHost> host;
  };

  void wake() noexcept override { host_->wake(); }
  [[nodiscard]] bool serves_others() const noexcept override { return true; }
  /// Appends to `out`, and its large values to large_.
  void pass_on(std::string& out, std::string_view bytes, Splices&& large);
  /// Sends `replies` on, or holds them.
  void deliver(std::string&& replies, std::uint64_t requests, std::string& out);

  Node& node_;
  const Durability level_;
  const std::shared_ptr<SessionHost> host_;
  Connection connection_;
  std::shared_ptr<Sync> sync_;  // null: nothing is held
  std::string held_;
  Splices held_large_;  // the large values of held_
  Splices large_;       // the large values passed on
  std::uint64_t held_requests_ = 0;
};

}  // namespace semel::net
