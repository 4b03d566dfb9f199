// From the near form to the full form: the journal has both, the database only the full one.
#include <bit>

#include "storage/log/mutation_codec.hpp"
#include "storage/log/mutation_fields.hpp"

namespace semel::storage {
namespace {

/// What a claim's record has in front of its attempts.
struct ClaimFront {
  std::uint8_t state = 0;
  std::uint8_t flags = 0;
  std::uint8_t owner_bytes = 0;
  std::uint8_t algorithm = 0;

  explicit ClaimFront(FieldReader& reader) noexcept
      : state(reader.fixed<std::uint8_t>()),
        flags(reader.fixed<std::uint8_t>()),
        owner_bytes(reader.fixed<std::uint8_t>()),
        algorithm(reader.fixed<std::uint8_t>()) {}
};

/// Copies a claim's record; only its times differ from form to form.
void widen_claim(FieldReader& reader, FieldWriter& writer) noexcept {
  const ClaimFront front{reader};
  for (const std::uint8_t byte : {front.state, front.flags, front.owner_bytes, front.algorithm}) {
    writer.fixed(byte);
  }
  writer.varint(reader.varint());  // attempts
  writer.varint(reader.varint());  // version less epoch
  if (front.flags & claim_has_session) writer.fixed(reader.fixed<std::uint64_t>());
  if (front.flags & claim_has_lease) {
    writer.time(reader.time());
    writer.varint(reader.varint());
  }
  if (front.flags & claim_has_result_end) writer.time(reader.time());
  if (front.flags & claim_has_unique_end) writer.time(reader.time());
  writer.bytes(reader.take_rest());
}

}  // namespace

bool widen(Bytes group, const MutationBase& base, std::string& to) {
  while (!group.empty()) {
    FieldReader reader{group, &base};
    MutationFront front;
    Bytes body;
    if (!read_front(reader, &base, front, body)) return false;
    group = reader.take_rest();
    FieldReader inside{body, &base};
    const Bytes key = inside.prefixed();
    const bool is_claim = (front.head & head_record) != 0;
    int times = std::popcount(front.head & (unsigned{head_due} | head_keep));
    if (is_claim) {
      FieldReader ahead = inside;
      constexpr unsigned ends = claim_has_lease | claim_has_result_end | claim_has_unique_end;
      times += std::popcount(ClaimFront{ahead}.flags & ends);
    }
    constexpr MutationForm full = MutationForm::full;
    constexpr MutationForm near = MutationForm::near;
    const std::size_t size =
        front.body_bytes + version_bytes_of(full) - version_bytes_of(near) +
        static_cast<std::size_t>(times) * (time_bytes_of(full) - time_bytes_of(near));
    const std::size_t before = to.size();
    const std::size_t after = before + 1 + base::varint_bytes(size) + size;
    constexpr std::size_t missing_max = 64;  // what a claim that was cut off lacks
    to.resize(after + missing_max);
    FieldWriter writer{to.data() + before, nullptr};
    writer.fixed(front.head);
    writer.varint(size);
    writer.version(front.version);
    if (front.head & head_kind) writer.fixed(kind_byte(front.kind, front.is_delta));
    if (front.head & head_db) writer.fixed(front.db);
    if (front.head & head_due) writer.time(front.due);
    if (front.head & head_keep) writer.time(front.keep_until);
    writer.varint(key.size());
    writer.bytes(key);
    if (is_claim) {
      widen_claim(inside, writer);
    } else {
      writer.bytes(inside.take_rest());
    }
    const bool is_right = inside.is_good() && writer.end() == to.data() + after;
    to.resize(is_right ? after : before);
    if (!is_right) return false;
  }
  return true;
}

}  // namespace semel::storage
