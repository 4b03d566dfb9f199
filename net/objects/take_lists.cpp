// Elements of lists that are taken, see taking.hpp.
#include <array>
#include <string>
#include <utility>

#include "net/objects/object_wait.hpp"
#include "net/session/watches.hpp"

namespace semel::net {
namespace {

using engine::ListEnd;
using engine::ObjectEdit;

class ElementsTaking final : public Taking {
 public:
  explicit ElementsTaking(const ListTaking& what, bool is_kept = false) noexcept
      : what_(what), is_kept_(is_kept) {}

  [[nodiscard]] engine::WaitKind kind() const noexcept override { return engine::WaitKind::list; }
  [[nodiscard]] std::shared_ptr<Taking> kept() const override {
    return std::make_shared<ElementsTaking>(what_, true);
  }
  [[nodiscard]] std::size_t bytes() const noexcept override { return sizeof *this; }

  [[nodiscard]] Result<bool> take(Engine& engine, KeyRef key) override {
    // Before anything is taken: for the copy there may be no memory.
    is_kept_ ? key_.keep(key.key) : key_.point_to(key.key);
    auto popped = pop_elements(engine, key, what_.end, what_.count);
    if (!popped.ok()) {
      const bool is_other = popped.error().code == ErrorCode::wrong_type;
      if (is_other && other_is_none) return false;
      return popped.error();
    }
    if (popped->elements.empty()) return false;
    popped_ = std::move(popped).value();
    return true;
  }

  void publish(const ChangeSite& site) const override {
    notify_popped(site, key_.name(), what_.end, popped_.change);
    site.services.watches.touched(site.db, key_.name());
  }

  void write(RespWriter& reply) const override {
    reply.array(2);
    reply.bulk(key_.name());
    if (what_.is_list) reply.array(popped_.elements.size());
    for (const std::string& element : popped_.elements) reply.bulk(element);
  }

  /// At the end from which they came, so that the next pop brings them in the same order.
  void give_back(const ChangeSite& site, Unwanted) override {
    const auto done = engine::change_object(
        site.engine, {site.db, key_.name()}, Kind::list, [&](ObjectEdit& list) {
          for (auto each = popped_.elements.rbegin(); each != popped_.elements.rend(); ++each) {
            push_to_list(list, what_.end, *each);
          }
          return ErrorCode::ok;
        });
    if (!done.ok()) return;
    notify_pushed(site, key_.name(), what_.end, *done);
    site.services.watches.touched(site.db, key_.name());
  }

 private:
  const ListTaking what_;
  const bool is_kept_;
  TakenKey key_;
  PoppedElements popped_;
};

class MoveTaking final : public Taking {
 public:
  explicit MoveTaking(const ListMove& move) noexcept : move_(move) {}

  [[nodiscard]] engine::WaitKind kind() const noexcept override { return engine::WaitKind::list; }
  [[nodiscard]] std::shared_ptr<Taking> kept() const override {
    auto kept = std::make_shared<MoveTaking>(move_);
    kept->from_.keep(move_.from);
    kept->to_.keep(move_.to);
    kept->move_.from = kept->from_.name();
    kept->move_.to = kept->to_.name();
    return kept;
  }
  [[nodiscard]] std::size_t bytes() const noexcept override {
    return sizeof *this + move_.from.size() + move_.to.size();
  }

  [[nodiscard]] Result<bool> take(Engine& engine, KeyRef key) override {
    move_.other_is_none = other_is_none;
    SEMEL_TRY(moved, move_element(engine, key.db, move_));
    moved_ = std::move(moved);
    return moved_.element.has_value();
  }

  void publish(const ChangeSite& site) const override {
    notify_moved(site, move_, moved_);
    site.services.watches.touched(site.db, move_.from);
    site.services.watches.touched(site.db, move_.to);
  }

  void write(RespWriter& reply) const override { reply.bulk(*moved_.element); }
  void write_nothing(RespWriter& reply) const override { reply.null(); }
  void answer(const ChangeSite& site, RespWriter& reply) const override {
    notify_pushed(site, move_.to, move_.to_end, moved_.pushed);
    write(reply);
    notify_popped(site, move_.from, move_.from_end, moved_.popped);
  }

  /// An element that its client has not been told of is moved back, if it still lies where it was
  /// put. One whose reply was on its way stays: it is where the client looks for what it had begun.
  void give_back(const ChangeSite& site, Unwanted why) override {
    if (why == Unwanted::unread) return;
    bool is_there = false;
    const ListMove back{
        .from = move_.to, .to = move_.from, .from_end = move_.to_end, .to_end = move_.from_end};
    const std::array<KeyRef, 2> keys{{{site.db, move_.from}, {site.db, move_.to}}};
    Result<MovedElement> moved{MovedElement{}};
    {
      auto section = site.engine.section(keys);
      if (!section.ok()) return;
      const Status seen = engine::read_object(
          site.engine, {site.db, move_.to}, Kind::list, [&](const engine::ObjectReader& list) {
            if (list.empty()) return;
            const auto place = list_end(list.size(), move_.to_end, 1);
            is_there = list.at(place.from).value == *moved_.element;
          });
      if (!seen || !is_there) return;
      moved = move_element(site.engine, site.db, back);
      if (!section->commit()) return;
    }
    if (!moved.ok() || !moved->element) return;
    notify_moved(site, back, *moved);
    site.services.watches.touched(site.db, move_.from);
    site.services.watches.touched(site.db, move_.to);
  }

 private:
  TakenKey from_;  // of a kept one
  TakenKey to_;
  ListMove move_;
  MovedElement moved_;
};

}  // namespace

void take_or_wait(Call& call, std::span<const std::string_view> keys, Millis timeout,
                  const ListTaking& what) {
  ElementsTaking taking{what};
  take_or_wait(call, keys, timeout, taking);
}

void move_or_wait(Call& call, Millis timeout, const ListMove& move) {
  MoveTaking taking{move};
  const std::array<std::string_view, 1> from{move.from};
  take_or_wait(call, from, timeout, taking);
}

}  // namespace semel::net
