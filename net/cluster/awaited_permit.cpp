#include "net/cluster/awaited_permit.hpp"

#include <cstddef>
#include <utility>

#include "net/commands/claim_words.hpp"
#include "net/resp/reply_reader.hpp"
#include "semel/patterns/semaphore.hpp"

namespace semel::net {
namespace {

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

class AwaitedPermit final : public BlockingCommand {
 public:
  explicit AwaitedPermit(const PermitWords& words)
      : timeout_(words.wait.value_or(Millis{0})),
        permits_(words.permits),
        name_(words.name),
        key_(words.claim.request.key),
        is_named_(words.claim.request.claim_id.has_value()) {}

  [[nodiscard]] Timestamp deadline(Timestamp now) const noexcept override {
    return WaitWords{.timeout = timeout_}.deadline(now);
  }
  [[nodiscard]] ReplyMeaning meaning_of(std::string_view bytes) const override {
    return meaning_of_claim(bytes, name_, key_, is_named_);
  }
  [[nodiscard]] bool wait_for_change(Group& group, Parking parking, WaitTicket& ticket,
                                     ClaimOutcome& outcome) const override {
    std::vector<std::string> keys;
    keys.reserve(permits_);
    for (std::uint32_t slot = 0; slot < permits_; ++slot) keys.push_back(permit_key(key_, slot));
    outcome.error = group.wait_for_slot(
        {.name = name_, .keys = keys, .deadline = parking.deadline, .arrival = parking.arrival},
        [done = std::move(parking.done)](ErrorCode ended) {
          ClaimOutcome seen;
          seen.error = ended;
          done(std::move(seen));
        },
        ticket);
    return outcome.error == ErrorCode::ok;
  }

 private:
  const Millis timeout_;
  const std::uint32_t permits_;
  const std::string name_;
  const std::string key_;
  const bool is_named_;  // by a CLAIM-ID
};

}  // namespace

ReplyMeaning meaning_of_claim(std::string_view bytes, const std::string& name,
                              const std::string& key, bool is_named) {
  if (bytes.size() > read_bytes_max) return {};
  const std::optional<Reply> reply = take_reply(bytes);
  if (!reply) return {};
  const std::string outcome = field_of(*reply, "outcome");
  // A grant with an id is kept for a client that returns with it.
  if (outcome != "granted" || is_named) return {.is_pending = outcome == "in_flight"};
  const std::string of_slot = field_of(*reply, "key");
  return {
      .undo = {"SEMEL.RELEASE", name, of_slot.empty() ? key : of_slot, field_of(*reply, "epoch")}};
}

std::unique_ptr<BlockingCommand> read_permit_wait(std::span<const std::string_view> words) {
  PermitWords permit;
  if (!read_permit_words(words, permit) || !permit.wait) return nullptr;
  return std::make_unique<AwaitedPermit>(permit);
}

}  // namespace semel::net
