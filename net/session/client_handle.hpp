// A connection as other threads see it, which push messages to it, end its waits, list it or close
// it. A handle may outlive its connection; calls have no effect then.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "base/mutex.hpp"
#include "net/resp/large_bytes.hpp"
#include "net/session/client_wait.hpp"
#include "net/session/pushed_bytes.hpp"

namespace semel::net {

/// The thread that serves a connection: one of a server, or a caller in process.
class ClientHost {
 public:
  virtual ~ClientHost() = default;
  /// From any thread: something is in the handle; call Connection::collect() on the connection's
  /// own thread soon. Must not block and must not call back.
  virtual void wake() noexcept = 0;
  /// Whether it serves others while one of its connections waits, and the connection stays until
  /// Connection::works() has ended: then a script that takes long may yield.
  [[nodiscard]] virtual bool serves_others() const noexcept { return false; }
};

class ClientHandle {
 public:
  struct Origin {
    std::uint64_t id = 0;
    std::string address{};  ///< "127.0.0.1:5000", "/run/semel.sock:0"
    std::string local_address{};
    std::int64_t connected_ms = 0;  ///< on the node's clock
    bool is_unix = false;
    bool is_remote = false;  ///< of another machine, without a certificate that was asked for
    std::string certificate_user{};  ///< named by a client's certificate; empty: none
  };
  /// What CLIENT SETNAME and SETINFO have said.
  struct Names {
    std::string name{};
    std::string library{};
    std::string library_version{};
    std::string user = "default";
  };
  /// What CLIENT LIST shows of the present. One writer, the connection; read by others for people.
  struct Shown {
    std::atomic<std::uint32_t> db{0};
    std::atomic<const std::string_view*> command{nullptr};  ///< its row's name; null: none yet
    std::atomic<std::int64_t> last_ms{0};
    std::atomic<std::int32_t> queued{-1};  ///< in a transaction; -1: there is none
    std::atomic<std::uint32_t> channels{0};
    std::atomic<std::uint32_t> patterns{0};
    std::atomic<std::uint32_t> shard_channels{0};
    std::atomic<std::uint32_t> dialect{2};
    std::atomic<std::uint32_t> watched{0};
    // Bytes that are held for it, by what they are; a reply by reference is `large`.
    std::atomic<std::size_t> input{0};
    std::atomic<std::size_t> input_spare{0};
    std::atomic<std::size_t> arguments{0};
    std::atomic<std::size_t> transaction{0};
    std::atomic<std::size_t> kept{0};  ///< names of channels, keys that are watched
    std::atomic<std::size_t> output{0};
    std::atomic<std::size_t> large{0};
    std::atomic<std::size_t> parts{0};   ///< of output
    std::atomic<std::size_t> pushed{0};  ///< by others, not collected yet
    std::atomic<bool> waits{false};
    std::atomic<bool> monitors{false};
    std::atomic<bool> no_evict{false};
    std::atomic<bool> no_touch{false};
    // CLIENT TRACKING.
    std::atomic<bool> tracks{false};
    std::atomic<bool> broadcasts{false};
    std::atomic<bool> redirect_broken{false};  ///< the connection that it named has gone
    std::atomic<std::int64_t> redirect{-1};    ///< 0: to itself; -1: it does not track
  };

  /// What lies here is counted in `memory`, if there is one.
  ClientHandle(Origin from, ClientHost* host, std::shared_ptr<ClientMemory> memory = {})
      : origin(std::move(from)), host_(host), pushed_(memory), wait_(std::move(memory)) {}
  ClientHandle(const ClientHandle&) = delete;
  ClientHandle& operator=(const ClientHandle&) = delete;

  const Origin origin;
  Shown shown;

  [[nodiscard]] Names names() const {
    const base::MutexLock lock{mutex_};
    return names_;
  }
  template <class Change>
  void change_names(Change&& change) {
    const base::MutexLock lock{mutex_};
    change(names_);
  }

  // --- from any thread ----------------------------------------------------------------------
  /// Adds bytes to the output, between two replies. False: the connection has ended, or has more
  /// than `push_bytes_max` of unsent pushes; then it is closed.
  bool push(std::string_view bytes);
  /// The same; large bytes are held by reference if the connection can send them so.
  bool push(const SharedBytes& bytes);
  /// Ends the wait of the present command with its reply. Without effect if it does not wait for
  /// `wait` any more. `lost` is called, without any lock held, if the connection will never read
  /// it: at once, or by end().
  void reply(std::uint64_t wait, std::string bytes, std::function<void()> lost = {});
  /// Ends the wait of the present command as CLIENT UNBLOCK does: with the reply of its timeout, or
  /// with an error. False: it does not wait.
  bool unblock(bool with_error);
  /// The same with a reply of the caller's.
  bool end_wait(std::string_view reply);
  /// A command held back by a pause goes on.
  void resume();
  /// Closes the connection and discards its unsent output.
  void kill();
  /// Whether it is being closed by kill(), or because too much was pushed.
  [[nodiscard]] bool is_killed() const noexcept {
    return is_killed_.load(std::memory_order_relaxed);  // mo: relaxed: a hint; collect() decides
  }
  /// The rights of its user may have changed.
  void review();

  // --- from the connection's own thread -------------------------------------------------------
  /// A number for the wait that begins now. `timeout_reply` is what unblock() answers.
  [[nodiscard]] std::uint64_t begin_wait(std::string timeout_reply = "$-1\r\n");
  /// The same of a wait that only reply() ends: a script is under way.
  [[nodiscard]] std::uint64_t begin_work();
  /// `abandoned` is called once, without any lock held, if the wait ends by anything but reply().
  /// Nothing is kept if it has ended already.
  void if_abandoned(std::uint64_t wait, std::function<void()> abandoned);
  struct Collected {
    bool replied = false;  ///< the wait of the present command has been answered
    bool resumed = false;
    bool reviewed = false;  ///< review() was called
    bool killed = false;
    std::size_t reply_bytes = 0;  ///< the appended bytes begin with a reply of this size
  };
  /// Takes the reply and then the pushes that other threads have left here. Large bytes go to
  /// `large`, if it takes references.
  Collected collect(std::string& out, LargeReplies& large);
  /// Pushes of this thread go right to `out` and `large`, behind what others have pushed before,
  /// until direct(nullptr, nullptr).
  void direct(std::string* out, LargeReplies* large);
  /// Has the host call Connection::collect() soon.
  void wake_host();
  /// The connection ends: its host is not called any more.
  void end();

  /// What a connection costs that holds nothing, about; shown, and not a part of any limit.
  static constexpr std::size_t own_bytes = 3072;
  static constexpr std::size_t name_bytes_max = 1'024;  ///< of each of Names
  static constexpr std::size_t push_bytes_max = std::size_t{32} << 20;

 private:
  /// Where a push of the connection's own thread goes.
  struct Direct {
    std::string* out = nullptr;
    LargeReplies* large = nullptr;
    std::thread::id thread{};
  };

  /// Under the lock: end() may be waiting to take the host away.
  void wake() SEMEL_REQUIRES(mutex_);
  void show_pushed() noexcept SEMEL_REQUIRES(mutex_);
  template <class Bytes>
  bool push_bytes(const Bytes& bytes, std::size_t size);
  /// Ends the wait by `end`. False: it does not wait.
  template <class End>
  bool end_wait_by(End&& end);

  mutable base::Mutex mutex_;
  ClientHost* host_ SEMEL_GUARDED_BY(mutex_);  // null: no wakeup
  Names names_ SEMEL_GUARDED_BY(mutex_);
  PushedBytes pushed_ SEMEL_GUARDED_BY(mutex_);
  ClientWait wait_ SEMEL_GUARDED_BY(mutex_);
  bool resumed_ SEMEL_GUARDED_BY(mutex_) = false;
  bool killed_ SEMEL_GUARDED_BY(mutex_) = false;
  bool reviewed_ SEMEL_GUARDED_BY(mutex_) = false;
  bool woken_ SEMEL_GUARDED_BY(mutex_) = false;  // and not collected since
  bool ended_ SEMEL_GUARDED_BY(mutex_) = false;
  Direct direct_ SEMEL_GUARDED_BY(mutex_);
  std::atomic<bool> is_killed_{false};  // as killed_
};

}  // namespace semel::net
