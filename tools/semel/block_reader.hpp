// Reads inputs one after the other in large blocks of whole lines, so that the lines of a block can
// be used in place, without a copy, until the next block is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "semel/types.hpp"
#include "tools/semel/exit_code.hpp"

namespace semel::tool {

inline constexpr std::size_t block_bytes = std::size_t{1} << 20;
inline constexpr std::size_t line_bytes_max = std::size_t{64} << 20;

class BlockReader {
 public:
  BlockReader();
  ~BlockReader();
  BlockReader(const BlockReader&) = delete;
  BlockReader& operator=(const BlockReader&) = delete;

  /// Starts on `path` ("-": standard input) and drops what was left of the input before.
  [[nodiscard]] bool open(const std::string& path, Failure& failure);

  enum class Next { block, end, failed };
  /// The next lines, each with its newline; only the last of an input may lack it. `block` is
  /// valid until the next call. Blocks while the input has nothing.
  [[nodiscard]] Next next(Bytes& block, Failure& failure);

  /// True if next() would not wait for the writer of a pipe or a terminal, within `wait`.
  [[nodiscard]] bool ready(Millis wait) const;

  /// Bytes read from all inputs so far.
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return bytes_read_; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  void close();
  [[nodiscard]] bool make_room();

  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = block_bytes;
  std::size_t begin_ = 0;  ///< of the bytes not handed out
  std::size_t end_ = 0;
  std::uint64_t bytes_read_ = 0;
  std::string name_;
  int descriptor_ = -1;
  bool at_end_ = false;
};

}  // namespace semel::tool
