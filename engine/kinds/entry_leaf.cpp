#include "engine/kinds/entry_leaf.hpp"

#include <algorithm>

namespace semel::engine {

namespace {

/// A length and the bytes behind it. Empty: the reader has no such word.
Bytes take_word(base::ByteReader& reader) noexcept {
  const Bytes before = reader.rest();
  static_cast<void>(reader.prefixed());
  return reader.is_good() ? before.substr(0, before.size() - reader.rest().size()) : Bytes{};
}

}  // namespace

// --- reading ------------------------------------------------------------------------------------

Bytes EntryLeaf::put_together(const char* at, std::size_t left, EntryRoom& room) const noexcept {
  const EntryLeafHead head = this->head();
  const char* name = node_ + head.names_at;
  base::ByteWriter to{room.value.data()};
  if (head.names == 1) [[likely]] {
    to.bytes({name, head.names_bytes});
    to.varint(left);
    to.bytes({at, left});
    return {room.value.data(), static_cast<std::size_t>(to.end() - room.value.data())};
  }
  const auto add = [&to](const char*& from) {
    const char* const begin = from;
    const std::uint64_t bytes = take_varint(from);
    from += bytes;
    to.bytes({begin, static_cast<std::size_t>(from - begin)});
  };
  const char* const end = at + left;
  for (unsigned i = 1; i < head.names; ++i) {
    add(name);
    add(at);
  }
  add(name);
  to.varint(static_cast<std::uint64_t>(end - at));
  to.bytes({at, static_cast<std::size_t>(end - at)});
  const auto bytes = static_cast<std::size_t>(to.end() - room.value.data());
  SEMEL_ASSERT(bytes <= room.value.size());
  return {room.value.data(), bytes};
}

std::size_t EntryLeaf::value_bytes(unsigned index) const noexcept {
  SEMEL_ASSERT_SLOW(!is_run(index));
  const char* at = handle(index);
  const char* const end = node_ + this->end(index);
  const auto left = static_cast<std::size_t>(end - at);
  if ((place_of(index) & shares_names) == 0) return left;
  const EntryLeafHead head = this->head();
  for (unsigned i = 1; i < head.names; ++i) {
    const std::uint64_t bytes = take_varint(at);
    at += bytes;
  }
  return head.names_bytes + left + base::varint_bytes(static_cast<std::uint64_t>(end - at));
}

unsigned EntryLeaf::lower_bound(const SoughtKey& key) const noexcept {
  if (is_entry_key(key.bytes())) return lower_bound(id_of(key.bytes()));
  EntryRoom room;
  unsigned first = 0;
  for (unsigned count = count_; count > 0;) {
    const unsigned half = count / 2;
    const bool is_above = key.is_above(this->key(first + half, room));
    first += is_above ? half + 1 : 0;
    count = is_above ? count - half - 1 : half;
  }
  return first;
}

bool EntryLeaf::is_sound() const noexcept {
  const EntryLeafHead own = head();
  const auto before = static_cast<std::size_t>(at_ - node_);
  std::size_t at = before + sizeof own + count_ * place_bytes;
  if (own.names_at < at) return false;
  at = std::size_t{own.names_at} + own.names_bytes;
  if (at > used_) return false;
  base::ByteReader names{{node_ + own.names_at, own.names_bytes}};
  for (unsigned i = 0; i < own.names; ++i) static_cast<void>(names.prefixed());
  if (!names.is_at_end()) return false;
  for (unsigned i = 0; i < count_; ++i) {
    if ((place_of(i) & place_mask) != at) return false;
    const char* value = begin(i);
    static_cast<void>(take_id(value));
    at = end(i);
    if (at > used_ || value > node_ + at) return false;
    const bool is_short = node_ + at - value == sizeof(std::uint64_t);
    if ((place_of(i) & is_in_run) != 0 && !is_short) return false;
    if (i > 0 && id(i - 1) >= id(i)) return false;
  }
  return at == used_;
}

// --- one entry less -----------------------------------------------------------------------------

std::size_t EntryLeaf::bytes_without(unsigned index) const noexcept {
  const unsigned left = index < count_ ? count_ - 1 : count_;
  const std::size_t gone = end(index) - begin_place(index);
  const std::size_t entries = used_ - begin_place(0) - gone;
  return sizeof(EntryLeafHead) + left * place_bytes + head().names_bytes + entries;
}

void EntryLeaf::write_without(unsigned index, char* to) const noexcept {
  const EntryLeafHead old = head();
  EntryLeafHead written = old;
  const unsigned left = index < count_ ? count_ - 1 : count_;
  const auto before = static_cast<std::size_t>(at_ - node_);
  written.names_at = static_cast<std::uint16_t>(before + sizeof written + left * place_bytes);
  const std::size_t first = begin_place(0);
  const std::size_t gone = begin_place(index);
  const std::size_t behind = end(index);
  const std::size_t down = first - written.names_at - written.names_bytes;
  const std::size_t down_behind = down + (behind - gone);
  base::ByteWriter writer{to};
  writer.bytes({reinterpret_cast<const char*>(&written), sizeof written});
  const unsigned kept = index < count_ ? index : count_;
  for (unsigned i = 0; i < kept; ++i) writer.fixed(static_cast<std::uint16_t>(place_of(i) - down));
  for (unsigned i = kept + 1; i < count_; ++i) {
    writer.fixed(static_cast<std::uint16_t>(place_of(i) - down_behind));
  }
  writer.bytes({node_ + old.names_at, old.names_bytes});
  writer.bytes({node_ + first, gone - first});
  writer.bytes({node_ + behind, used_ - behind});
}

std::size_t EntryLeaf::erase(char* node, std::size_t head, unsigned count, std::size_t used,
                             unsigned index) noexcept {
  const EntryLeaf leaf{node, head, count, used};
  const std::size_t gone = leaf.begin_place(index);
  const std::size_t behind = leaf.end(index);
  const std::size_t bytes = behind - gone;
  char* const places = node + head + sizeof(EntryLeafHead);
  for (unsigned i = index + 1; i < count; ++i) {
    const auto moved = static_cast<std::uint16_t>(leaf.place_of(i) - bytes);
    std::memcpy(places + (i - 1) * place_bytes, &moved, sizeof moved);
  }
  std::memmove(node + gone, node + behind, used - behind);
  return used - bytes;
}

// --- making -------------------------------------------------------------------------------------

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): the room is filled as far as it is read
EntryLeafDraft::EntryLeafDraft(unsigned count, StreamId first, Bytes named, std::size_t head,
                               std::size_t bytes_max) noexcept
    : before_(head),
      bytes_max_(std::min(bytes_max, entry_leaf_bytes_max)),
      count_(count),
      used_(sizeof head_ + count * EntryLeaf::place_bytes) {
  static_assert(sizeof(EntryLeafHead) + entry_leaf_entries_max * EntryLeaf::place_bytes +
                    entry_value_bytes_max <
                entry_leaf_bytes_max);
  SEMEL_ASSERT(count != 0 && count <= entry_leaf_entries_max);
  SEMEL_ASSERT(head + entry_leaf_bytes_max <= EntryLeaf::place_mask);
  head_.ms = first.ms;
  head_.seq = first.seq;
  head_.names_at = static_cast<std::uint16_t>(head + used_);
  put_names(named);
  std::memcpy(bytes_.data(), &head_, sizeof head_);
}

/// Of a value that is no fields, or no short one, none.
void EntryLeafDraft::put_names(Bytes named) noexcept {
  if (named.size() > entry_value_bytes_max) return;
  base::ByteWriter to{bytes_.data() + used_};
  base::ByteReader reader{named};
  unsigned names = 0;
  while (!reader.rest().empty()) {
    const Bytes name = take_word(reader);
    if (take_word(reader).empty()) return;
    to.bytes(name);
    ++names;
  }
  head_.names = static_cast<std::uint16_t>(names);
  head_.names_bytes =
      static_cast<std::uint16_t>(static_cast<std::size_t>(to.end() - bytes_.data()) - used_);
  used_ += head_.names_bytes;
}

bool EntryLeafDraft::has_names(Bytes value, std::size_t& last) const noexcept {
  base::ByteReader reader{value};
  const Bytes names = this->names();
  std::size_t passed = 0;
  last = 0;
  while (passed < names.size()) {
    const Bytes name = take_word(reader);
    if (name.empty() || names.substr(passed, name.size()) != name) return false;
    passed += name.size();
    const Bytes rest = reader.rest();
    const std::size_t bytes = reader.prefixed().size();
    if (!reader.is_good()) return false;
    last = bytes;
    // A length in a longer form than it needs is kept as it is.
    const bool is_plain = rest.size() - reader.rest().size() == base::varint_bytes(bytes) + bytes;
    if (passed == names.size() && !is_plain) return false;
  }
  return head_.names != 0 && reader.rest().empty();
}

bool EntryLeafDraft::add(StreamId id, Bytes value, bool is_run) noexcept {
  SEMEL_ASSERT(added_ < count_);
  constexpr std::size_t id_bytes_max = 2 * base::varint_bytes_max;
  if (used_ + id_bytes_max + value.size() > bytes_max_) return false;
  auto place = static_cast<unsigned>(before_ + used_);
  base::ByteWriter to{bytes_.data() + used_};
  to.varint(id.ms - head_.ms);
  to.varint(id.ms == head_.ms ? id.seq - head_.seq : id.seq);
  std::size_t last = 0;
  if (is_run) {
    place |= EntryLeaf::is_in_run;
    to.bytes(value);
    ++runs_;
  } else if (has_names(value, last)) {
    place |= EntryLeaf::shares_names;
    base::ByteReader reader{value};
    for (unsigned i = 1; i < head_.names; ++i) {
      static_cast<void>(reader.prefixed());
      to.bytes(take_word(reader));
    }
    to.bytes(value.substr(value.size() - last));
  } else {
    to.bytes(value);
  }
  const auto noted = static_cast<std::uint16_t>(place);
  std::memcpy(bytes_.data() + sizeof head_ + added_ * EntryLeaf::place_bytes, &noted, sizeof noted);
  ++added_;
  used_ = static_cast<std::size_t>(to.end() - bytes_.data());
  return true;
}

}  // namespace semel::engine
