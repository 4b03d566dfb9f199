// From the bytes of a block to its lines and their keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "semel/types.hpp"
#include "tools/semel/dedup/blocks/block.hpp"
#include "tools/semel/dedup/blocks/key_hash.hpp"
#include "tools/semel/records/line_parser.hpp"

namespace semel::tool {

class BlockSplitter {
 public:
  struct Options {
    unsigned threads = 1;
    unsigned parts = 1;           ///< of the keys: a power of two
    bool passes_missing = false;  ///< a line without a key is no fault of the block
    bool has_digests = false;     ///< KeyHash::digest_bytes stand for a key
  };
  /// `rule` may change until the first block is split. References outlive this.
  BlockSplitter(const LineRule& rule, const KeyHash& hash, const Options& options);

  /// not_noted: the block gets its lines, and the fate of those without a key.
  enum class Keys : std::uint8_t { noted, not_noted };
  /// Several threads at once, each with another `thread` and another block.
  void split(Block& block, unsigned thread, Keys keys);

 private:
  [[nodiscard]] bool take_rest(Block& block) const;
  template <class AddLine>
  void for_each_line(Block& block, AddLine add_line) const;
  [[nodiscard]] Bytes without_mark(const Block& block, Bytes line) const;
  void parse_lines(Block& block, LineParser& parser, Keys keys) const;
  void add_key(Block& block, Bytes key, std::uint32_t line) const;
  void count_newlines(Block& block) const;

  const LineRule& rule_;
  const KeyHash& hash_;
  const Options options_;
  const unsigned part_shift_;
  std::vector<std::unique_ptr<LineParser>> parsers_;  ///< by thread
};

}  // namespace semel::tool
