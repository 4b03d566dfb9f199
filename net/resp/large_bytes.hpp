// A large value that is to be sent. It is held once, however many replies and connections contain
// it. A reply's text has only the head and the end of the value; a Splice says at which offset its
// bytes belong.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "net/resp/client_memory.hpp"

namespace semel::net {

/// Immutable. Counted in `memory` until the last holder releases it. `memory` is not null.
class LargeBytes {
 public:
  LargeBytes(std::string bytes, std::shared_ptr<ClientMemory> memory)
      : bytes_(std::move(bytes)), memory_(std::move(memory)) {
    SEMEL_ASSERT(memory_ != nullptr);
    memory_->add(bytes_.size());
  }
  ~LargeBytes() { memory_->remove(bytes_.size()); }
  LargeBytes(const LargeBytes&) = delete;
  LargeBytes& operator=(const LargeBytes&) = delete;

  [[nodiscard]] std::string_view view() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }

 private:
  const std::string bytes_;
  const std::shared_ptr<ClientMemory> memory_;
};
using SharedBytes = std::shared_ptr<const LargeBytes>;

/// Bytes that belong in front of byte `at` of the text.
struct Splice {
  std::size_t at;
  SharedBytes bytes;
};
using Splices = std::vector<Splice>;

/// The large values in the replies to one connection. Remembers which values the current request
/// has referenced already, so that it holds each only once.
///
/// Invariant: splices_ are ordered by `at`.
class LargeReplies {
 public:
  /// From this size on a value is referenced; below, it is copied.
  static constexpr std::size_t bytes_min = std::size_t{64} << 10;

  /// From this size on, a message that is pushed to many clients is held once for all of them.
  static constexpr std::size_t push_bytes_min = std::size_t{1} << 10;

  explicit LargeReplies(std::shared_ptr<ClientMemory> memory) : memory_(std::move(memory)) {}

  /// References values from now on. The sender of the replies then calls take().
  void enable() noexcept { enabled_ = true; }
  [[nodiscard]] bool is_enabled() const noexcept { return enabled_; }

  /// Called when a request begins.
  void begin() {
    if (!met_.empty()) met_.clear();
    met_bytes_ = 0;
  }
  /// Bytes that the reply to the current request holds by reference.
  [[nodiscard]] std::size_t held() const noexcept { return met_bytes_; }
  /// The same for all requests since the last take().
  [[nodiscard]] std::size_t unsent() const noexcept { return unsent_; }
  [[nodiscard]] bool has_met(std::string_view name, std::uint64_t version) const {
    const auto found = met_.find(name);
    return found != met_.end() && found->second.version == version;
  }
  /// The value of `name` in this version. Moves `bytes` out, or drops them if it is held already.
  [[nodiscard]] SharedBytes share(std::string_view name, std::uint64_t version,
                                  std::string& bytes) {
    if (!has_met(name, version)) {
      met_.insert_or_assign(std::string{name}, Met{version, share(std::move(bytes))});
    }
    bytes = std::string{};
    return met_.find(name)->second.bytes;
  }
  /// A value that no later reply refers to.
  [[nodiscard]] SharedBytes share(std::string&& bytes) {
    count(bytes.size());
    return std::make_shared<const LargeBytes>(std::move(bytes), memory_);
  }

  /// `at` is not below that of an earlier splice: replies are only appended.
  void add(std::size_t at, SharedBytes bytes) {
    SEMEL_ASSERT(splices_.empty() || splices_.back().at <= at);
    splices_.push_back({at, std::move(bytes)});
  }
  /// Drops the splices behind `end`, where the text ends now.
  void cut(std::size_t end) {
    while (!splices_.empty() && splices_.back().at > end) splices_.pop_back();
  }
  /// Adjusts the splices after `bytes` bytes of the text were removed at `at`. No splice may belong
  /// between them.
  void erase(std::size_t at, std::size_t bytes) {
    for (Splice& each : splices_) {
      if (each.at <= at) continue;
      SEMEL_ASSERT_SLOW(each.at >= at + bytes);
      each.at -= bytes;
    }
  }
  [[nodiscard]] bool empty() const noexcept { return splices_.empty(); }
  [[nodiscard]] Splices take() {
    unsent_ = 0;
    return std::exchange(splices_, {});
  }

 private:
  void count(std::size_t bytes) noexcept {
    met_bytes_ += bytes;
    unsent_ += bytes;
  }
  struct Met {
    std::uint64_t version = 0;
    SharedBytes bytes{};
  };
  std::shared_ptr<ClientMemory> memory_;
  Splices splices_;
  std::map<std::string, Met, std::less<>> met_;
  std::size_t met_bytes_ = 0;
  std::size_t unsent_ = 0;
  bool enabled_ = false;
};

}  // namespace semel::net
