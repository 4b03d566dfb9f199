// Members of sorted sets that are taken, see taking.hpp.
#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "engine/kinds/element_keys.hpp"
#include "net/objects/taking.hpp"
#include "net/session/watches.hpp"

namespace semel::net {
namespace {

using engine::ObjectEdit;

/// As redis-server 7.0 prints scores.
void write_score(RespWriter& reply, double score) {
  std::array<char, 32> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.17g", score);
  const std::string_view shown{text.data(), static_cast<std::size_t>(length)};
  if (reply.dialect() == Resp::two) return reply.bulk(shown);
  reply.prepared(",");
  reply.prepared(shown);
  reply.prepared("\r\n");
}

class MembersTaking final : public Taking {
 public:
  explicit MembersTaking(const SortedTaking& what) noexcept : what_(what) {}

  [[nodiscard]] engine::WaitKind kind() const noexcept override {
    return engine::WaitKind::sorted_set;
  }
  [[nodiscard]] std::size_t bytes() const noexcept override { return sizeof *this; }

  [[nodiscard]] Result<bool> take(Engine& engine, KeyRef key) override {
    const auto done = engine::change_object(engine, key, Kind::sorted_set, [&](ObjectEdit& set) {
      keys_.clear();
      const auto end = what_.is_highest ? engine::ListEnd::tail : engine::ListEnd::head;
      const engine::ListRange range = engine::list_end(set.size(), end, what_.count);
      const auto visit = [&](const engine::Element& element) {
        keys_.emplace_back(element.key);
        return true;
      };
      what_.is_highest ? set.each_back(range.from, range.to, visit)
                       : set.each(range.from, range.to, visit);
      set.erase_range(range.from, range.to);
      return ErrorCode::ok;
    });
    if (!done.ok()) {
      const bool is_other = done.error().code == ErrorCode::wrong_type;
      if (is_other && other_is_none) return false;
      return done.error();
    }
    if (keys_.empty()) return false;
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
    if (what_.is_list) reply.array(keys_.size());
    for (const std::string& each : keys_) {
      if (what_.is_list) reply.array(2);
      reply.bulk(Bytes{each}.substr(engine::score_bytes));
      write_score(reply, engine::score_of(each));
    }
  }

  void give_back(const ChangeSite& site, Unwanted) override {
    const auto done =
        engine::change_object(site.engine, {site.db, key_}, Kind::sorted_set, [&](ObjectEdit& set) {
          for (const std::string& each : keys_) {
            // With a new score it is another element, which stays.
            const Bytes member = Bytes{each}.substr(engine::score_bytes);
            if (!set.find_suffix(engine::score_bytes, member)) set.put(each);
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
  std::vector<std::string> keys_;  // of the elements
  engine::ObjectChange change_;
};

}  // namespace

std::shared_ptr<Taking> take_of_sorted_set(const SortedTaking& what) {
  return std::make_shared<MembersTaking>(what);
}

}  // namespace semel::net
