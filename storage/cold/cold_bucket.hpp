// A bucket: the records of a range of ranks as one value on disk, some 4 KiB. It is stored by
// columns, so that a record takes its key, its value and a few bytes.
//
//   varint records
//   | column of heads, u8: bits 0, 2, 3 kind minus 1 (Kind), bit 1 does not end, bits 4..7 database
//   | column of key lengths | column of value lengths | varint first version
//   | varint each: how much larger than the one before | zigzag varint each, of those that end:
//   end minus the one before (the first: minus 0) | keys | values
//   column            u8 1, then one value for all; or u8 0, then a value each (lengths: varints)
//   value of a claim  varint flags | varint version minus epoch | varint attempts unless 1
//   | zigzag varint each, unless it is none or the record's end: lease, result, unique end, minus
//   the record's end, or 0 where that has none | 16 bytes each, if there: claim id, result digest;
//   u8 fingerprint algorithm and 16 bytes | u8 owner bytes, owner | result
//
// Records are sorted by version. Times are those of a DurableClock. The block around it carries
// RocksDB's checksum.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/coding.hpp"
#include "semel/journal.hpp"
#include "storage/log/durable_clock.hpp"

namespace semel::storage {

/// A record of a bucket. Its value is encoded by encode_value().
struct BucketRecord {
  Version version;
  std::uint64_t due;  ///< of the durable clock; DurableClock::no_end_ms
  std::uint8_t head;  ///< see above
  Bytes key;
  Bytes value;
};

/// Appends the value of a put to `out` and returns its head.
[[nodiscard]] std::uint8_t encode_value(const Mutation& record, const DurableClock& durable_clock,
                                        std::string& out);

/// `records`: sorted by version.
void encode_bucket(std::span<const BucketRecord> records, std::string& out);

/// Reads a bucket from front to back. Bytes point into it.
class BucketReader {
 public:
  explicit BucketReader(Bytes bucket);
  /// False: at the end, or damaged().
  [[nodiscard]] bool next(BucketRecord& record);
  [[nodiscard]] bool damaged() const noexcept { return damaged_; }

 private:
  struct Column {
    base::ByteReader rest{{}};
    std::uint64_t same = 0;
    bool uniform = false;
  };
  /// `bytes`: of numbers of one byte, not of varints.
  [[nodiscard]] Column read_column(base::ByteReader& from, bool bytes) const noexcept;
  [[nodiscard]] static std::uint64_t take(base::ByteReader& from, bool bytes) noexcept;
  [[nodiscard]] static std::uint64_t take(Column& column, bool bytes) noexcept;
  void stop() noexcept;

  std::uint64_t left_ = 0;
  bool damaged_ = false;
  Column heads_;
  Column key_sizes_;
  Column value_sizes_;
  base::ByteReader versions_{{}};
  base::ByteReader dues_{{}};
  base::ByteReader keys_{{}};
  base::ByteReader values_{{}};
  Version version_ = 0;
  std::uint64_t due_ = 0;
};

/// A bucket's record as a mutation that points into it. False: damaged.
[[nodiscard]] bool decode_record(const BucketRecord& from, const DurableClock& durable_clock,
                                 Mutation& record);

}  // namespace semel::storage
