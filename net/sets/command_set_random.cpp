// Members of sets at random: SPOP, SRANDMEMBER.
#include <algorithm>
#include <limits>
#include <string>

#include "engine/types/byte_list.hpp"
#include "engine/types/object_limits.hpp"
#include "engine/types/random_picks.hpp"
#include "engine/types/set_pop.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"
#include "net/sets/set_reply.hpp"

namespace semel::net {
namespace {

using engine::ByteList;
using engine::Element;
using engine::ObjectEdit;
using engine::ObjectReader;

/// None: an error has been written.
std::optional<ByteList> pop_some(Call& call, std::size_t count) {
  ByteList popped;
  const std::uint64_t random = engine::any_number(call.engine);
  const auto done = change_object(call, call.key(), Kind::set, [&](ObjectEdit& set) {
    popped.clear();
    engine::pop_members(set, count, random, popped);
    return ErrorCode::ok;
  });
  if (!done) return std::nullopt;
  if (!popped.empty()) call.notify('s', "spop", call.key());
  notify_removed(call, call.key(), *done);
  return popped;
}

void write_any_member(Call& call) {
  const std::uint64_t random = engine::any_number(call.engine);
  read_object(call, call.key(), Kind::set, [&](const ObjectReader& set) {
    if (set.empty()) return call.reply.null();
    const std::size_t rank = engine::Picks{random}.below(set.size());
    static_cast<void>(write_member(call.reply, set.at(rank).key));
  });
}

/// `count` members, of which some may be the same. Redis has no bound of these: ours is that of
/// HRANDFIELD.
void write_repeated(Call& call, const ObjectReader& set, std::uint64_t count,
                    std::uint64_t random) {
  const std::size_t begin = call.reply.size();
  const auto refuse = [&] {
    call.reply.take_back(begin);
    call.fail("ERR value is out of range");
  };
  if (count > limits::set_picks_max) return refuse();
  call.reply.array(count);
  std::size_t bytes = 0;
  engine::Picks picks{random};
  for (std::uint64_t i = 0; i < count; ++i) {
    const Bytes key = set.at(picks.below(set.size())).key;
    bytes += key.size();
    if (bytes > limits::set_picks_bytes_max) return refuse();
    if (!write_member(call.reply, key)) return;
  }
}

void write_different(Call& call, const ObjectReader& set, std::size_t count, std::uint64_t random) {
  call.reply.array(count);
  if (count == set.size()) {
    return set.each(0, count,
                    [&](const Element& element) { return write_member(call.reply, element.key); });
  }
  for (const std::size_t rank : engine::Picks{random}.some(set.size(), count)) {
    if (!write_member(call.reply, set.at(rank).key)) return;
  }
}

}  // namespace

namespace handlers {

void spop(Call& call) {
  if (call.args.size() > 3) return call.fail_syntax();
  std::int64_t count = 1;
  const bool has_count = call.args.size() == 3;
  if (has_count) {
    const auto number = integer_of(call.args[2]);
    if (!number || *number < 0) return call.fail("ERR value is out of range, must be positive");
    count = *number;
  }
  const auto popped = pop_some(call, static_cast<std::size_t>(count));
  if (!popped) return;
  if (!has_count && popped->empty()) return call.reply.null();
  if (has_count) call.reply.set(popped->size());
  for (std::size_t i = 0; i < popped->size(); ++i) {
    if (!write_member(call.reply, popped->at(i))) return;
  }
}

void srandmember(Call& call) {
  if (call.args.size() == 2) {
    notify_miss(call, call.key());
    return write_any_member(call);
  }
  if (call.args.size() > 3) return call.fail_syntax();
  const auto count = integer_of(call.args[2]);
  if (!count) return call.fail_number();
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (*count < -most) {
    return call.fail("ERR value is out of range, value must between -" + std::to_string(most) +
                     " and " + std::to_string(most));
  }
  notify_miss(call, call.key());
  const std::uint64_t random = engine::any_number(call.engine);
  const auto wanted = static_cast<std::uint64_t>(*count < 0 ? -*count : *count);
  read_object(call, call.key(), Kind::set, [&](const ObjectReader& set) {
    if (set.empty() || wanted == 0) return call.reply.array(0);
    if (*count < 0) return write_repeated(call, set, wanted, random);
    write_different(call, set, std::min<std::size_t>(wanted, set.size()), random);
  });
}

}  // namespace handlers
}  // namespace semel::net
