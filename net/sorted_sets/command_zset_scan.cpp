// Sorted sets: iterations and random members.
#include <limits>
#include <vector>

#include "engine/types/random_picks.hpp"
#include "engine/types/scan_order.hpp"
#include "net/commands/handlers.hpp"
#include "net/objects/object_command.hpp"
#include "net/objects/sorted_set_reply.hpp"
#include "net/resp/text.hpp"
#include "semel/store.hpp"

namespace semel::net::handlers {

using engine::ObjectReader;
using engine::Scored;

namespace {

struct ScanWish {
  std::uint64_t cursor = 0;
  std::int64_t count = 10;
  std::optional<std::string_view> pattern{};
};

/// The words behind the cursor. False: an error has been written.
bool read_scan(Call& call, ScanWish& wish) {
  std::span<const std::string_view> rest = call.args.subspan(3);
  for (; !rest.empty(); rest = rest.subspan(2)) {
    if (rest.size() >= 2 && is_word(rest[0], "count")) {
      const auto count = integer_of(rest[1]);
      if (!count) return call.fail_number(), false;
      if (*count < 1) return call.fail_syntax(), false;
      wish.count = *count;
    } else if (rest.size() >= 2 && is_word(rest[0], "match")) {
      // "*" is no pattern: as one, it would not match a member without bytes.
      wish.pattern = rest[1] == "*" ? std::nullopt : std::optional{rest[1]};
    } else {
      return call.fail_syntax(), false;
    }
  }
  return true;
}

/// A small set is shown at once, in its order, as a listpack is.
void write_scan(Call& call, const ObjectReader& set, const ScanWish& wish) {
  const bool is_packed = is_listpack(set, call.services.settings);
  const engine::ScanStep step =
      is_packed ? engine::ScanStep{}
                : engine::scan_step(wish.cursor, set.size(), static_cast<std::size_t>(wish.count));
  std::vector<Scored> found;
  set.each(0, set.size(), [&](const engine::Element& element) {
    const Scored each = engine::scored_of(element);
    const bool is_asked = is_packed || step.has(each.member);
    if (is_asked && (!wish.pattern || glob_match(*wish.pattern, each.member))) {
      found.push_back(each);
    }
    return true;
  });
  call.reply.array(2);
  call.reply.bulk(std::to_string(step.next));
  call.reply.array(2 * found.size());
  for (const Scored& each : found) {
    call.reply.bulk(each.member);
    call.reply.bulk(is_packed ? packed_text_of_score(each.score) : text_of_score(each.score));
    if (call.reply.is_cut()) return;
  }
}

/// None: an error has been written.
std::optional<std::int64_t> read_pick_count(Call& call) {
  const auto count = integer_of(call.args[2]);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const bool with_scores = call.args.size() == 4 && is_word(call.args[3], "withscores");
  if (!count) {
    call.fail_number();
  } else if (*count < -most) {
    call.fail("ERR value is out of range, value must between -" + std::to_string(most) + " and " +
              std::to_string(most));
  } else if (call.args.size() > 3 && !with_scores) {
    call.fail_syntax();
  } else if (with_scores && (*count < -(most / 2) || *count > most / 2)) {
    call.fail("ERR value is out of range");
  } else {
    return count;
  }
  return std::nullopt;
}

void write_one_pick(Call& call) {
  read_object(call, call.key(), Kind::sorted_set, [&](const ObjectReader& set) {
    if (set.empty()) return call.reply.null();
    engine::Picks picks{engine::any_number(call.engine)};
    call.reply.bulk(engine::scored_of(set.at(picks.below(set.size()))).member);
  });
}

/// Fewer than there are, each once. All of them come from the highest rank down, as from
/// redis-server.
std::vector<std::size_t> ranks_to_pick(Call& call, std::size_t size, std::size_t count) {
  if (count < size) return engine::Picks{engine::any_number(call.engine)}.some(size, count);
  std::vector<std::size_t> all(size);
  for (std::size_t i = 0; i < size; ++i) all[i] = size - 1 - i;
  return all;
}

}  // namespace

void zscan(Call& call) {
  ScanWish wish;
  const auto cursor = cursor_of(call.args[2]);
  if (!cursor) return call.fail("ERR invalid cursor");
  wish.cursor = *cursor;
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::sorted_set, [&](const ObjectReader& set) {
    // Of a key that is not there, other words are not looked at.
    if (set.empty() || read_scan(call, wish)) write_scan(call, set, wish);
  });
}

void zrandmember(Call& call) {
  if (call.args.size() == 2) {
    notify_miss(call, call.key());
    return write_one_pick(call);
  }
  const auto count = read_pick_count(call);
  if (!count) return;
  const bool with_scores = call.args.size() == 4;
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::sorted_set, [&](const ObjectReader& set) {
    const auto write = [&](std::size_t rank) {
      write_scored(call.reply, engine::scored_of(set.at(rank)), with_scores);
      return !call.reply.is_cut();
    };
    if (*count == 0 || set.empty()) return call.reply.array(0);
    if (*count > 0) {
      const auto ranks = ranks_to_pick(call, set.size(), static_cast<std::size_t>(*count));
      write_scored_head(call.reply, ranks.size(), with_scores);
      for (const std::size_t rank : ranks) {
        if (!write(rank)) return;
      }
      return;
    }
    // The same may come again and again: what the reply has no room for is not begun.
    const auto repeats = static_cast<std::size_t>(-*count);
    constexpr std::size_t bytes_least = 6;
    if (repeats > call.reply.room() / bytes_least) return call.reply.cut();
    write_scored_head(call.reply, repeats, with_scores);
    engine::Picks picks{engine::any_number(call.engine)};
    for (std::size_t i = 0; i < repeats && write(picks.below(set.size())); ++i) {
    }
  });
}

}  // namespace semel::net::handlers
