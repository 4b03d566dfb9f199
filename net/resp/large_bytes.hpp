// A large value that is to be sent: held once, however many replies and connections it is a part
// of. A reply's text has its head and its end; where it belongs between them, a Splice says.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/resp/client_memory.hpp"

namespace semel::net {

/// Immutable. Counted for as long as anybody holds it.
class LargeBytes {
 public:
  LargeBytes(std::string bytes, std::shared_ptr<ClientMemory> memory)
      : bytes_(std::move(bytes)), memory_(std::move(memory)) {
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

/// Bytes that belong in front of the text's byte `at`.
struct Splice {
  std::size_t at;
  SharedBytes bytes;
};
using Splices = std::vector<Splice>;

/// The large values of the replies that one connection is being given, and which of them the
/// present request has met before.
class LargeReplies {
 public:
  /// From this size on a value is referenced; below, it is copied.
  static constexpr std::size_t bytes_min = std::size_t{64} << 10;

  /// What is pushed to many is shared by them from here on.
  static constexpr std::size_t push_bytes_min = std::size_t{1} << 10;

  explicit LargeReplies(std::shared_ptr<ClientMemory> memory) : memory_(std::move(memory)) {}

  /// Values are referenced from now on; whoever sends the replies takes the splices.
  void enable() noexcept { enabled_ = true; }
  [[nodiscard]] bool is_enabled() const noexcept { return enabled_; }

  /// A request begins.
  void begin() {
    if (!met_.empty()) met_.clear();
    met_bytes_ = 0;
  }
  /// Bytes that the present request's reply holds by reference.
  [[nodiscard]] std::size_t held() const noexcept { return met_bytes_; }
  /// The same of all requests since take().
  [[nodiscard]] std::size_t unsent() const noexcept { return unsent_; }
  [[nodiscard]] bool has_met(std::string_view name, std::uint64_t version) const {
    const auto found = met_.find(name);
    return found != met_.end() && found->second.version == version;
  }
  /// The value that `name` has in this version; `bytes` are taken.
  [[nodiscard]] SharedBytes share(std::string_view name, std::uint64_t version,
                                  std::string& bytes) {
    if (!has_met(name, version)) {
      met_.insert_or_assign(std::string{name}, Met{version, share(std::move(bytes))});
    }
    bytes = std::string{};
    return met_.find(name)->second.bytes;
  }
  /// One that will not be met again.
  [[nodiscard]] SharedBytes share(std::string&& bytes) {
    count(bytes.size());
    return std::make_shared<const LargeBytes>(std::move(bytes), memory_);
  }

  void add(std::size_t at, SharedBytes bytes) { splices_.push_back({at, std::move(bytes)}); }
  /// Of a text that ends at `end` now.
  void cut(std::size_t end) {
    while (!splices_.empty() && splices_.back().at > end) splices_.pop_back();
  }
  /// So many bytes of the text are gone at `at`.
  void erase(std::size_t at, std::size_t bytes) {
    for (Splice& each : splices_) {
      if (each.at > at) each.at -= bytes;
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
