// The bytes that one exchange of HTTP/1.1 still owes on its connection, in both directions. If the
// connection owed a byte, it would read the next request as the rest of this one, or the rest of
// this reply as the next one (request smuggling, response splitting). Pure.
#pragma once

#include <cstdint>
#include <optional>

namespace semel::gateway {

/// Used by one thread. Settled only after all of the request was written and all of the reply read:
/// a missing report closes the connection, and never reuses one that owes a byte.
class ExchangeAccount {
 public:
  /// Begins a request of this size, head included; none: it ends with a last chunk.
  void begin(std::optional<std::uint64_t> bytes) noexcept {
    *this = ExchangeAccount{};
    is_chunked_ = !bytes;
    unsent_ = bytes.value_or(0);
    has_begun_ = true;
  }
  /// Counts the bytes written, also by a failed write.
  void sent(std::uint64_t bytes) noexcept {
    if (is_chunked_) return;
    is_overrun_ = is_overrun_ || bytes > unsent_;
    unsent_ -= is_overrun_ ? unsent_ : bytes;
  }
  /// The last chunk was written.
  void sent_last_chunk() noexcept { is_chunked_ = false; }
  /// The reply was read to its end. `persists`: its head allows another one.
  void reply_ended(bool persists) noexcept { is_reply_whole_ = persists; }
  /// Whether the connection may serve another request, as far as this exchange is concerned.
  [[nodiscard]] bool is_settled() const noexcept {
    return has_begun_ && !is_chunked_ && !is_overrun_ && unsent_ == 0 && is_reply_whole_;
  }

 private:
  std::uint64_t unsent_ = 0;
  bool has_begun_ = false;
  bool is_chunked_ = false;
  bool is_overrun_ = false;
  bool is_reply_whole_ = false;
};

}  // namespace semel::gateway
