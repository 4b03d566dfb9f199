// Members of sorted sets that are taken, see taking.hpp.
#include <string>
#include <utility>
#include <vector>

#include "engine/types/sorted_set.hpp"
#include "net/objects/object_wait.hpp"
#include "net/objects/score_text.hpp"
#include "net/session/watches.hpp"

namespace semel::net {
namespace {

using engine::ObjectEdit;

class MembersTaking final : public Taking {
 public:
  explicit MembersTaking(const SortedTaking& what, bool is_kept = false) noexcept
      : what_(what), is_kept_(is_kept) {}

  [[nodiscard]] engine::WaitKind kind() const noexcept override {
    return engine::WaitKind::sorted_set;
  }
  [[nodiscard]] std::shared_ptr<Taking> kept() const override {
    return std::make_shared<MembersTaking>(what_, true);
  }
  [[nodiscard]] std::size_t bytes() const noexcept override { return sizeof *this; }

  [[nodiscard]] Result<bool> take(Engine& engine, KeyRef key) override {
    // Before anything is taken: for the copy there may be no memory.
    is_kept_ ? key_.keep(key.key) : key_.point_to(key.key);
    const auto done = engine::change_object(engine, key, Kind::sorted_set, [&](ObjectEdit& set) {
      const auto from = what_.is_highest ? engine::Direction::down : engine::Direction::up;
      engine::pop_members(set, from, what_.count, members_);
      return ErrorCode::ok;
    });
    if (!done.ok()) {
      const bool is_other = done.error().code == ErrorCode::wrong_type;
      if (is_other && other_is_none) return false;
      return done.error();
    }
    if (members_.empty()) return false;
    change_ = *done;
    return true;
  }

  void publish(const ChangeSite& site) const override {
    site.notify('z', what_.is_highest ? "zpopmax" : "zpopmin", key_.name());
    if (change_.is_gone()) site.notify('g', "del", key_.name());
    site.services.watches.touched(site.db, key_.name());
  }

  void write(RespWriter& reply) const override {
    reply.array(what_.is_list ? 2 : 3);
    reply.bulk(key_.name());
    if (what_.is_list) reply.array(members_.size());
    for (const engine::ScoredText& each : members_) {
      if (what_.is_list) reply.array(2);
      reply.bulk(each.member);
      write_score(reply, each.score);
    }
  }

  void give_back(const ChangeSite& site, Unwanted) override {
    const auto done = engine::change_object(
        site.engine, {site.db, key_.name()}, Kind::sorted_set, [&](ObjectEdit& set) {
          for (const engine::ScoredText& each : members_) {
            // With a new score it is another element, which stays.
            if (set.find_suffix(engine::score_bytes, each.member)) continue;
            set.put(engine::scored_key(each.score, each.member));
          }
          return ErrorCode::ok;
        });
    if (!done.ok()) return;
    if (done->is_new()) site.notify('n', "new", key_.name());
    site.notify('z', "zadd", key_.name());
    site.services.watches.touched(site.db, key_.name());
  }

 private:
  const SortedTaking what_;
  const bool is_kept_;
  TakenKey key_;
  std::vector<engine::ScoredText> members_;
  engine::ObjectChange change_;
};

}  // namespace

void take_or_wait(Call& call, std::span<const std::string_view> keys, Millis timeout,
                  const SortedTaking& what) {
  MembersTaking taking{what};
  take_or_wait(call, keys, timeout, taking);
}

}  // namespace semel::net
