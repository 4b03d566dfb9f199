// Bytes waiting to be sent to one client: texts, and large values that other clients may share.
//
// A part is released when it is sent. Small texts are joined; a large one is taken as it is, so
// that nothing is copied again and no buffer grows by doubling.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/resp/large_bytes.hpp"

namespace semel::net {

class OutputQueue {
 public:
  /// Adds `text` without its first `skip` bytes, with `splices` between its bytes. Both are empty
  /// afterwards; `text` may keep its capacity.
  void add(std::string& text, Splices&& splices, std::size_t skip = 0);

  [[nodiscard]] bool empty() const noexcept { return first_ == parts_.size(); }
  /// Bytes held; a value that occurs several times counts once.
  [[nodiscard]] std::size_t held() const noexcept { return text_bytes_ + large_bytes_; }
  [[nodiscard]] std::size_t text_bytes() const noexcept { return text_bytes_; }
  [[nodiscard]] std::size_t large_bytes() const noexcept { return large_bytes_; }
  [[nodiscard]] std::size_t parts() const noexcept { return parts_.size() - first_; }
  /// Memory of texts and lists, with their capacity and the sent part of the first.
  [[nodiscard]] std::size_t own_bytes() const noexcept {
    return room_bytes_ + parts_.capacity() * sizeof(Part);
  }

  /// The next bytes to send, in order, in at most as many pieces as `places` has; returns the
  /// number.
  [[nodiscard]] std::size_t pieces(std::span<iovec> places) const noexcept;
  [[nodiscard]] std::string_view front() const noexcept;
  /// Removes the first bytes, which have been sent.
  void sent(std::size_t bytes);

 private:
  struct Part {
    std::string text{};
    SharedBytes large{};  // instead of text
    [[nodiscard]] std::string_view view() const noexcept {
      return large != nullptr ? large->view() : std::string_view{text};
    }
  };

  void add_text(std::string&& text);
  void add_copy(std::string_view text);
  void add_large(SharedBytes&& bytes);
  void drop_first();

  std::vector<Part> parts_;
  std::size_t first_ = 0;  // the parts before it are sent
  std::size_t sent_ = 0;   // of the first
  std::size_t text_bytes_ = 0;
  std::size_t room_bytes_ = 0;  // of the texts
  std::size_t large_bytes_ = 0;
  std::map<const LargeBytes*, std::size_t> uses_;  // of large values, in parts
};

}  // namespace semel::net
