// Bytes that others have pushed to a connection, and that it has not collected.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "net/resp/large_bytes.hpp"

namespace semel::net {

/// Appends; large bytes by reference, if `large` takes references.
inline void append_to(std::string& out, LargeReplies&, std::string_view bytes) {
  out.append(bytes);
}
inline void append_to(std::string& out, LargeReplies& large, const SharedBytes& bytes) {
  if (large.is_enabled() && bytes->size() >= LargeReplies::push_bytes_min) {
    large.add(out.size(), bytes);
  } else {
    out.append(bytes->view());
  }
}

/// Under the lock of its owner. Its room is counted in a ClientMemory, if there is one.
///
/// Invariant: size == bytes of the text + bytes of the large ones.
class PushedBytes {
 public:
  explicit PushedBytes(std::shared_ptr<ClientMemory> memory) : memory_(std::move(memory)) {}
  ~PushedBytes() { clear(); }
  PushedBytes(const PushedBytes&) = delete;
  PushedBytes& operator=(const PushedBytes&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void add(std::string_view bytes) {
    const std::size_t before = room();
    text_.append(bytes);
    count(bytes.size(), before);
  }
  /// Large bytes are held by reference.
  void add(const SharedBytes& bytes) {
    if (bytes->size() < LargeReplies::push_bytes_min) return add(bytes->view());
    const std::size_t before = room();
    large_.push_back({text_.size(), bytes});
    count(bytes->size(), before);
  }
  /// Appends all of it to `out`, and is empty then.
  void move_to(std::string& out, LargeReplies& large) {
    if (size_ == 0) return;
    std::size_t from = 0;
    for (const Splice& each : large_) {
      out.append(text_, from, each.at - from);
      from = each.at;
      append_to(out, large, each.bytes);
    }
    out.append(text_, from);
    clear();
  }
  void clear() noexcept {
    if (memory_ != nullptr) memory_->remove(room());
    text_ = std::string{};
    large_ = Splices{};
    size_ = 0;
  }

 private:
  /// The memory of the text and the list; it grows only.
  [[nodiscard]] std::size_t room() const noexcept {
    return (text_.empty() ? 0 : text_.capacity()) + large_.capacity() * sizeof(Splice);
  }
  void count(std::size_t bytes, std::size_t room_before) {
    size_ += bytes;
    SEMEL_ASSERT(room() >= room_before);
    if (memory_ != nullptr) memory_->add(room() - room_before);
  }

  const std::shared_ptr<ClientMemory> memory_;
  std::string text_;
  Splices large_;  // their places are in text_
  std::size_t size_ = 0;
};

}  // namespace semel::net
