#include "net/cluster/read_blocking.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "net/cluster/awaited_object.hpp"
#include "net/cluster/awaited_stream.hpp"
#include "net/commands/claim_words.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/reply_reader.hpp"

namespace semel::net {
namespace {

using Words = std::span<const std::string_view>;

/// A grant and an in_flight are shorter. A longer reply contains a result: it is final.
constexpr std::size_t read_bytes_max = std::size_t{64} << 10;

/// The field of a claim's reply. Empty: absent.
std::string field_of(const Reply& reply, std::string_view name) {
  for (std::size_t i = 0; i + 1 < reply.items.size(); i += 2) {
    if (reply.items[i].text != name) continue;
    const Reply& value = reply.items[i + 1];
    return value.type == Reply::Type::integer ? std::to_string(value.integer) : value.text;
  }
  return {};
}

/// SEMEL.WAIT.
class AwaitedClaim final : public BlockingCommand {
 public:
  explicit AwaitedClaim(const WaitWords& words)
      : timeout_(words.timeout),
        name_(words.name),
        key_(words.claim.request.key),
        is_named_(words.claim.request.claim_id.has_value()) {}

  [[nodiscard]] static std::unique_ptr<BlockingCommand> read(Words words) {
    WaitWords wait;
    if (!read_wait_words(words, wait)) return nullptr;
    return std::make_unique<AwaitedClaim>(wait);
  }
  [[nodiscard]] Timestamp deadline(Timestamp now) const noexcept override {
    return WaitWords{.timeout = timeout_}.deadline(now);
  }
  [[nodiscard]] ReplyMeaning meaning_of(std::string_view bytes) const override {
    if (bytes.size() > read_bytes_max) return {};
    const std::optional<Reply> reply = take_reply(bytes);
    if (!reply) return {};
    const std::string outcome = field_of(*reply, "outcome");
    // A grant with an id is kept for a client that returns with it.
    if (outcome != "granted" || is_named_) return {.is_pending = outcome == "in_flight"};
    return {.undo = {"SEMEL.RELEASE", name_, key_, field_of(*reply, "epoch")}};
  }
  [[nodiscard]] bool wait_for_change(Group& group, Parking parking, WaitTicket& ticket,
                                     ClaimOutcome& outcome) const override {
    return group.wait_for_change(name_, key_, parking.deadline, std::move(parking.done), ticket,
                                 outcome);
  }

 private:
  const Millis timeout_;
  const std::string name_;
  const std::string key_;
  const bool is_named_;  // by a CLAIM-ID
};

struct Form {
  Handler handler;
  std::unique_ptr<BlockingCommand> (*read)(Words);
};
constexpr std::array forms{Form{&handlers::semel_wait, &AwaitedClaim::read},
                           Form{&handlers::blpop, &read_pop<AwaitedObject::Form::left>},
                           Form{&handlers::brpop, &read_pop<AwaitedObject::Form::right>},
                           Form{&handlers::bzpopmin, &read_pop<AwaitedObject::Form::sorted>},
                           Form{&handlers::bzpopmax, &read_pop<AwaitedObject::Form::sorted>},
                           Form{&handlers::blmpop, &read_list_pop},
                           Form{&handlers::bzmpop, &read_sorted_pop},
                           Form{&handlers::blmove, &read_move},
                           Form{&handlers::brpoplpush, &read_move},
                           Form{&handlers::xread, &read_stream_wait},
                           Form{&handlers::xreadgroup, &read_stream_wait}};

}  // namespace

std::unique_ptr<BlockingCommand> read_blocking(const CommandRow& row, Words words) {
  for (const Form& each : forms) {
    if (each.handler == row.handler) return each.read(words);
  }
  return nullptr;
}

}  // namespace semel::net
