// Members of sets in replies.
#pragma once

#include "engine/kinds/element_keys.hpp"
#include "net/objects/object_command.hpp"

namespace semel::net {

/// The member whose key this is. False: the reply has no room for more, and is cut.
[[nodiscard]] inline bool write_member(RespWriter& reply, Bytes key) {
  engine::MemberText text;
  if (reply.room() == 0) reply.cut();
  reply.bulk(engine::member_of(key, text));
  return !reply.is_cut();
}

}  // namespace semel::net
