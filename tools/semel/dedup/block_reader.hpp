// Reads inputs one after the other in large blocks of whole lines, so that the lines of a block can
// be used in place, without a copy, until the next call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/assert.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"
#include "tools/semel/dedup/blocks/block.hpp"
#include "tools/semel/records/byte_source.hpp"

namespace semel::tool {

class BlockReader {
 public:
  BlockReader();
  BlockReader(const BlockReader&) = delete;
  BlockReader& operator=(const BlockReader&) = delete;

  /// Starts on `path` ("-": standard input) and drops the rest of the previous input. A line ends
  /// with `terminator`.
  [[nodiscard]] Status open(const std::string& path, char terminator);

  struct Piece {
    enum class Kind : std::uint8_t {
      block,  ///< the next lines, each with its newline; only the last of an input may lack it
      part,   ///< of a line that is longer than line_bytes_max; its end comes in a `block`
      nothing_yet,  ///< the input so far has no complete line
      end,
    };
    Kind kind = Kind::nothing_yet;
    Bytes bytes{};  ///< of `block` and `part`; valid until the next call
  };
  /// Waits at most once for the input; not at all if ready().
  [[nodiscard]] Result<Piece> next();
  /// At the end: as ByteSource::tail().
  [[nodiscard]] const Status& tail() const noexcept { return source_.tail(); }
  /// Hands out the last `size` bytes of the last block again, in front of the next ones: they are
  /// not a complete record. At the end of the input they are returned as they are.
  void hand_back(std::size_t size) noexcept {
    SEMEL_ASSERT(size <= begin_);
    begin_ -= size;
  }
  /// Whether there is more than was handed out.
  [[nodiscard]] bool is_at_end() const noexcept { return at_end_; }

  /// True if next() would not wait for the writer of a pipe or a terminal, within `wait`. Ends
  /// early, and false, if `stop` (a descriptor, or -1) becomes readable.
  [[nodiscard]] bool ready(Millis wait, int stop) const;

  /// Bytes read from all inputs so far, compressed ones as they are.
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return source_.bytes_read(); }
  /// The bytes of the incomplete line.
  [[nodiscard]] std::size_t bytes_held() const noexcept { return end_ - begin_; }

 private:
  /// Makes space in the buffer. False: it is full with one line of line_bytes_max.
  [[nodiscard]] bool make_space();

  ByteSource source_;
  char terminator_ = '\n';
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = block_bytes;
  std::size_t begin_ = 0;  ///< of the bytes not handed out
  std::size_t end_ = 0;
  bool at_end_ = false;
};

}  // namespace semel::tool
