#include "engine/replica/object_look.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/engine_impl.hpp"
#include "engine/object_api/object_calls.hpp"
#include "engine/types/stream_groups.hpp"

namespace semel::engine {
namespace {

/// Takes nothing and changes nothing, so there is nothing to give back.
class ObjectLook final : public Attempt {
 public:
  ObjectLook(Engine& engine, const ObjectWait& wait)
      : engine_(engine), kind_(wait.kind), behind_(wait.behind.begin(), wait.behind.end()) {
    if (wait.group) group_.emplace(*wait.group);
    keys_.reserve(wait.keys.size());
    for (const KeyRef& key : wait.keys) keys_.push_back({key.db, std::string{key.key}});
  }

  [[nodiscard]] WaitKind kind() const noexcept override {
    if (kind_ == Kind::stream) return WaitKind::stream;
    return kind_ == Kind::list ? WaitKind::list : WaitKind::sorted_set;
  }
  [[nodiscard]] Verdict try_for(std::size_t key, Seen& seen) override {
    const Engine::Impl& impl = impl_of(engine_);
    seen.now = engine_.now();
    // As in engine::Looking: between entries the replica's own clock stands still.
    const bool is_deciding = impl_of(engine_).core().context().decision != nullptr;
    if (impl.group_clock != nullptr && !is_deciding) {
      seen.now = std::max(seen.now, impl.group_clock->now());
    }
    bool is_there = false;
    const Key& at = keys_[key];
    // Not read_object(), which would ask the log.
    const auto looked = change_object(engine_, {at.db, at.name}, kind_, [&](ObjectEdit& object) {
      is_there = kind_ == Kind::stream ? has_entries(object, key) : !object.empty();
      return ErrorCode::ok;
    });
    if (!looked.ok() && looked.error().code == ErrorCode::section_held) {
      constexpr Millis try_again{10};
      seen.held_until = seen.now + try_again;
    }
    if (kind_ == Kind::stream) return verdict_on_stream(looked, is_there);
    return looked.ok() && is_there ? Verdict::answered_first : Verdict::waits;
  }
  void give_up(ErrorCode why, Timestamp, const Seen&) noexcept override { answer = why; }
  void give_back() override {}
  [[nodiscard]] std::size_t bytes() const noexcept override {
    std::size_t bytes = sizeof *this;
    for (const Key& key : keys_) bytes += sizeof key + key.name.size();
    return bytes;
  }

  ErrorCode answer = ErrorCode::ok;

 private:
  struct Key {
    std::uint8_t db;
    std::string name;
  };

  /// A group that is gone is answered too, by an error.
  [[nodiscard]] bool has_entries(ObjectEdit& object, std::size_t key) const {
    StreamId behind = group_ || key >= behind_.size() ? StreamId{} : behind_[key];
    if (group_) {
      const auto found = find_group(object, {*group_});
      if (!found) return true;
      behind = found->last;
    }
    const StreamReader stream{object};
    return stream.length() != 0 && stream.last_id() > behind;
  }
  /// Those that only read do not stand in each other's way.
  [[nodiscard]] Verdict verdict_on_stream(const Result<ObjectChange>& looked, bool is_there) const {
    const bool is_error = !looked.ok() && looked.error().code == ErrorCode::wrong_type && group_;
    if (!is_error && !(looked.ok() && is_there)) return Verdict::passes;
    return group_ ? Verdict::answered_first : Verdict::answered;
  }

  Engine& engine_;
  const Kind kind_;
  const std::vector<StreamId> behind_;
  std::optional<std::string> group_;
  std::vector<Key> keys_;
};

class LookReceiver final : public Receiver {
 public:
  LookReceiver(const ObjectLook& look, Function<void(ErrorCode)>&& done)
      : look_(look), done_(std::move(done)) {}
  void answered() override { done_(look_.answer); }

 private:
  const ObjectLook& look_;
  Function<void(ErrorCode)> done_;
};

}  // namespace

std::optional<StreamId> last_id_of(Engine& engine, KeyRef key) {
  StreamId last{};
  // Not read_object(), as above. Another kind has no last id, and is an error to the log.
  const auto looked = change_object(engine, key, Kind::stream, [&](ObjectEdit& object) {
    last = object.empty() ? StreamId{} : StreamReader{object}.head().last;
    return ErrorCode::ok;
  });
  if (!looked.ok() && looked.error().code == ErrorCode::section_held) return std::nullopt;
  return last;
}

ErrorCode wait_for_object(Engine& engine, const ObjectWait& wait, Function<void(ErrorCode)> done,
                          WaitTicket& ticket) {
  auto look = std::make_unique<ObjectLook>(engine, wait);
  std::unique_ptr<Receiver> receiver = std::make_unique<LookReceiver>(*look, std::move(done));
  std::unique_ptr<Attempt> attempt = std::move(look);
  return impl_of(engine).wait_queue().wait(attempt, receiver, wait.keys, wait.deadline, ticket,
                                           wait.arrival);
}

}  // namespace semel::engine
