#include "net/rdb/rdb_writer.hpp"

#include <utility>

#include "base/assert.hpp"
#include "net/rdb/crc64.hpp"
#include "net/rdb/dump_bytes.hpp"
#include "net/rdb/dump_format.hpp"
#include "net/rdb/rdb_format.hpp"

namespace semel::net {

namespace {

constexpr std::size_t sum_bytes = 8;

void append_little(std::string& to, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i, value >>= 8) to.push_back(static_cast<char>(value));
}

void append_byte(std::string& to, std::uint8_t byte) {
  to.push_back(static_cast<char>(byte));
}

}  // namespace

std::optional<DumpBody> body_of_dump(std::string_view payload) {
  if (payload.size() < dump_footer_bytes) return std::nullopt;
  const std::string_view footer = payload.substr(payload.size() - dump_footer_bytes);
  const std::string_view summed = payload.substr(0, payload.size() - sum_bytes);
  const auto version = static_cast<unsigned>(little_number(footer.substr(0, 2)));
  if (version > rdb_version_read_max) return std::nullopt;
  if (little_number(footer.substr(2)) != crc64(summed)) return std::nullopt;
  payload.remove_suffix(dump_footer_bytes);
  return DumpBody{.bytes = payload, .version = version};
}

std::string dump_of_value(std::uint8_t type, std::string_view value, unsigned version) {
  std::string bytes;
  bytes.reserve(1 + value.size() + dump_footer_bytes);
  append_byte(bytes, type);
  bytes.append(value);
  append_little(bytes, version, 2);
  append_little(bytes, crc64(bytes), sum_bytes);
  return bytes;
}

RdbWriter::RdbWriter(unsigned version) {
  SEMEL_ASSERT(version >= 1 && version <= rdb_version_read_max);
  std::string digits = std::to_string(version);
  digits.insert(0, 4 - digits.size(), '0');
  bytes_ = "REDIS" + digits;
}

void RdbWriter::fact(std::string_view name, std::string_view value) {
  append_byte(bytes_, rdb_aux);
  string(name);
  string(value);
}

void RdbWriter::database(std::uint64_t db, std::uint64_t keys, std::uint64_t ends) {
  append_byte(bytes_, rdb_database);
  length(db);
  append_byte(bytes_, rdb_sizes);
  length(keys);
  length(ends);
}

void RdbWriter::key(std::string_view key, std::string_view body,
                    std::optional<std::int64_t> end_ms) {
  SEMEL_ASSERT(!body.empty());
  if (end_ms) {
    append_byte(bytes_, rdb_end_ms);
    append_little(bytes_, static_cast<std::uint64_t>(*end_ms), 8);
  }
  bytes_.push_back(body.front());
  string(key);
  bytes_.append(body.substr(1));
}

void RdbWriter::end() {
  append_byte(bytes_, rdb_end);
  append_little(bytes_, crc64(bytes_, sum_), sum_bytes);
}

std::string RdbWriter::take() {
  sum_ = crc64(bytes_, sum_);
  return std::exchange(bytes_, {});
}

void RdbWriter::length(std::uint64_t value) {
  constexpr std::uint8_t of_64_bits = 129;
  if (value < 64) return append_byte(bytes_, static_cast<std::uint8_t>(value));
  if (value < 16'384) {
    append_byte(bytes_, static_cast<std::uint8_t>(64 | value >> 8));
    return append_byte(bytes_, static_cast<std::uint8_t>(value));
  }
  append_byte(bytes_, of_64_bits);
  for (unsigned bits = 64; bits > 0;) {
    bits -= 8;
    append_byte(bytes_, static_cast<std::uint8_t>(value >> bits));
  }
}

void RdbWriter::string(std::string_view text) {
  length(text.size());
  bytes_.append(text);
}

}  // namespace semel::net
