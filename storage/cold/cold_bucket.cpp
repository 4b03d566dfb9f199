#include "storage/cold/cold_bucket.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/coding.hpp"
#include "semel/claim_fields.hpp"
#include "semel/limits.hpp"
#include "semel/op.hpp"

namespace semel::storage {

namespace {

constexpr std::uint8_t head_endless = 2;

// A claim's flags, beside the rows of semel/claim_fields.hpp; bits 0..2: state.
constexpr unsigned lease_shift = 6;  // two bits each: 0 none, 1 the record's end, 2 another time
constexpr unsigned result_shift = 8;
constexpr unsigned unique_shift = 10;
constexpr std::uint64_t flag_id = 1U << 12;
constexpr std::uint64_t flag_digest = 1U << 13;
constexpr std::uint64_t flag_fingerprint = 1U << 14;
static_assert((stored_bits([](const auto& row) -> unsigned { return row.cold; }) & 0x7fc7U) == 0);

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
  for (const ClaimFlag& flag : claim_flags) {
    if (claim.*flag.field) flags |= flag.cold;
  }
  for (const ClaimNumber& number : claim_numbers) {
    if (claim.*number.kept != number.usual) flags |= number.cold;
  }
  if (claim.claim_id) flags |= flag_id;
  if (claim.result_digest != decltype(claim.result_digest){}) flags |= flag_digest;
  if (claim.fingerprint.algorithm != 0) flags |= flag_fingerprint;
  for (const ClaimText& text : claim_texts) {
    if (!(claim.*text.field).empty()) flags |= text.cold;
  }
  base::put_varint(out, flags);
  base::put_varint(out, version - claim.epoch);
  for (const ClaimNumber& number : claim_numbers) {
    if ((flags & number.cold) != 0) base::put_varint(out, claim.*number.kept);
  }
  for (const Timestamp time : times) {
    if (form_of(time, due) != 2) continue;
    base::put_signed(out, durable_clock.to_durable_ms(time) - origin_of(due, durable_clock));
  }
  if (claim.claim_id) base::put_array(out, *claim.claim_id);
  if ((flags & flag_digest) != 0) base::put_array(out, claim.result_digest);
  if ((flags & flag_fingerprint) != 0) {
    out.push_back(static_cast<char>(claim.fingerprint.algorithm));
    base::put_array(out, claim.fingerprint.digest);
  }
  for (const ClaimText& text : claim_texts) {
    if ((flags & text.cold) == 0) continue;
    const Bytes bytes = claim.*text.field;
    SEMEL_ASSERT(bytes.size() <= 255);
    out.push_back(static_cast<char>(bytes.size()));
    out.append(bytes);
  }
  out.append(claim.result);
}

bool read_claim(Bytes bytes, Version version, Timestamp due, const DurableClock& durable_clock,
                ClaimRecord& claim) noexcept {
  base::ByteReader from{bytes};
  const std::uint64_t flags = from.varint();
  const std::uint64_t behind = from.varint();
  claim.state = static_cast<ClaimState>(flags & 7);
  for (const ClaimFlag& flag : claim_flags) claim.*flag.field = (flags & flag.cold) != 0;
  for (const ClaimNumber& number : claim_numbers) {
    claim.*number.kept =
        (flags & number.cold) != 0 ? static_cast<std::uint32_t>(from.varint()) : number.usual;
  }
  claim.epoch = version - behind;
  const auto take_time = [&](unsigned shift, Timestamp& time) {
    const std::uint64_t form = flags >> shift & 3;
    if (form == 1) time = due;
    if (form == 3) from.fail();
    if (form != 2) return;
    time = durable_clock.from_durable_ms(origin_of(due, durable_clock) + from.signed_varint());
  };
  take_time(lease_shift, claim.lease_until);
  take_time(result_shift, claim.result_until);
  take_time(unique_shift, claim.unique_until);
  if ((flags & flag_id) != 0) from.array(claim.claim_id.emplace());
  if ((flags & flag_digest) != 0) from.array(claim.result_digest);
  if ((flags & flag_fingerprint) != 0) {
    claim.fingerprint.algorithm = from.fixed<std::uint8_t>();
    from.array(claim.fingerprint.digest);
  }
  for (const ClaimText& text : claim_texts) {
    if ((flags & text.cold) != 0) claim.*text.field = from.take(from.fixed<std::uint8_t>());
  }
  claim.result = from.take_rest();
  return from.is_good();
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
  base::put_varint(out, records.size());
  if (records.empty()) return;
  const auto varint = [&](std::uint64_t value) { base::put_varint(out, value); };
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
    base::put_varint(column, record.version - version);
    version = record.version;
  }
  base::put_prefixed(out, column);
  column.clear();
  std::uint64_t due = 0;
  for (const BucketRecord& record : records) {
    if (record.due == DurableClock::no_end_ms) continue;
    base::put_signed(column, record.due - due);
    due = record.due;
  }
  base::put_prefixed(out, column);
  for (const BucketRecord& record : records) out.append(record.key);
  for (const BucketRecord& record : records) out.append(record.value);
}

void BucketReader::stop() noexcept {
  left_ = 0;
  damaged_ = true;
}

std::uint64_t BucketReader::take(base::ByteReader& from, bool bytes) noexcept {
  return bytes ? from.fixed<std::uint8_t>() : from.varint();
}

std::uint64_t BucketReader::take(Column& column, bool bytes) noexcept {
  return column.uniform ? column.same : take(column.rest, bytes);
}

BucketReader::Column BucketReader::read_column(base::ByteReader& from, bool bytes) const noexcept {
  Column column;
  column.uniform = from.fixed<std::uint8_t>() == 1;
  if (column.uniform) {
    column.same = take(from, bytes);
    return column;
  }
  const Bytes start = from.rest();
  for (std::uint64_t i = 0; i < left_ && from.is_good(); ++i) static_cast<void>(take(from, bytes));
  column.rest = base::ByteReader{start.substr(0, start.size() - from.rest().size())};
  return column;
}

BucketReader::BucketReader(Bytes bucket) {
  base::ByteReader from{bucket};
  left_ = from.varint();
  if (left_ != 0) {
    heads_ = read_column(from, true);
    key_sizes_ = read_column(from, false);
    value_sizes_ = read_column(from, false);
    versions_ = base::ByteReader{from.prefixed()};
    dues_ = base::ByteReader{from.prefixed()};
  }
  if (!from.is_good()) {
    stop();
    return;
  }
  std::uint64_t key_bytes = 0;
  Column sizes = key_sizes_;
  if (sizes.uniform) {
    key_bytes = sizes.same * left_;
  } else {
    for (std::uint64_t i = 0; i < left_; ++i) key_bytes += take(sizes, false);
  }
  keys_ = base::ByteReader{from.take(key_bytes)};
  values_ = base::ByteReader{from.take_rest()};
  if (!from.is_good()) stop();
}

bool BucketReader::next(BucketRecord& record) {
  if (left_ == 0) return false;
  record.head = static_cast<std::uint8_t>(take(heads_, true));
  record.key = keys_.take(take(key_sizes_, false));
  record.value = values_.take(take(value_sizes_, false));
  record.version = version_ += versions_.varint();
  record.due = DurableClock::no_end_ms;
  if ((record.head & head_endless) == 0) record.due = due_ += dues_.signed_varint();
  for (const base::ByteReader* column :
       {&heads_.rest, &key_sizes_.rest, &value_sizes_.rest, &keys_, &values_, &versions_, &dues_}) {
    if (column->is_good()) continue;
    stop();
    return false;
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
