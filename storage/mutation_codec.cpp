#include "storage/mutation_codec.hpp"

#include <bit>
#include <cstring>
#include <type_traits>

namespace semel::storage {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is copied, not swapped");

enum Flag : std::uint8_t { flag_claim = 1, flag_due = 2 };
enum ClaimFlag : std::uint8_t {
  claim_result_expired = 1,
  claim_poison = 2,
  claim_has_id = 4,
};

class Writer {
 public:
  explicit Writer(std::string& out) noexcept : out_(out) {}
  template <class T>
  void number(T value) {
    static_assert(std::is_unsigned_v<T>);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof value);
  }
  template <class Array>
  void array(const Array& bytes) {
    out_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

 private:
  std::string& out_;
};

/// Reads and remembers whether there was enough to read.
class Reader {
 public:
  explicit Reader(Bytes bytes) noexcept : bytes_(bytes) {}
  template <class T>
  [[nodiscard]] T number() noexcept {
    T value{};
    const Bytes part = take(sizeof value);
    if (part.size() == sizeof value) std::memcpy(&value, part.data(), sizeof value);
    return value;
  }
  template <class Array>
  void array(Array& to) noexcept {
    const Bytes part = take(to.size());
    if (part.size() == to.size()) std::memcpy(to.data(), part.data(), to.size());
  }
  [[nodiscard]] Bytes take(std::size_t count) noexcept {
    if (count > bytes_.size()) {
      good_ = false;
      return {};
    }
    const Bytes part = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return part;
  }
  [[nodiscard]] Bytes rest() noexcept { return take(bytes_.size()); }
  [[nodiscard]] bool good() const noexcept { return good_; }

 private:
  Bytes bytes_;
  bool good_ = true;
};

void encode_claim(const ClaimRecord& claim, const TimeLine& line, Timestamp now, std::string& out) {
  Writer writer{out};
  unsigned flags = 0;
  if (claim.result_expired) flags |= claim_result_expired;
  if (claim.poison) flags |= claim_poison;
  if (claim.claim_id) flags |= claim_has_id;
  writer.number(static_cast<std::uint8_t>(claim.state));
  writer.number(static_cast<std::uint8_t>(flags));
  writer.number(static_cast<std::uint8_t>(claim.owner.size()));
  writer.number(claim.fingerprint.algorithm);
  writer.number(claim.attempts);
  writer.number(std::uint64_t{claim.epoch});
  writer.number(std::uint64_t{claim.session});
  writer.number(line.to_line(claim.lease_until));
  const Millis lease = std::max(Millis{0}, claim.lease_until - now);
  writer.number(static_cast<std::uint64_t>(lease.count()));
  writer.number(line.to_line(claim.result_until));
  writer.number(line.to_line(claim.unique_until));
  if (claim.claim_id) writer.array(*claim.claim_id);
  if (claim.result_expired) writer.array(claim.result_digest);
  if (claim.fingerprint.algorithm != 0) writer.array(claim.fingerprint.digest);
  out.append(claim.owner).append(claim.result);
}

/// True: the owner is remote, and its lease was moved on by `moved`.
[[nodiscard]] bool decode_claim(Reader& reader, const TimeLine& line, Timestamp now,
                                ClaimRecord& claim, Millis& moved) {
  const auto state = reader.number<std::uint8_t>();
  const auto flags = reader.number<std::uint8_t>();
  const auto owner_bytes = reader.number<std::uint8_t>();
  claim.fingerprint.algorithm = reader.number<std::uint8_t>();
  claim.attempts = reader.number<std::uint32_t>();
  claim.epoch = reader.number<std::uint64_t>();
  claim.session = reader.number<std::uint64_t>();
  claim.lease_until = line.from_line(reader.number<std::uint64_t>());
  const Millis lease{static_cast<std::int64_t>(reader.number<std::uint64_t>())};
  claim.result_until = line.from_line(reader.number<std::uint64_t>());
  claim.unique_until = line.from_line(reader.number<std::uint64_t>());
  if (flags & claim_has_id) reader.array(claim.claim_id.emplace());
  claim.result_expired = (flags & claim_result_expired) != 0;
  claim.poison = (flags & claim_poison) != 0;
  if (claim.result_expired) reader.array(claim.result_digest);
  if (claim.fingerprint.algorithm != 0) reader.array(claim.fingerprint.digest);
  claim.owner = reader.take(owner_bytes);
  claim.result = reader.rest();
  if (state < static_cast<std::uint8_t>(ClaimState::held) ||
      state > static_cast<std::uint8_t>(ClaimState::vacant)) {
    return false;
  }
  claim.state = static_cast<ClaimState>(state);
  // An owner of an earlier process is known to be dead by its session. A remote one may be alive.
  if (claim.state == ClaimState::held && claim.session == 0 && lease > Millis{0}) {
    const Timestamp fresh = now + lease;
    moved = fresh - claim.lease_until;
    claim.lease_until = fresh;
  }
  return reader.good();
}

}  // namespace

void encode(const Mutation& mutation, const TimeLine& line, Timestamp now, std::string& out) {
  const std::size_t start = out.size();
  Writer writer{out};
  unsigned flags = 0;
  if (mutation.claim) flags |= flag_claim;
  if (mutation.due != no_end) flags |= flag_due;
  writer.number(std::uint32_t{0});  // filled in below
  writer.number(static_cast<std::uint8_t>(mutation.type));
  writer.number(static_cast<std::uint8_t>(mutation.kind));
  writer.number(mutation.db);
  writer.number(static_cast<std::uint8_t>(flags));
  writer.number(std::uint64_t{mutation.version});
  if (flags & flag_due) writer.number(line.to_line(mutation.due));
  writer.number(static_cast<std::uint32_t>(mutation.key.size()));
  out.append(mutation.key);
  if (mutation.claim) {
    encode_claim(*mutation.claim, line, now, out);
  } else {
    out.append(mutation.value);
  }
  const auto size = static_cast<std::uint32_t>(out.size() - start - sizeof(std::uint32_t));
  std::memcpy(out.data() + start, &size, sizeof size);
}

bool decode(Bytes& bytes, const TimeLine& line, Timestamp now, Mutation& mutation) {
  Reader outer{bytes};
  const auto size = outer.number<std::uint32_t>();
  Reader reader{outer.take(size)};
  if (!outer.good()) return false;
  bytes = outer.rest();

  mutation = {};
  const auto type = reader.number<std::uint8_t>();
  const auto kind = reader.number<std::uint8_t>();
  mutation.db = reader.number<std::uint8_t>();
  const auto flags = reader.number<std::uint8_t>();
  mutation.version = reader.number<std::uint64_t>();
  if (flags & flag_due) mutation.due = line.from_line(reader.number<std::uint64_t>());
  mutation.key = reader.take(reader.number<std::uint32_t>());
  if (type > static_cast<std::uint8_t>(Mutation::Type::db_map)) return false;
  if (kind != static_cast<std::uint8_t>(Kind::string) &&
      kind != static_cast<std::uint8_t>(Kind::claim)) {
    return false;
  }
  mutation.type = static_cast<Mutation::Type>(type);
  mutation.kind = static_cast<Kind>(kind);
  if ((flags & flag_claim) == 0) {
    mutation.value = reader.rest();
    return reader.good();
  }
  Millis moved{0};
  if (!decode_claim(reader, line, now, mutation.claim.emplace(), moved)) return false;
  if (mutation.due != no_end) mutation.due += std::max(Millis{0}, moved);
  return reader.good();
}

}  // namespace semel::storage
