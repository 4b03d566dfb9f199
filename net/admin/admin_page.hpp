// What the admin port asks: for the metrics, for the state, and for pages that are not its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "semel/result.hpp"

namespace semel::net {

namespace admin_limits {

inline constexpr std::size_t header_bytes_max = 8 * 1024;
/// Connections open at a time. One that has no whole request, or does not read its answer, gives
/// way to a new one; see base/giving_way.hpp.
inline constexpr std::size_t connections_max = 16;
inline constexpr std::size_t addresses_max = 16;
inline constexpr std::size_t hosts_max = 16;
inline constexpr std::size_t host_bytes_max = 253;
/// Of a POST to AdminAnswers::pages: a key of 64 KiB, each byte of it as an escape of five.
inline constexpr std::size_t body_bytes_max = 384 * 1024;

}  // namespace admin_limits

/// One request. Headers that came more than once, and so may mean different things to different
/// readers, are in `repeated_header`.
struct AdminRequest {
  bool is_post = false;  ///< else GET or HEAD
  std::string path{};    ///< the target without its query
  std::string query{};   ///< without '?'
  std::string peer{};    ///< "127.0.0.1:4711", "[::1]:4711"
  bool peer_is_local = false;
  std::uint16_t local_port = 0;  ///< of this connection
  std::string host{};
  std::string origin{};
  std::string cookie{};
  std::string content_type{};
  std::string csrf_token{};  ///< X-Semel-Csrf
  std::string fetch_site{};  ///< Sec-Fetch-Site
  std::string_view repeated_header{};
  std::string body{};
};

struct AdminResponse {
  unsigned status = 200;
  std::string content_type{};
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
};

/// To be called once, at once or later, on the thread of the server. Without effect when the client
/// is gone.
using AdminRespond = std::function<void(AdminResponse)>;

/// Called on the thread of the server, one at a time; other requests wait meanwhile.
struct AdminAnswers {
  std::function<std::string()> metrics{};
  /// Whether the node is ready. The detail of an error is the text of the response.
  std::function<Status()> ready{};
  /// Requests for admin_pages and below it. Empty: there are none, and such a path is 404.
  std::function<void(AdminRequest, AdminRespond)> pages{};
  std::function<void()> tick{};  ///< about once a second; may be empty
};

inline constexpr std::string_view admin_pages = "/console";

/// Runs functions on the thread of an AdminServer; may outlive it.
class AdminThread {
 public:
  using Post = std::function<void(std::function<void()>)>;

  explicit AdminThread(Post post) : post_(std::move(post)) {}

  /// From any thread; does not wait for `work`. Without effect after the server's end.
  void post(std::function<void()> work) {
    const base::MutexLock lock{mutex_};
    if (post_) post_(std::move(work));
  }
  /// The server ends.
  void close() {
    const base::MutexLock lock{mutex_};
    post_ = nullptr;
  }

 private:
  base::Mutex mutex_;
  Post post_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::net
