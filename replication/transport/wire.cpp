#include "replication/transport/wire.hpp"

#include <xxhash.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "base/assert.hpp"
#include "replication/core/log_identity.hpp"
#include "replication/state/fields.hpp"

namespace semel::replication {
namespace {

Error bad(const std::string& what) {
  return {ErrorCode::bad_encoding, "a frame of a peer: " + what};
}

template <class Fields>
void text(Fields& fields, std::string& value) {
  Bytes bytes = value;
  fields.bytes(bytes);
  if constexpr (std::is_same_v<Fields, FieldReader>) value = bytes;
}

template <class Fields, class Choice>
void choice(Fields& fields, Choice& value, std::uint8_t first, Choice last) {
  auto number = static_cast<std::uint8_t>(value);
  fields.small(number, static_cast<std::uint8_t>(last));
  if constexpr (std::is_same_v<Fields, FieldReader>) {
    if (number < first) return fields.fail();
    value = static_cast<Choice>(number);
  }
}

/// Of a list: at most `most`, or the frame is bad.
template <class Fields>
std::size_t bounded_count(Fields& fields, std::size_t size, std::size_t most) {
  const std::size_t count = fields.count(size);
  if constexpr (std::is_same_v<Fields, FieldReader>) {
    if (count > most) {
      fields.fail();
      return 0;
    }
  }
  return count;
}

template <class Fields, class Item, class Put>
void list(Fields& fields, std::vector<Item>& items, std::size_t most, Put&& put) {
  const std::size_t count = bounded_count(fields, items.size(), most);
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<Fields, FieldReader>) {
      if (!fields.is_good()) return;
      items.emplace_back();
    }
    put(items[i]);
  }
}

template <class Fields>
void shared(Fields& fields, SharedData& value) {
  Bytes bytes = value == nullptr ? Bytes{} : Bytes{*value};
  fields.bytes(bytes);
  if constexpr (std::is_same_v<Fields, FieldReader>) {
    if (fields.is_good()) value = std::make_shared<const std::string>(bytes);
  }
}

/// Behind all others, of a message that earlier releases know without it: they are not sent it
/// (strip()), and do not send it.
template <class Fields, class Number>
void later(Fields& fields, Number& value) {
  if constexpr (std::is_same_v<Fields, FieldReader>) {
    if (!fields.rest().empty()) fields.number(value);
  } else {
    if (value != 0) fields.number(value);
  }
}

// --- messages of Raft -----------------------------------------------------------------------

template <class Fields>
void all(Fields& fields, VoteRequest& it) {
  fields.number(it.last_index);
  fields.number(it.last_term);
  fields.flag(it.disrupts_leader);
  fields.flag(it.is_pre_vote);
}
template <class Fields>
void all(Fields& fields, VoteReply& it) {
  fields.flag(it.is_granted);
  fields.flag(it.is_pre_vote);
  fields.number(it.unix_ms);
  fields.flag(it.is_time_known);
  later(fields, it.time_term);
}
template <class Fields>
void all(Fields& fields, AppendRequest& it) {
  fields.number(it.previous_index);
  fields.number(it.previous_term);
  fields.number(it.commit);
  fields.number(it.echo);
  list(fields, it.entries, message_entries_max, [&](RaftEntry& entry) {
    fields.number(entry.term);
    choice(fields, entry.type, 1, EntryType::configuration);
    shared(fields, entry.data);
  });
  fields.number(it.mark);
  later(fields, it.unix_ms);
}
template <class Fields>
void all(Fields& fields, AppendReply& it) {
  fields.number(it.rejected);
  fields.number(it.last_index);
  fields.number(it.echo);
  fields.number(it.mark);
}
template <class Fields>
void all(Fields& fields, SnapshotOffer& it) {
  fields.number(it.snapshot.index);
  fields.number(it.snapshot.term);
  fields.number(it.snapshot.configuration_index);
  list(fields, it.snapshot.configuration, members_max, [&](Member& member) {
    fields.number(member.id);
    std::string address = full_address(member);
    text(fields, address);
    choice(fields, member.role, 0, MemberRole::voter);
    if constexpr (std::is_same_v<Fields, FieldReader>) {
      if (address.size() > full_address_bytes_max) fields.fail();
      set_full_address(member, std::move(address));
    }
  });
  shared(fields, it.manifest);
}
template <class Fields>
void all(Fields& fields, TimeoutNow& it) {
  fields.number(it.last_index);
  fields.number(it.last_term);
}
template <class Fields>
void all(Fields& fields, ReadProbe& it) {
  fields.number(it.round);
}
template <class Fields>
void all(Fields& fields, ReadReply& it) {
  fields.number(it.round);
}
template <class Fields>
void all(Fields& fields, CommitNotice& it) {
  fields.number(it.index);
  fields.number(it.index_term);
}

// --- frames ---------------------------------------------------------------------------------

template <class Fields>
void all(Fields& fields, Hello& it) {
  std::uint64_t magic = wire_magic;
  fields.number(magic);
  fields.small(it.version, 255);
  fields.small(it.version_least, 255);
  fields.number(it.cluster_id);
  fields.number(it.node_id);
  choice(fields, it.purpose, 0, Purpose::snapshot);
  fields.number(it.feature_level);
  text(fields, it.address);
  later(fields, it.log.high);
  later(fields, it.log.low);
  if constexpr (std::is_same_v<Fields, FieldReader>) {
    if (it.address.size() > address_bytes_max) fields.fail();
    if (magic != wire_magic || it.version < it.version_least) fields.fail();
  }
}
template <class Fields>
void all(Fields& fields, Refusal& it) {
  text(fields, it.reason);
}
template <class Fields>
void all(Fields& fields, Forward& it) {
  fields.number(it.id);
  text(fields, it.bytes);
}
template <class Fields>
void all(Fields& fields, ForwardReply& it) {
  fields.number(it.id);
  text(fields, it.bytes);
}
template <class Fields>
void all(Fields& fields, SnapshotRequest& it) {
  fields.number(it.index);
  fields.number(it.term);
  fields.number(it.offset);
}
template <class Fields>
void all(Fields& fields, SnapshotChunk& it) {
  text(fields, it.bytes);
}
template <class Fields>
void all(Fields& fields, SnapshotEnd& it) {
  fields.flag(it.is_there);
  fields.number(it.bytes);
}

/// Sets `variant` to the alternative at this place and reads it.
template <class Variant, std::size_t Place = 0>
void read_alternative(FieldReader& fields, Variant& variant, std::size_t place);

template <class Fields>
void all(Fields& fields, RaftMessage& it) {
  auto kind = static_cast<std::uint8_t>(it.what.index());
  fields.small(kind, std::variant_size_v<decltype(it.what)> - 1);
  fields.number(it.from);
  fields.number(it.to);
  fields.number(it.term);
  if constexpr (std::is_same_v<Fields, FieldReader>) {
    if (fields.is_good()) read_alternative(fields, it.what, kind);
  } else {
    std::visit([&](auto& what) { all(fields, what); }, it.what);
  }
}

template <class Variant, std::size_t Place>
void read_alternative(FieldReader& fields, Variant& variant, std::size_t place) {
  if constexpr (Place < std::variant_size_v<Variant>) {
    if (place != Place) return read_alternative<Variant, Place + 1>(fields, variant, place);
    all(fields, variant.template emplace<Place>());
  } else {
    fields.fail();
  }
}

/// Takes out what a peer below the level of the group's time cannot read.
void strip(RaftMessage& message) noexcept {
  if (auto* const vote = std::get_if<VoteReply>(&message.what)) vote->time_term = 0;
  if (auto* const append = std::get_if<AppendRequest>(&message.what)) append->unix_ms = 0;
}

}  // namespace

void encode(const Frame& frame, std::string& to, FeatureLevel level) {
  const auto* const message = std::get_if<RaftMessage>(&frame);
  if (message != nullptr && level < feature_level_group_time) {
    RaftMessage stripped = *message;
    strip(stripped);
    return encode(Frame{std::move(stripped)}, to);
  }
  const std::size_t at = to.size();
  to.append(frame_head_bytes, '\0');
  to.push_back(static_cast<char>(frame.index()));
  FieldWriter fields{to};
  // The description is one for both directions, and the writer changes nothing.
  std::visit([&](auto& what) { all(fields, what); }, const_cast<Frame&>(frame));
  const std::size_t bytes = to.size() - at - frame_head_bytes;
  SEMEL_ASSERT(bytes + frame_tail_bytes <= frame_bytes_max);
  const auto size = static_cast<std::uint32_t>(bytes);
  std::memcpy(to.data() + at, &size, sizeof size);
  const std::uint64_t sum = checksum({to.data() + at + frame_head_bytes, bytes});
  to.append(reinterpret_cast<const char*>(&sum), sizeof sum);
}

std::uint64_t checksum(Bytes bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Result<std::size_t> frame_rest(const char* head, std::size_t at_most) {
  std::uint32_t bytes;
  std::memcpy(&bytes, head, sizeof bytes);
  if (bytes < 1 || bytes > at_most - frame_tail_bytes) {
    return bad(std::to_string(bytes) + " bytes, at most " +
               std::to_string(at_most - frame_tail_bytes));
  }
  return bytes + frame_tail_bytes;
}

Result<Frame> decode_frame(Bytes rest) {
  if (rest.size() <= frame_tail_bytes) return bad("it is too short");
  const Bytes body = rest.substr(0, rest.size() - frame_tail_bytes);
  std::uint64_t sum;
  std::memcpy(&sum, rest.data() + body.size(), sizeof sum);
  if (checksum(body) != sum) return bad("it has another checksum");
  FieldReader fields{body.substr(1)};
  Frame frame;
  const auto kind = static_cast<unsigned char>(body[0]);
  if (kind >= std::variant_size_v<Frame>) return bad("kind " + std::to_string(kind));
  read_alternative(fields, frame, kind);
  // The hello of a later release may say more; whether it fits is judged by its versions.
  const bool may_say_more = std::holds_alternative<Hello>(frame);
  if (!fields.is_good() || (!fields.rest().empty() && !may_say_more)) {
    return bad("kind " + std::to_string(kind) + " cannot be read");
  }
  return frame;
}

}  // namespace semel::replication
