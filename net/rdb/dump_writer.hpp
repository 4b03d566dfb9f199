// Writes the payload of DUMP: in the plain encodings, which redis-server turns into packed ones. By
// its version redis-server 7.0 and later read it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "net/rdb/dump_format.hpp"

namespace semel::net {

/// type, then count() where it has elements, then these in order, then take(). std::bad_alloc.
class DumpWriter {
 public:
  /// Of nothing: only raw() and string(), then take().
  DumpWriter() = default;
  explicit DumpWriter(RdbType type) { byte(static_cast<std::uint8_t>(type)); }

  /// A length: the number of elements, or another number.
  void count(std::uint64_t elements) { length(elements); }
  /// A number of 8 bytes, little-endian.
  void fixed(std::uint64_t number) { little(number, sizeof number); }
  void raw(std::string_view bytes) { bytes_.append(bytes); }
  /// An integer of 32 bits, as redis-server prints it, is written as one.
  void string(std::string_view bytes);
  /// Of sorted_set_2.
  void score(double score);
  /// The payload, with its footer. Once.
  [[nodiscard]] std::string take(std::uint16_t version = rdb_version_written);

 private:
  void byte(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void little(std::uint64_t value, std::size_t bytes);
  void big(std::uint64_t value, std::size_t bytes);
  void length(std::uint64_t value);

  std::string bytes_;
};

}  // namespace semel::net
