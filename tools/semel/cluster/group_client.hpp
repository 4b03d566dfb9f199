// A connection to a node, for operators: one request after the other, each within a bound.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "semel/local_redis.hpp"
#include "semel/result.hpp"

namespace semel::tool {

struct ClientOptions {
  std::string user{};           ///< empty: the node's default user
  std::string password_file{};  ///< its first line; empty: no password
  bool uses_tls = false;
  std::string authorities{};  ///< file in PEM; empty: the system's
  std::string certificate{};  ///< of this client, PEM; empty: none
  std::string key{};
  std::string tls_name{};  ///< that the nodes' certificates have; empty: the host of the address
};

/// Adds the flags that fill it. `client` must outlive the parse.
void add_login_options(CLI::App& app, ClientOptions& client);

using Deadline = std::chrono::steady_clock::time_point;

class GroupClient {
 public:
  /// Reads the files. Errors: bad_option, storage_failed, with a detail that is the whole text.
  [[nodiscard]] static Result<std::unique_ptr<GroupClient>> open(const ClientOptions& options);
  ~GroupClient();
  GroupClient(const GroupClient&) = delete;
  GroupClient& operator=(const GroupClient&) = delete;

  /// The reply of the node at `address`, connecting if necessary; an error reply is a reply.
  /// Errors: bad_option (the address); storage_failed (the node cannot be reached, or refuses the
  /// login: nothing was sent); outcome_unknown (the connection ended before the answer).
  [[nodiscard]] Result<Reply> ask(const std::string& address, const std::vector<std::string>& words,
                                  Deadline until);
  /// The same for several requests, which are sent before the first reply is read. The replies
  /// together may have `bytes_max` bytes. Error: it is not known which of them were done.
  [[nodiscard]] Result<std::vector<Reply>> ask_all(
      const std::string& address, std::span<const std::vector<std::string>> requests,
      std::size_t bytes_max, Deadline until);

 private:
  class Inside;
  explicit GroupClient(std::unique_ptr<Inside> inside);
  const std::unique_ptr<Inside> inside_;
};

}  // namespace semel::tool
