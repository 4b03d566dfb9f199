#include "storage/cold/cold_bucket.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "semel/limits.hpp"
#include "semel/op.hpp"

namespace semel::storage {

namespace {

constexpr std::uint8_t head_endless = 2;

constexpr std::uint64_t flag_expired = 1U << 3;  // bits 0..2: state
constexpr std::uint64_t flag_poison = 1U << 4;
constexpr std::uint64_t flag_attempts = 1U << 5;
constexpr unsigned lease_shift = 6;  // two bits each: 0 none, 1 the record's end, 2 another time
constexpr unsigned result_shift = 8;
constexpr unsigned unique_shift = 10;
constexpr std::uint64_t flag_id = 1U << 12;
constexpr std::uint64_t flag_digest = 1U << 13;
constexpr std::uint64_t flag_fingerprint = 1U << 14;
constexpr std::uint64_t flag_owner = 1U << 15;

/// The kind minus 1 in bits 0, 2 and 3; format 1 used only bit 0, with 0 in the others.
std::uint8_t head_of(Kind kind) noexcept {
  const unsigned code = static_cast<unsigned>(kind) - 1;
  return static_cast<std::uint8_t>((code & 1) | (code & 6) << 1);
}

/// False: not known.
bool read_kind(std::uint8_t head, Kind& kind) noexcept {
  kind = static_cast<Kind>(((head & 1) | (head >> 1 & 6)) + 1);
  return is_record_kind(kind);
}

void put_varint(std::uint64_t value, std::string& out) {
  for (; value >= 128; value >>= 7) out.push_back(static_cast<char>(value | 128));
  out.push_back(static_cast<char>(value));
}

/// A difference that may be negative; wraps around as the subtraction did.
void put_signed(std::uint64_t difference, std::string& out) {
  put_varint((difference << 1) ^ (0 - (difference >> 63)), out);
}

bool read_varint(Bytes& from, std::uint64_t& value) noexcept {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

bool read_signed(Bytes& from, std::uint64_t& difference) noexcept {
  std::uint64_t folded = 0;
  if (!read_varint(from, folded)) return false;
  difference = (folded >> 1) ^ (0 - (folded & 1));
  return true;
}

bool read_bytes(Bytes& from, std::size_t count, Bytes& taken) noexcept {
  if (count > from.size()) return false;
  taken = from.substr(0, count);
  from.remove_prefix(count);
  return true;
}

template <class Array>
bool read_array(Bytes& from, Array& to) noexcept {
  Bytes taken;
  if (!read_bytes(from, to.size(), taken)) return false;
  std::memcpy(to.data(), taken.data(), to.size());
  return true;
}

template <class Array>
void put_array(const Array& from, std::string& out) {
  out.append(reinterpret_cast<const char*>(from.data()), from.size());
}

/// How a claim's time is stored: 0 none, 1 equal to the record's end, 2 as a number.
std::uint64_t form_of(Timestamp time, Timestamp due) noexcept {
  if (time == Timestamp{}) return 0;
  return time == due ? 1 : 2;
}

/// The origin of a claim's times: the record's end, or 0 if it has none.
std::uint64_t origin_of(Timestamp due, const DurableClock& durable_clock) noexcept {
  return due == no_end ? 0 : durable_clock.to_durable_ms(due);
}

void put_claim(const ClaimRecord& claim, Version version, Timestamp due,
               const DurableClock& durable_clock, std::string& out) {
  SEMEL_ASSERT(claim.memos.empty());  // work that is not over stays in memory
  const Timestamp times[] = {claim.lease_until, claim.result_until, claim.unique_until};
  std::uint64_t flags = static_cast<std::uint64_t>(claim.state) | form_of(times[0], due)
                                                                      << lease_shift;
  flags |= form_of(times[1], due) << result_shift | form_of(times[2], due) << unique_shift;
  if (claim.result_expired) flags |= flag_expired;
  if (claim.poison) flags |= flag_poison;
  if (claim.attempts != 1) flags |= flag_attempts;
  if (claim.claim_id) flags |= flag_id;
  if (claim.result_digest != decltype(claim.result_digest){}) flags |= flag_digest;
  if (claim.fingerprint.algorithm != 0) flags |= flag_fingerprint;
  if (!claim.owner.empty()) flags |= flag_owner;
  put_varint(flags, out);
  put_varint(version - claim.epoch, out);
  if ((flags & flag_attempts) != 0) put_varint(claim.attempts, out);
  for (const Timestamp time : times) {
    if (form_of(time, due) != 2) continue;
    put_signed(durable_clock.to_durable_ms(time) - origin_of(due, durable_clock), out);
  }
  if (claim.claim_id) put_array(*claim.claim_id, out);
  if ((flags & flag_digest) != 0) put_array(claim.result_digest, out);
  if ((flags & flag_fingerprint) != 0) {
    out.push_back(static_cast<char>(claim.fingerprint.algorithm));
    put_array(claim.fingerprint.digest, out);
  }
  if ((flags & flag_owner) != 0) {
    out.push_back(static_cast<char>(claim.owner.size()));  // at most limits::owner_label_max
    out.append(claim.owner);
  }
  out.append(claim.result);
}

bool read_claim(Bytes from, Version version, Timestamp due, const DurableClock& durable_clock,
                ClaimRecord& claim) noexcept {
  std::uint64_t flags = 0;
  std::uint64_t behind = 0;
  std::uint64_t attempts = 1;
  if (!read_varint(from, flags) || !read_varint(from, behind)) return false;
  if ((flags & flag_attempts) != 0 && !read_varint(from, attempts)) return false;
  claim.state = static_cast<ClaimState>(flags & 7);
  claim.result_expired = (flags & flag_expired) != 0;
  claim.poison = (flags & flag_poison) != 0;
  claim.attempts = static_cast<std::uint32_t>(attempts);
  claim.epoch = version - behind;
  const auto take_time = [&](unsigned shift, Timestamp& time) {
    const std::uint64_t form = flags >> shift & 3;
    std::uint64_t difference = 0;
    if (form == 1) time = due;
    if (form != 2) return form != 3;
    if (!read_signed(from, difference)) return false;
    time = durable_clock.from_durable_ms(origin_of(due, durable_clock) + difference);
    return true;
  };
  if (!take_time(lease_shift, claim.lease_until) || !take_time(result_shift, claim.result_until) ||
      !take_time(unique_shift, claim.unique_until)) {
    return false;
  }
  if ((flags & flag_id) != 0 && !read_array(from, claim.claim_id.emplace())) return false;
  if ((flags & flag_digest) != 0 && !read_array(from, claim.result_digest)) return false;
  if ((flags & flag_fingerprint) != 0) {
    if (from.empty()) return false;
    claim.fingerprint.algorithm = static_cast<std::uint8_t>(from.front());
    from.remove_prefix(1);
    if (!read_array(from, claim.fingerprint.digest)) return false;
  }
  if ((flags & flag_owner) != 0) {
    if (from.empty()) return false;
    const auto size = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    if (!read_bytes(from, size, claim.owner)) return false;
  }
  claim.result = from;
  return true;
}

/// One byte and one value if all are the same, which is usual.
template <class ValueOf, class Put>
void put_column(std::span<const BucketRecord> records, std::string& out, ValueOf&& value_of,
                Put&& put) {
  const auto first = value_of(records.front());
  const bool same = std::all_of(records.begin(), records.end(),
                                [&](const auto& each) { return value_of(each) == first; });
  out.push_back(same ? 1 : 0);
  if (same) return put(first);
  for (const BucketRecord& record : records) put(value_of(record));
}

}  // namespace

std::uint8_t encode_value(const Mutation& record, const DurableClock& durable_clock,
                          std::string& out) {
  SEMEL_ASSERT(record.db < limits::db_count);
  SEMEL_ASSERT(record.claim.has_value() == (record.kind == Kind::claim));
  auto head = static_cast<std::uint8_t>(record.db << 4);
  if (record.due == no_end) head |= head_endless;
  head |= head_of(record.kind);
  if (record.kind == Kind::claim) {
    put_claim(*record.claim, record.version, record.due, durable_clock, out);
  } else {
    out.append(record.value);
  }
  return head;
}

void encode_bucket(std::span<const BucketRecord> records, std::string& out) {
  put_varint(records.size(), out);
  if (records.empty()) return;
  const auto varint = [&](std::uint64_t value) { put_varint(value, out); };
  put_column(
      records, out, [](const BucketRecord& r) { return r.head; },
      [&](std::uint8_t head) { out.push_back(static_cast<char>(head)); });
  put_column(
      records, out, [](const BucketRecord& r) { return r.key.size(); }, varint);
  put_column(
      records, out, [](const BucketRecord& r) { return r.value.size(); }, varint);
  // Columns with values of different length begin with their size, so that all can be read in
  // parallel.
  std::string column;
  Version version = 0;
  for (const BucketRecord& record : records) {
    SEMEL_ASSERT(record.version >= version);
    put_varint(record.version - version, column);
    version = record.version;
  }
  put_varint(column.size(), out);
  out.append(column);
  column.clear();
  std::uint64_t due = 0;
  for (const BucketRecord& record : records) {
    if (record.due == DurableClock::no_end_ms) continue;
    put_signed(record.due - due, column);
    due = record.due;
  }
  put_varint(column.size(), out);
  out.append(column);
  for (const BucketRecord& record : records) out.append(record.key);
  for (const BucketRecord& record : records) out.append(record.value);
}

void BucketReader::stop() noexcept {
  left_ = 0;
  damaged_ = true;
}

bool BucketReader::read_column(Bytes& from, bool bytes, Column& column) {
  if (from.empty()) return false;
  column.uniform = from.front() == 1;
  from.remove_prefix(1);
  const auto skip = [&](std::uint64_t& value) {
    if (!bytes) return read_varint(from, value);
    if (from.empty()) return false;
    value = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    return true;
  };
  if (column.uniform) return skip(column.same);
  const Bytes start = from;
  std::uint64_t ignored = 0;
  for (std::uint64_t i = 0; i < left_; ++i) {
    if (!skip(ignored)) return false;
  }
  column.rest = start.substr(0, start.size() - from.size());
  return true;
}

bool BucketReader::take(Column& column, bool bytes, std::uint64_t& value) {
  if (column.uniform) {
    value = column.same;
    return true;
  }
  if (!bytes) return read_varint(column.rest, value);
  if (column.rest.empty()) return false;
  value = static_cast<unsigned char>(column.rest.front());
  column.rest.remove_prefix(1);
  return true;
}

BucketReader::BucketReader(Bytes bucket) {
  if (!read_varint(bucket, left_)) {
    stop();
    return;
  }
  if (left_ == 0) return;
  std::uint64_t size = 0;
  const bool whole = read_column(bucket, true, heads_) && read_column(bucket, false, key_sizes_) &&
                     read_column(bucket, false, value_sizes_) && read_varint(bucket, size) &&
                     read_bytes(bucket, size, versions_) && read_varint(bucket, size) &&
                     read_bytes(bucket, size, dues_);
  if (!whole) {
    stop();
    return;
  }
  std::uint64_t key_bytes = 0;
  Column sizes = key_sizes_;
  if (sizes.uniform) {
    key_bytes = sizes.same * left_;
  } else {
    for (std::uint64_t i = 0; i < left_; ++i) {
      std::uint64_t each = 0;
      static_cast<void>(take(sizes, false, each));  // read_column() has checked them
      key_bytes += each;
    }
  }
  if (!read_bytes(bucket, key_bytes, keys_)) stop();
  values_ = bucket;
}

bool BucketReader::next(BucketRecord& record) {
  if (left_ == 0) return false;
  std::uint64_t head = 0;
  std::uint64_t key_size = 0;
  std::uint64_t value_size = 0;
  std::uint64_t more = 0;
  if (!take(heads_, true, head) || !take(key_sizes_, false, key_size) ||
      !take(value_sizes_, false, value_size) || !read_varint(versions_, more) ||
      !read_bytes(keys_, key_size, record.key) || !read_bytes(values_, value_size, record.value)) {
    stop();
    return false;
  }
  record.head = static_cast<std::uint8_t>(head);
  record.version = version_ += more;
  record.due = DurableClock::no_end_ms;
  if ((head & head_endless) == 0) {
    if (!read_signed(dues_, more)) {
      stop();
      return false;
    }
    record.due = due_ += more;
  }
  --left_;
  return true;
}

bool decode_record(const BucketRecord& from, const DurableClock& durable_clock, Mutation& record) {
  record.type = Mutation::Type::put;
  if (!read_kind(from.head, record.kind)) return false;
  record.db = from.head >> 4;
  record.version = from.version;
  record.due = record.keep_until = durable_clock.from_durable_ms(from.due);
  record.key = from.key;
  record.value = {};
  record.claim.reset();
  if (record.kind == Kind::claim) {
    return read_claim(from.value, record.version, record.due, durable_clock,
                      record.claim.emplace());
  }
  record.value = from.value;
  return true;
}

}  // namespace semel::storage
