#include "net/cluster/read_blocking.hpp"

#include <array>
#include <utility>

#include "net/cluster/awaited_object.hpp"
#include "net/cluster/awaited_permit.hpp"
#include "net/cluster/awaited_stream.hpp"
#include "net/commands/claim_words.hpp"
#include "net/commands/handlers.hpp"

namespace semel::net {
namespace {

using Words = std::span<const std::string_view>;

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
    return meaning_of_claim(bytes, name_, key_, is_named_);
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
                           Form{&handlers::semel_permit, &read_permit_wait},
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
