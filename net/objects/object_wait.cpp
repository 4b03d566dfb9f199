#include "net/objects/object_wait.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/object_api/object_waits.hpp"
#include "net/resp/pop_words.hpp"
#include "net/session/blocking.hpp"
#include "semel/limits.hpp"

namespace semel::net {
namespace {

std::string text_of_error(ErrorCode code) {
  std::string text{resp_prefix_of(code)};
  return text.append(" ").append(sentence_of(code));
}

/// A client that waits.
struct WaitSite {
  Services& services;
  std::shared_ptr<ClientHandle> handle;
  std::uint64_t wait = 0;
  Resp dialect = Resp::two;
  std::uint8_t db = 0;

  [[nodiscard]] ChangeSite site() const noexcept {
    return {services, services.engine, nullptr, db};
  }
};

class ObjectAttempt final : public engine::Attempt {
 public:
  ObjectAttempt(const WaitSite& place, std::vector<std::string> keys,
                std::shared_ptr<Taking> taking)
      : place_(place), keys_(std::move(keys)), taking_(std::move(taking)) {}

  [[nodiscard]] engine::WaitKind kind() const noexcept override { return taking_->kind(); }

  [[nodiscard]] engine::Verdict try_for(std::size_t key, engine::Seen& seen) override {
    seen.now = place_.services.engine.now();
    const auto taken = taking_->take(place_.services.engine, {place_.db, keys_[key]});
    if (!taken.ok() && taken.error().code == ErrorCode::section_held) {
      constexpr Millis try_again{10};  // a long script has it, and this thread serves others
      seen.held_until = seen.now + try_again;
      return engine::Verdict::waits;
    }
    if (taken.ok() && !*taken) return engine::Verdict::waits;
    error_ = taken.ok() ? ErrorCode::ok : taken.error().code;
    has_taken_ = taken.ok();
    if (has_taken_) taking_->publish(place_.site());
    return engine::Verdict::answered;
  }
  void give_up(ErrorCode why, Timestamp, const engine::Seen&) noexcept override { error_ = why; }
  void give_back() override {
    if (has_taken_) taking_->give_back(place_.site(), Unwanted::unasked);
  }
  [[nodiscard]] std::size_t bytes() const noexcept override {
    std::size_t bytes = sizeof *this + taking_->bytes();
    for (const std::string& key : keys_) bytes += sizeof key + key.size();
    return bytes;
  }

  void answer() {
    std::string bytes;
    RespWriter reply{bytes, place_.dialect};
    if (has_taken_) {
      taking_->write(reply);
    } else if (error_ == ErrorCode::timed_out) {
      reply.null_array();
    } else {
      reply.error(text_of_error(error_));
    }
    if (!has_taken_) return place_.handle->reply(place_.wait, std::move(bytes));
    place_.handle->reply(place_.wait, std::move(bytes), [place = place_, taking = taking_] {
      taking->give_back(place.site(), Unwanted::unread);
    });
  }

 private:
  const WaitSite place_;
  const std::vector<std::string> keys_;
  const std::shared_ptr<Taking> taking_;
  ErrorCode error_ = ErrorCode::ok;
  bool has_taken_ = false;
};

class ObjectReceiver final : public engine::Receiver {
 public:
  explicit ObjectReceiver(ObjectAttempt& attempt) noexcept : attempt_(attempt) {}
  void answered() override { attempt_.answer(); }

 private:
  ObjectAttempt& attempt_;
};

/// What the first of the keys with something in it, or of another kind, comes to.
Result<bool> take_first(Call& call, std::span<const KeyRef> keys, Taking& taking) {
  if (keys.size() == 1) return taking.take(call.engine, keys.front());
  SEMEL_TRY(section, call.engine.section(keys));
  bool is_taken = false;
  for (const KeyRef& key : keys) {
    SEMEL_TRY(taken, taking.take(call.engine, key));
    is_taken = taken;
    if (is_taken) break;
  }
  SEMEL_CHECK(section.commit());
  return is_taken;
}

/// Others wait for one of the keys: it is served behind them.
bool others_wait(Call& call, std::span<const KeyRef> keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](const KeyRef& key) { return engine::has_waits(call.engine, key); });
}

/// ok or wrong_type, by the first key that is there.
ErrorCode judge_kinds(Call& call, std::span<const KeyRef> keys, Kind wanted) {
  for (const KeyRef& key : keys) {
    const auto kind = call.store().type(key.key);
    if (!kind.ok()) return kind.error().code;
    if (*kind) return **kind == wanted ? ErrorCode::ok : ErrorCode::wrong_type;
  }
  return ErrorCode::ok;
}

void begin(Call& call, std::span<const KeyRef> keys, Millis timeout, const Taking& first) {
  const Timestamp deadline = end_of_wait(call.engine.now(), timeout);
  const std::shared_ptr<Taking> taking = first.kept();
  taking->other_is_none = true;
  std::string nothing;
  RespWriter{nothing, call.client.dialect}.null_array();
  WaitSite place{.services = call.services,
                 .handle = call.client.handle,
                 .dialect = call.client.dialect,
                 .db = call.client.db};
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const KeyRef& key : keys) names.emplace_back(key.key);
  place.wait = begin_blocking(call.client, call.row, call.args, std::move(nothing));
  auto made = std::make_unique<ObjectAttempt>(place, std::move(names), taking);
  std::unique_ptr<engine::Receiver> receiver = std::make_unique<ObjectReceiver>(*made);
  std::unique_ptr<engine::Attempt> attempt = std::move(made);
  WaitTicket ticket = 0;
  const ErrorCode why = engine::begin_wait(call.engine, attempt, receiver, keys, deadline, ticket);
  if (why != ErrorCode::ok) {
    std::string bytes;
    RespWriter{bytes, place.dialect}.error(text_of_error(why));
    return place.handle->reply(place.wait, std::move(bytes));
  }
  place.handle->if_abandoned(
      place.wait, [&engine = call.engine, ticket] { engine::cancel_wait(engine, ticket); });
}

}  // namespace

void take_or_wait(Call& call, std::span<const std::string_view> keys, Millis timeout,
                  Taking& taking) {
  if (keys.size() > limits::section_keys_max) return call.fail(ErrorCode::too_many_keys);
  std::array<KeyRef, 1> one;  // as most have
  std::vector<KeyRef> several;
  std::span<const KeyRef> refs = one;
  if (keys.size() == 1) {
    one[0] = {call.client.db, keys[0]};
  } else {
    several.reserve(keys.size());
    for (const Bytes key : keys) several.push_back({call.client.db, key});
    refs = several;
  }
  const bool may_wait = !call.context().is_part();
  if (may_wait && others_wait(call, refs)) {
    const Kind wanted = taking.kind() == engine::WaitKind::list ? Kind::list : Kind::sorted_set;
    const ErrorCode judged = judge_kinds(call, refs, wanted);
    if (judged != ErrorCode::ok) return call.fail(judged);
    return begin(call, refs, timeout, taking);
  }
  const auto taken = take_first(call, refs, taking);
  if (!taken.ok()) return call.fail(taken.error());
  if (*taken) return taking.answer(ChangeSite::of(call), call.reply);
  if (!may_wait) return taking.write_nothing(call.reply);
  begin(call, refs, timeout, taking);
}

}  // namespace semel::net
