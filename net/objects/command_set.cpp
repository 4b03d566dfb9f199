// Sets. Integers come in the order of numbers, as redis-server has a set of nothing else; other
// members in the order of their bytes.
#include <string>
#include <vector>

#include "engine/kinds/element_keys.hpp"
#include "net/commands/handlers.hpp"
#include "net/objects/object_command.hpp"

namespace semel::net::handlers {

using engine::ObjectEdit;
using engine::ObjectReader;

void sadd(Call& call) {
  std::int64_t added = 0;
  const auto done = change_object(call, call.key(), Kind::set, [&](ObjectEdit& set) {
    added = 0;
    for (const Bytes member : call.args.subspan(2)) added += set.put(engine::member_key(member));
    return ErrorCode::ok;
  });
  if (!done) return;
  if (added != 0) call.notify('s', "sadd", call.key());
  call.reply.integer(added);
}

void srem(Call& call) {
  std::int64_t removed = 0;
  const auto done = change_object(call, call.key(), Kind::set, [&](ObjectEdit& set) {
    removed = 0;
    for (const Bytes member : call.args.subspan(2)) {
      removed += set.erase(engine::member_key(member));
    }
    return ErrorCode::ok;
  });
  if (!done) return;
  if (removed != 0) call.notify('s', "srem", call.key());
  notify_removed(call, call.key(), *done);
  call.reply.integer(removed);
}

void scard(Call& call) {
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::set, [&](const ObjectReader& set) {
    call.reply.integer(static_cast<std::int64_t>(set.size()));
  });
}

}  // namespace semel::net::handlers
