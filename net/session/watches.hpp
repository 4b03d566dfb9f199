// WATCH: a transaction fails if a watched key changes before EXEC.
//
// A watcher remembers the version of each of its keys (0: absent), and of a hash when the next of
// its fields ends. EXEC compares them inside its section, which finds every change of a key that
// existed, including its end. It cannot see a key
// that was made and removed in between; so each command that writes is reported here, and the key's
// version is compared at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "semel/engine.hpp"

namespace semel::net {

/// What one connection watches. Its keys belong to the connection's thread; `touched` is all that
/// another thread ever reads or writes here.
struct Watcher {
  struct Key {
    std::uint8_t db;
    std::string key;
    Version version;
    Timestamp next_end;  ///< of a field of a hash; no_end: none ends
  };
  std::vector<Key> keys;
  std::atomic<bool> touched{false};
};

class Watches {
 public:
  static constexpr std::size_t keys_max = 65'536;  ///< of one connection

  explicit Watches(Engine& engine) : engine_(engine) {}
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

  /// Watches `key` for `watcher`, which must stay where it is until forget() and has fewer than
  /// keys_max of them. On `watcher`'s own thread, as forget(). Errors: those of Engine::section.
  [[nodiscard]] Status watch(Watcher& watcher, std::uint8_t db, Bytes key);
  void forget(Watcher& watcher);

  /// True if a key of `watcher` has changed since. Inside of a section over everything.
  [[nodiscard]] bool has_changed(const Watcher& watcher);

  /// Costs one load without watchers.
  void touched(std::uint8_t db, Bytes key) {
    // mo: relaxed: watch() counts inside a section over the key, so that a command that begins
    //     later sees it.
    if (count_.load(std::memory_order_relaxed) == 0) [[likely]]
      return;
    look(db, key);
    if (follower_) follower_(key);
  }
  /// The same for watchers alone.
  void look(std::uint8_t db, Bytes key);
  /// After a command that may have changed any key, and may be taken back: databases were
  /// exchanged. A key that is watched since a moment ago may be taken for changed.
  void all_touched();
  /// touched() calls `follower` as well, on any thread, between be_followed(true) and (false),
  /// which nest. Before the first command.
  void follow(std::function<void(Bytes key)> follower) { follower_ = std::move(follower); }
  /// Inside a section over everything when it begins.
  void be_followed(bool begins) noexcept {
    // mo: relaxed: as in touched()
    count_.fetch_add(begins ? 1 : std::size_t{0} - 1, std::memory_order_relaxed);
  }
  /// Whether there are watchers, or it is followed.
  [[nodiscard]] bool any() const noexcept {
    return count_.load(std::memory_order_relaxed) != 0;  // mo: relaxed: as in touched()
  }

 private:
  using Name = std::pair<std::uint8_t, std::string>;
  /// A key as one connection found it. Kept here as well, because the thread that changes a key
  /// must not read the key list of a connection, which its own thread may be extending.
  struct Watch {
    Watcher* watcher;
    Version version;
  };

  [[nodiscard]] static bool is_among(const std::vector<Watch>& watches,
                                     const Watcher& watcher) noexcept;
  void mark(std::uint8_t db, Bytes key, Version version, bool only_new);
  struct State {
    Version version = 0;
    Timestamp next_end = no_end;
  };
  [[nodiscard]] State state_of(std::uint8_t db, Bytes key);
  [[nodiscard]] Version version_of(std::uint8_t db, Bytes key) { return state_of(db, key).version; }

  Engine& engine_;
  std::function<void(Bytes key)> follower_{};
  std::atomic<std::size_t> count_{0};
  base::Mutex mutex_;
  std::map<Name, std::vector<Watch>, std::less<>> watched_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::net
