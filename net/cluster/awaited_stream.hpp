// XREAD and XREADGROUP with BLOCK in a group.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/types/stream.hpp"
#include "net/cluster/blocking_command.hpp"

namespace semel::net {

class AwaitedStream final : public BlockingCommand {
 public:
  struct Words {
    Millis timeout{0};  ///< 0: for ever
    std::optional<std::string> group{};
    std::vector<std::string> keys{};
    std::size_t ids_at = 0;  ///< where they stand among the words of the request
  };
  explicit AwaitedStream(Words words) : words_(std::move(words)) {}

  [[nodiscard]] Timestamp deadline(Timestamp now) const noexcept override;
  /// Entries that a client of XREADGROUP has not seen stay pending with its consumer.
  [[nodiscard]] ReplyMeaning meaning_of(std::string_view bytes) const override;
  [[nodiscard]] std::string timeout_reply(Resp dialect) const override;
  /// `$` is the last id when the wait begins.
  void fix_words(Group& group, std::vector<std::string>& request) override;
  [[nodiscard]] bool wait_for_change(Group& group, Parking parking, WaitTicket& ticket,
                                     ClaimOutcome& outcome) const override;
  void set_db(std::uint8_t db) noexcept override { db_ = db; }

 private:
  const Words words_;
  std::vector<engine::StreamId> behind_;  // of XREAD, one of each key
  std::uint8_t db_ = 0;
};

/// Null: without BLOCK, or the words are wrong, as the log will answer.
[[nodiscard]] std::unique_ptr<BlockingCommand> read_stream_wait(
    std::span<const std::string_view> words);

}  // namespace semel::net
