// Members of sorted sets that are taken, see taking.hpp.
#include <string>
#include <utility>
#include <vector>

#include "engine/types/sorted_set.hpp"
#include "net/objects/score_text.hpp"
#include "net/objects/taking.hpp"
#include "net/session/watches.hpp"

namespace semel::net {
namespace {

using engine::ObjectEdit;

class MembersTaking final : public Taking {
 public:
  explicit MembersTaking(const SortedTaking& what) noexcept : what_(what) {}

  [[nodiscard]] engine::WaitKind kind() const noexcept override {
    return engine::WaitKind::sorted_set;
  }
  [[nodiscard]] std::size_t bytes() const noexcept override { return sizeof *this; }

  [[nodiscard]] Result<bool> take(Engine& engine, KeyRef key) override {
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
    key_ = key.key;
    change_ = *done;
    return true;
  }

  void publish(const ChangeSite& site) const override {
    site.notify('z', what_.is_highest ? "zpopmax" : "zpopmin", key_);
    if (change_.is_gone()) site.notify('g', "del", key_);
    site.services.watches.touched(site.db, key_);
  }

  void write(RespWriter& reply) const override {
    reply.array(what_.is_list ? 2 : 3);
    reply.bulk(key_);
    if (what_.is_list) reply.array(members_.size());
    for (const engine::ScoredText& each : members_) {
      if (what_.is_list) reply.array(2);
      reply.bulk(each.member);
      write_score(reply, each.score);
    }
  }

  void give_back(const ChangeSite& site, Unwanted) override {
    const auto done =
        engine::change_object(site.engine, {site.db, key_}, Kind::sorted_set, [&](ObjectEdit& set) {
          for (const engine::ScoredText& each : members_) {
            // With a new score it is another element, which stays.
            if (set.find_suffix(engine::score_bytes, each.member)) continue;
            set.put(engine::scored_key(each.score, each.member));
          }
          return ErrorCode::ok;
        });
    if (!done.ok()) return;
    if (done->is_new()) site.notify('n', "new", key_);
    site.notify('z', "zadd", key_);
    site.services.watches.touched(site.db, key_);
  }

 private:
  const SortedTaking what_;
  std::string key_;
  std::vector<engine::ScoredText> members_;
  engine::ObjectChange change_;
};

}  // namespace

std::shared_ptr<Taking> take_of_sorted_set(const SortedTaking& what) {
  return std::make_shared<MembersTaking>(what);
}

}  // namespace semel::net
