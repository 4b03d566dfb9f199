// A piece of an input on its way through the threads of a run: read, split into lines, judged,
// written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "semel/types.hpp"
#include "tools/semel/dedup/blocks/key_set.hpp"
#include "tools/semel/records/line_parser.hpp"

namespace semel::tool {

inline constexpr std::size_t block_bytes = std::size_t{1} << 20;
inline constexpr std::size_t line_bytes_max = std::size_t{64} << 20;
static_assert(line_max_most <= line_bytes_max);

/// Bytes that are written before they are read, so they are not set to zero; they keep their
/// memory.
class RawBuffer {
 public:
  [[nodiscard]] char* data() const noexcept { return data_.get(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] Bytes bytes() const noexcept { return {data_.get(), size}; }
  void append(Bytes more);
  /// Keeps the first `size` bytes.
  void grow_to(std::size_t capacity);
  /// Releases a buffer that one long line has made large.
  void shrink_to(std::size_t capacity);
  std::size_t size = 0;

 private:
  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0;
};

/// Keys that are not part of their line.
class KeyChunks {
 public:
  /// Room for one key of at most this many bytes.
  [[nodiscard]] char* space(std::size_t bytes);
  void use(std::size_t bytes) noexcept { used_ += bytes; }
  void clear() noexcept { chunk_ = used_ = 0; }

 private:
  static constexpr std::size_t chunk_bytes = std::size_t{256} << 10;  // and space for a key behind
  std::vector<std::unique_ptr<char[]>> chunks_;                       // all for keys of bytes_max_
  std::size_t bytes_max_ = 0;
  std::size_t chunk_ = 0;
  std::size_t used_ = 0;
};

struct Block {
  // Written by the reader.
  RawBuffer bytes;
  std::size_t begin = 0;  ///< the bytes before it are the header of the input
  std::size_t input = 0;  ///< which of the inputs
  bool begins_input = false;
  bool carries_header = false;   ///< its header is the first of all inputs, and is written
  bool is_long_part = false;     ///< all of it belongs to one line that is too long for a block
  bool begins_inside = false;    ///< its first bytes are the rest of such a line
  std::uint64_t bytes_read = 0;  ///< of all inputs, up to this block
  double share = 0;              ///< of all inputs, up to this block; 0: not known
  struct Place {
    std::size_t input = 0;
    std::uint64_t offset = 0;  ///< of the input after this block, not compressed
  } place;

  // Written by the splitter.
  std::size_t rest = 0;                   ///< bytes of a long line before `begin`
  std::vector<std::uint32_t> ends;        ///< of each line, from the beginning of `bytes`
  std::vector<Fate> fates;                ///< of each line; the judges write them
  std::vector<std::vector<KeyRef>> keys;  ///< by part
  KeyChunks key_bytes;
  std::uint64_t newlines = 0;  ///< of the input in this block, its header's too
  struct Fault {
    std::size_t line = 0;        ///< of the block: this line and later ones are not written
    std::uint64_t newlines = 0;  ///< before it
    std::string text;
    bool is_memory = false;
  };
  std::optional<Fault> fault;

  // Written by the judges and by the thread that finishes the block.
  std::uint64_t first_line = 0;            ///< of all inputs
  std::vector<std::size_t> added;          ///< by part: keys that had memory
  std::vector<std::uint64_t> occurrences;  ///< with --count, of each line that is written
  RawBuffer first;
  RawBuffer duplicates;
  bool is_whole = false;  ///< `bytes` are the output as they are
  struct Counts {
    std::uint64_t first = 0;
    std::uint64_t repeats = 0;
    std::uint64_t no_key = 0;
    [[nodiscard]] std::uint64_t lines() const noexcept { return first + repeats + no_key; }
  } counts;

  [[nodiscard]] std::size_t lines() const noexcept { return ends.size(); }
  [[nodiscard]] Bytes line(std::size_t number) const noexcept {
    SEMEL_ASSERT(number < ends.size());
    const std::size_t from = number == 0 ? begin : ends[number - 1];
    return {bytes.data() + from, ends[number] - from};
  }
  /// Of a block that was split: each line has a fate, and lies behind `begin` in `bytes`.
  void check_invariants() const noexcept {
    SEMEL_ASSERT(rest <= begin && begin <= bytes.size);
    SEMEL_ASSERT(fates.size() == ends.size());
    SEMEL_ASSERT(ends.empty() || (begin < ends.front() && ends.back() <= bytes.size));
    SEMEL_ASSERT(!fault || fault->line <= ends.size());
  }
  /// The state of a block before it is judged.
  void reset(std::size_t parts);
};

}  // namespace semel::tool
