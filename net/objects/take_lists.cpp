// Elements of lists that are taken, see taking.hpp.
#include <array>
#include <string>
#include <utility>

#include "net/objects/taking.hpp"
#include "net/session/watches.hpp"

namespace semel::net {
namespace {

using engine::ListEnd;
using engine::ObjectEdit;

class ElementsTaking final : public Taking {
 public:
  explicit ElementsTaking(const ListTaking& what) noexcept : what_(what) {}

  [[nodiscard]] engine::WaitKind kind() const noexcept override { return engine::WaitKind::list; }
  [[nodiscard]] std::size_t bytes() const noexcept override { return sizeof *this; }

  [[nodiscard]] Result<bool> take(Engine& engine, KeyRef key) override {
    auto popped = pop_elements(engine, key, what_.end, what_.count);
    if (!popped.ok()) {
      const bool is_other = popped.error().code == ErrorCode::wrong_type;
      if (is_other && other_is_none) return false;
      return popped.error();
    }
    if (popped->elements.empty()) return false;
    key_ = key.key;
    popped_ = std::move(popped).value();
    return true;
  }

  void publish(const ChangeSite& site) const override {
    notify_popped(site, key_, what_.end, popped_.change);
    site.services.watches.touched(site.db, key_);
  }

  void write(RespWriter& reply) const override {
    reply.array(2);
    reply.bulk(key_);
    if (what_.is_list) reply.array(popped_.elements.size());
    for (const std::string& element : popped_.elements) reply.bulk(element);
  }

  /// At the end from which they came, so that the next pop brings them in the same order.
  void give_back(const ChangeSite& site, Unwanted) override {
    const auto done =
        engine::change_object(site.engine, {site.db, key_}, Kind::list, [&](ObjectEdit& list) {
          for (auto each = popped_.elements.rbegin(); each != popped_.elements.rend(); ++each) {
            push_to_list(list, what_.end, *each);
          }
          return ErrorCode::ok;
        });
    if (!done.ok()) return;
    notify_pushed(site, key_, what_.end, *done);
    site.services.watches.touched(site.db, key_);
  }

 private:
  const ListTaking what_;
  std::string key_;
  PoppedElements popped_;
};

class MoveTaking final : public Taking {
 public:
  explicit MoveTaking(const ListMove& move) : from_(move.from), to_(move.to), move_(move) {
    move_.from = from_;
    move_.to = to_;
  }

  [[nodiscard]] engine::WaitKind kind() const noexcept override { return engine::WaitKind::list; }
  [[nodiscard]] std::size_t bytes() const noexcept override {
    return sizeof *this + from_.size() + to_.size();
  }

  [[nodiscard]] Result<bool> take(Engine& engine, KeyRef key) override {
    move_.other_is_none = other_is_none;
    SEMEL_TRY(moved, move_element(engine, key.db, move_));
    moved_ = std::move(moved);
    return moved_.element.has_value();
  }

  void publish(const ChangeSite& site) const override {
    notify_moved(site, move_, moved_);
    site.services.watches.touched(site.db, from_);
    site.services.watches.touched(site.db, to_);
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
        .from = to_, .to = from_, .from_end = move_.to_end, .to_end = move_.from_end};
    const std::array<KeyRef, 2> keys{{{site.db, from_}, {site.db, to_}}};
    Result<MovedElement> moved{MovedElement{}};
    {
      auto section = site.engine.section(keys);
      if (!section.ok()) return;
      const Status seen = engine::read_object(
          site.engine, {site.db, to_}, Kind::list, [&](const engine::ObjectReader& list) {
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
    site.services.watches.touched(site.db, from_);
    site.services.watches.touched(site.db, to_);
  }

 private:
  const std::string from_;
  const std::string to_;
  ListMove move_;
  MovedElement moved_;
};

}  // namespace

std::shared_ptr<Taking> take_of_list(const ListTaking& what) {
  return std::make_shared<ElementsTaking>(what);
}

std::shared_ptr<Taking> take_and_move(const ListMove& move) {
  return std::make_shared<MoveTaking>(move);
}

}  // namespace semel::net
