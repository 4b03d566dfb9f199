// The options of `semel dedup`, and its counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "semel/types.hpp"
#include "tools/semel/records/compressor.hpp"
#include "tools/semel/records/line_parser.hpp"

namespace semel::tool {

inline constexpr unsigned threads_max = 64;

struct DedupOptions {
  enum class Missing : std::uint8_t { error, pass, key };
  enum class Late : std::uint8_t { pass, drop };
  enum class Keep : std::uint8_t { first, last };
  enum class Select : std::uint8_t { each, unique, repeated };

  std::vector<std::string> files;  ///< "-": standard input; never empty
  LineRule rule;
  std::optional<Millis> window;  ///< none: no limit
  bool sliding = false;          ///< a repeat starts the window again
  Missing missing = Missing::error;
  Late late = Late::pass;
  Keep keep = Keep::first;       ///< which line of a key is written
  Select select = Select::each;  ///< of which keys one is written
  bool count = false;            ///< the number of occurrences before each line
  std::string output_path;       ///< empty: standard output
  Compression compression = Compression::none;
  std::string duplicates_path;  ///< empty: nowhere
  bool total = false;           ///< print only how many first occurrences there are
  bool stats = false;
  bool quiet = false;
  bool digest = false;  ///< keys are remembered by 128 bits of a hash
  unsigned threads = 1;
  std::size_t memory_bytes = 0;
  std::string state_path;        ///< empty: nothing is kept after the run
  std::string resume_path;       ///< empty: a run that was killed begins again
  std::size_t resume_every = 0;  ///< bytes of input between checkpoints

  /// The output depends on the whole input: the input is read twice.
  [[nodiscard]] bool needs_whole_input() const noexcept {
    return keep == Keep::last || select != Select::each || count;
  }
  /// Keys that expire, or that outlive the run, are records of the engine.
  [[nodiscard]] bool needs_engine() const noexcept {
    return window.has_value() || !state_path.empty();
  }
};

struct DedupCounts {
  std::uint64_t lines = 0;
  std::uint64_t first = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t without_key = 0;  ///< passed on under --missing pass
  std::uint64_t late = 0;         ///< older than the window on arrival
};

}  // namespace semel::tool
