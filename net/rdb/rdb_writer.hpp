// Writes an RDB file (rdb_format.hpp) from payloads of DUMP.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace semel::net {

/// A payload of DUMP or FUNCTION DUMP without its footer.
struct DumpBody {
  std::string_view bytes{};
  unsigned version = 0;  ///< of the format
};
/// None: the checksum is not that of the bytes, or a release later than 7.2 wrote it.
[[nodiscard]] std::optional<DumpBody> body_of_dump(std::string_view payload);
/// The payload of a value that stands in a file of `version`, for RESTORE.
[[nodiscard]] std::string dump_of_value(std::uint8_t type, std::string_view value,
                                        unsigned version);

/// The file begins with `version`; then facts, libraries, and keys by database; then end(). The
/// bytes can be taken away at any time. std::bad_alloc.
class RdbWriter {
 public:
  explicit RdbWriter(unsigned version);

  void fact(std::string_view name, std::string_view value);
  /// The body of FUNCTION DUMP.
  void libraries(std::string_view body) { bytes_.append(body); }
  /// `keys`, of which `ends` end: as many as there are about.
  void database(std::uint64_t db, std::uint64_t keys, std::uint64_t ends);
  /// `body`: of DUMP. `end_ms`: since 1970.
  void key(std::string_view key, std::string_view body, std::optional<std::int64_t> end_ms);
  void end();
  /// The bytes since the last call.
  [[nodiscard]] std::string take();
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.size(); }

 private:
  void length(std::uint64_t value);
  void string(std::string_view text);

  std::string bytes_;
  std::uint64_t sum_ = 0;  // of those taken
};

}  // namespace semel::net
