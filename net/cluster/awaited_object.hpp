// Blocking pops and moves of lists and sorted sets in a group.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/cluster/blocking_command.hpp"
#include "semel/op.hpp"

namespace semel::net {

class AwaitedObject final : public BlockingCommand {
 public:
  enum class Form : std::uint8_t {
    left,         ///< BLPOP: the reply is a key and an element
    right,        ///< BRPOP
    left_list,    ///< BLMPOP: a key and a list of elements
    right_list,   ///< the same from the tail
    sorted,       ///< BZPOPMIN, BZPOPMAX: a key, a member and its score
    sorted_list,  ///< BZMPOP: a key and a list of pairs
    move          ///< BLMOVE, BRPOPLPUSH: an element, which lies in another list already
  };
  AwaitedObject(Form form, std::span<const std::string_view> keys, Millis timeout)
      : form_(form), keys_(keys.begin(), keys.end()), timeout_(timeout) {}

  [[nodiscard]] Timestamp deadline(Timestamp now) const noexcept override;
  [[nodiscard]] ReplyMeaning meaning_of(std::string_view bytes) const override;
  [[nodiscard]] std::string timeout_reply(Resp dialect) const override;
  [[nodiscard]] bool wait_for_change(Group& group, Parking parking, WaitTicket& ticket,
                                     ClaimOutcome& outcome) const override;
  void set_db(std::uint8_t db) noexcept override { db_ = db; }

 private:
  [[nodiscard]] bool is_sorted() const noexcept {
    return form_ == Form::sorted || form_ == Form::sorted_list;
  }

  const Form form_;
  const std::vector<std::string> keys_;
  const Millis timeout_;
  std::uint8_t db_ = 0;
};

// Null: the words are wrong, as the log will answer.

[[nodiscard]] std::unique_ptr<BlockingCommand> read_pop_words(
    std::span<const std::string_view> words, AwaitedObject::Form form);
template <AwaitedObject::Form form>
[[nodiscard]] std::unique_ptr<BlockingCommand> read_pop(std::span<const std::string_view> words) {
  return read_pop_words(words, form);
}
[[nodiscard]] std::unique_ptr<BlockingCommand> read_list_pop(
    std::span<const std::string_view> words);
[[nodiscard]] std::unique_ptr<BlockingCommand> read_sorted_pop(
    std::span<const std::string_view> words);
[[nodiscard]] std::unique_ptr<BlockingCommand> read_move(std::span<const std::string_view> words);

}  // namespace semel::net
