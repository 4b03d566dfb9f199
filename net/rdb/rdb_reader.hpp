// Reads an RDB file (rdb_format.hpp) that arrives in pieces of any size, item by item.
//
//   RdbReader reader;
//   reader.feed(piece);
//   while (reader.next() == RdbProgress::item) use(reader.item());
//   // more: feed the next piece.  end: reader.rest() stands behind the file.  fault: fault_text()
//
// Values are not unpacked here: read_value(item.type, item.value, ..) of dump_reader.hpp does that,
// and item.value is what RESTORE takes, behind the type and with a footer.
//
// The bytes may be any. Memory is that of the pieces, and of one item as far as it has arrived:
// lengths that a file states allocate nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/rdb/item_scan.hpp"

namespace semel::net {

/// Its views are valid until the next call of the reader.
struct RdbItem {
  enum class What : std::uint8_t {
    fact,         ///< `name` and `text`: what the writer says of itself, "redis-ver" and others
    sizes,        ///< `keys` and `ends`: how many keys the database `db` has, and of these end
    key,          ///< `key`, `type`, `value`, and when it ends
    library,      ///< `text`: the code of a library of functions
    module_key,   ///< `key` has a value of the module type `name`, which cannot be read
    module_data,  ///< what the module type `name` keeps besides keys, which cannot be read
  };
  What what = What::fact;
  std::uint64_t offset = 0;  ///< in the file
  int db = 0;
  std::string_view name{};
  std::string_view text{};
  std::string_view key{};
  std::uint8_t type = 0;
  std::string_view value{};
  std::optional<std::int64_t> end_ms{};  ///< since 1970
  std::optional<std::uint64_t> idle_s{};
  std::optional<std::uint8_t> frequency{};
  std::uint64_t keys = 0;
  std::uint64_t ends = 0;
};

enum class RdbProgress : std::uint8_t { more, item, end, fault };

enum class RdbFault : std::uint8_t {
  none,
  header,    ///< it does not begin as an RDB file
  version,   ///< of a later release
  first,     ///< an item begins with a byte that is none of rdb_format.hpp
  damaged,   ///< an item is not what its first byte says
  large,     ///< an item is larger than RdbOptions::item_bytes_max
  checksum,  ///< is not that of the bytes
  cut,       ///< the bytes end before the file
};

struct RdbOptions {
  std::size_t item_bytes_max = std::size_t{1} << 30;  ///< of a key and its value, as in the file
};

/// Of one thread. std::bad_alloc.
class RdbReader {
 public:
  explicit RdbReader(RdbOptions options = {}) noexcept : options_(options) {}

  /// Takes the next bytes of the file. Behind the end they are added to rest().
  void feed(std::string_view bytes);
  /// Reads one item. After end and fault the answer stays.
  [[nodiscard]] RdbProgress next();
  /// There are no more bytes: without an end before, this is a fault.
  [[nodiscard]] RdbProgress finish();

  [[nodiscard]] const RdbItem& item() const noexcept { return item_; }
  /// The bytes that were fed and are not part of the file. After end.
  [[nodiscard]] std::string_view rest() const noexcept { return left(); }
  /// 1 to rdb_version_read_max; 0: the header has not arrived.
  [[nodiscard]] unsigned version() const noexcept { return version_; }
  /// Bytes of the file that have been read.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

  [[nodiscard]] RdbFault fault() const noexcept { return fault_; }
  [[nodiscard]] std::uint64_t fault_offset() const noexcept { return fault_offset_; }
  /// One clause, with the offset.
  [[nodiscard]] std::string fault_text() const;

 private:
  [[nodiscard]] std::string_view left() const noexcept {
    return std::string_view{buffer_}.substr(begin_);
  }
  void consume(std::size_t bytes) noexcept;
  RdbProgress fail(RdbFault fault, std::uint64_t behind = 0) noexcept;
  RdbProgress read_header() noexcept;
  RdbProgress read_end() noexcept;
  /// Item: something for the caller is in item_. More: go on with the next.
  RdbProgress read_item(std::uint8_t first, std::string_view bytes);
  RdbProgress read_key(std::uint8_t first, std::string_view bytes);
  RdbProgress show(RdbItem item) noexcept;

  RdbOptions options_;
  std::string buffer_;
  std::size_t begin_ = 0;     // where the rest begins
  std::uint64_t offset_ = 0;  // in the file, of begin_
  std::uint64_t sum_ = 0;
  unsigned version_ = 0;
  std::optional<ItemScan> scan_;  // of the item at begin_
  RdbItem item_;
  int db_ = 0;
  // Of the next key.
  std::optional<std::int64_t> end_ms_;
  std::optional<std::uint64_t> idle_s_;
  std::optional<std::uint8_t> frequency_;
  // Views of item_ point here where the file has packed bytes.
  std::string name_;
  std::string text_;
  bool is_ended_ = false;
  RdbFault fault_ = RdbFault::none;
  std::uint64_t fault_offset_ = 0;
};

}  // namespace semel::net
