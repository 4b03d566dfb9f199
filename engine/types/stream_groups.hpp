// The rules of groups of consumers of a stream: how far each group has been read, which entries are
// pending, and with whom. Of the functions that change, the group must be there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/types/stream.hpp"

namespace semel::engine {

/// One group, by its name.
struct GroupName {
  Bytes group;
};
/// One consumer of a group.
struct ConsumerName {
  Bytes group;
  Bytes consumer;
};

// --- reading ------------------------------------------------------------------------------------

[[nodiscard]] std::optional<GroupState> find_group(const ObjectReader& stream, GroupName name);
[[nodiscard]] std::optional<ConsumerState> find_consumer(const ObjectReader& stream,
                                                         ConsumerName name);
/// The consumer is a view of the stream's bytes.
[[nodiscard]] std::optional<PendingState> find_pending(const ObjectReader& stream, GroupName name,
                                                       StreamId id);
/// All groups; of a group, its consumers and its pending ids; of a consumer, those it owns.
[[nodiscard]] Ranks groups_of(const ObjectReader& stream);
[[nodiscard]] Ranks consumers_of(const ObjectReader& stream, GroupName name);
[[nodiscard]] Ranks pending_of(const ObjectReader& stream, GroupName name);
[[nodiscard]] Ranks owned_by(const ObjectReader& stream, ConsumerName name);
/// The same from id `from` on, and up to id `to`.
[[nodiscard]] Ranks pending_of(const ObjectReader& stream, GroupName name, StreamId from,
                               StreamId to);
[[nodiscard]] Ranks owned_by(const ObjectReader& stream, ConsumerName name, StreamId from,
                             StreamId to);
/// Of an element of groups_of() or consumers_of(), and of the name of its group.
[[nodiscard]] Bytes group_of(const Element& element) noexcept;
[[nodiscard]] Bytes consumer_of(const Element& element, Bytes group) noexcept;

/// How many entries the group has still to read. None: that is not known.
[[nodiscard]] std::optional<std::int64_t> lag_of(const StreamReader& stream,
                                                 const GroupState& group) noexcept;

// --- changing -----------------------------------------------------------------------------------

/// False: there is one of that name.
bool create_group(ObjectEdit& stream, GroupName name, const GroupState& state);
void set_group(ObjectEdit& stream, GroupName name, const GroupState& state);
/// False: there is none.
bool destroy_group(ObjectEdit& stream, GroupName name);

/// False: there is one of that name, which stays as it is.
bool create_consumer(ObjectEdit& stream, ConsumerName name, std::int64_t now_ms);
/// Notes that the consumer has asked now. True: it is new.
bool see_consumer(ObjectEdit& stream, ConsumerName name, std::int64_t now_ms);
/// Notes that it has asked, and has got something, now. True: it is new.
bool note_active(ObjectEdit& stream, ConsumerName name, std::int64_t now_ms);
/// How many ids were pending with it. None: there was no such consumer.
std::optional<std::size_t> delete_consumer(ObjectEdit& stream, ConsumerName name);

/// False: it was not pending.
bool acknowledge(ObjectEdit& stream, GroupName name, StreamId id);
/// Makes `id` pending with the consumer, which must exist; another consumer loses it.
void give(ObjectEdit& stream, ConsumerName name, StreamId id, std::int64_t delivered_ms,
          std::uint64_t deliveries);
/// The state of a group that has read up to entry `id`.
[[nodiscard]] GroupState read_on(const StreamReader& stream, GroupState group,
                                 StreamId id) noexcept;

}  // namespace semel::engine
