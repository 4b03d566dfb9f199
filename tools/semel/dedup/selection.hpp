// Which lines of the whole input are written, and how often their keys occurred: the notes of all
// parts of the keys, in the order of the lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "semel/result.hpp"
#include "tools/semel/dedup/blocks/key_set.hpp"
#include "tools/semel/dedup/blocks/pages.hpp"
#include "tools/semel/dedup/dedup_options.hpp"

namespace semel::tool {

class Selection {
 public:
  /// `sets` and `budget` outlive this.
  Selection(const std::vector<KeySet>& sets, const DedupOptions& options, MemoryBudget& budget);

  /// Error: --keep last sorts the notes, and the memory for it is not there.
  [[nodiscard]] Status prepare();
  /// The next line to write, or null. Valid until take().
  [[nodiscard]] const KeyNote* peek() const noexcept;
  void take();

 private:
  struct Part {
    KeySet::Notes notes;
    Pages sorted;  ///< with --keep last; else the notes are in order as they are
    std::size_t sorted_count = 0;
    std::size_t sorted_at = 0;
    KeyNote next{};
    bool is_over = false;
  };
  [[nodiscard]] bool is_wanted(const KeyNote& note) const noexcept;
  void advance(Part& part) const;
  void choose() noexcept;

  const DedupOptions& options_;
  MemoryBudget& budget_;
  std::vector<Part> parts_;
  Part* chosen_ = nullptr;
};

}  // namespace semel::tool
