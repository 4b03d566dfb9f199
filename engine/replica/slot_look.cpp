#include "engine/replica/slot_look.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "engine/api/engine_impl.hpp"
#include "engine/claims/logged_waits.hpp"

namespace semel::engine {
namespace {

/// How long a waiter that the log has refused does not ask again for a slot that stays free.
constexpr Millis deaf{50};

/// Takes nothing and changes nothing, so there is nothing to give back.
class SlotLook final : public Attempt {
 public:
  SlotLook(Engine& engine, NamespaceHandle names, const SlotWait& wait)
      : engine_(engine),
        names_(std::move(names)),
        not_before_(wait.arrival == 0 ? Timestamp::min() : time_now() + deaf) {
    const std::string prefix{names_->prefix()};
    keys_.reserve(wait.keys.size());
    for (const std::string& key : wait.keys) keys_.push_back(prefix + key);
  }

  [[nodiscard]] std::vector<KeyRef> refs() const {
    const std::uint8_t db = names_->policy().db;
    std::vector<KeyRef> refs;
    refs.reserve(keys_.size());
    for (const std::string& key : keys_) refs.push_back({db, key});
    return refs;
  }

  [[nodiscard]] Verdict try_for(std::size_t at, Seen& seen) override {
    const Bytes table_key = keys_[at];
    const ClaimRequest request{.key = table_key.substr(names_->prefix().size())};
    Looking look{engine_, names_, request, table_key};
    if (look.try_for(0, seen) != Verdict::answered_first) return Verdict::waits;
    if (seen.now >= not_before_) return Verdict::answered_first;
    seen.held_until = not_before_;
    return Verdict::waits;
  }
  void give_up(ErrorCode why, Timestamp, const Seen&) noexcept override { answer = why; }
  void give_back() override {}
  [[nodiscard]] std::size_t bytes() const noexcept override {
    std::size_t bytes = sizeof *this;
    for (const std::string& key : keys_) bytes += sizeof key + key.size();
    return bytes;
  }

  ErrorCode answer = ErrorCode::ok;

 private:
  [[nodiscard]] Timestamp time_now() const {
    const GroupTime* const clock = impl_of(engine_).group_clock;
    return clock != nullptr ? clock->now() : engine_.now();
  }

  Engine& engine_;
  const NamespaceHandle names_;
  const Timestamp not_before_;
  std::vector<std::string> keys_;
};

class SlotReceiver final : public Receiver {
 public:
  SlotReceiver(const SlotLook& look, Function<void(ErrorCode)>&& done)
      : look_(look), done_(std::move(done)) {}
  void answered() override { done_(look_.answer); }

 private:
  const SlotLook& look_;
  Function<void(ErrorCode)> done_;
};

}  // namespace

ErrorCode wait_for_slot(Engine& engine, const SlotWait& wait, Function<void(ErrorCode)> done,
                        WaitTicket& ticket) {
  Engine::Impl& impl = impl_of(engine);
  NamespaceHandle names = impl.namespaces().find(wait.name);
  if (!names) return ErrorCode::bad_namespace;
  auto look = std::make_unique<SlotLook>(engine, std::move(names), wait);
  const std::vector<KeyRef> keys = look->refs();
  std::unique_ptr<Receiver> receiver = std::make_unique<SlotReceiver>(*look, std::move(done));
  std::unique_ptr<Attempt> attempt = std::move(look);
  return impl.wait_queue().wait(attempt, receiver, keys, wait.deadline, ticket, wait.arrival);
}

}  // namespace semel::engine
