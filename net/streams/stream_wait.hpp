// XREAD and XREADGROUP with BLOCK: a client that waits for entries.
//
// The wait ends on the thread that changed one of the keys, with a reply left at the client's
// handle. Entries that a group gave to a client which has gone stay pending with its consumer.
#pragma once

#include <vector>

#include "engine/types/stream_groups.hpp"
#include "net/commands/command.hpp"
#include "net/streams/stream_words.hpp"

namespace semel::net {

/// Waits, as `words` say, for entries behind the ids `behind`, one of each key; of a group, for
/// those that it has not read. The reply comes from the handle.
void wait_for_entries(Call& call, const ReadWords& words,
                      const std::vector<engine::StreamId>& behind);

/// Gives new entries of a group to a consumer, and writes them. True: the consumer is new.
struct Delivery {
  engine::ConsumerName to;
  engine::GroupState group;  ///< as it is
  engine::Ranks entries;     ///< of StreamReader::behind(group.last, ..)
  bool no_ack = false;
  std::int64_t now = 0;
};
/// `stream`: of `object`.
bool deliver(RespWriter& reply, engine::ObjectEdit& object, const engine::StreamReader& stream,
             const Delivery& delivery);

}  // namespace semel::net
