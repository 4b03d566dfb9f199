// Images of disks that wait to be opened, and the choice of the next one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/proofs/random.hpp"
#include "tests/storage/faults/scratch.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {

/// What a boot finds, and what it must find.
struct Image {
  std::uint64_t number = 0;
  unsigned lives = 0;  ///< before it
  std::string root{};
  Joins joins = Joins::no;
  bool is_tiered = false;
  bool all_ends = false;   ///< so that generations of the cold store are dropped
  bool is_urgent = false;  ///< of a moment that is looked at more often
  std::int64_t unix_ms = 1'700'000'000'000;
  Ledger ledger{};
};

/// Both must outlive it. Of one thread, but for child().
class ImagePool {
 public:
  ImagePool(const Scratch& scratch, proofs::Random& random) : scratch_(scratch), random_(random) {}

  /// A waiting one, or that of a new storage, for the keys of so many threads. One new storage in
  /// two has joined commits, one in two a cold store.
  [[nodiscard]] Image next(unsigned threads);
  /// Of the same storage, with a number and a place of its own. Not beside a call of another.
  [[nodiscard]] Image child(const Image& of);
  /// Keeps so many as there is room for. Urgent images make room for others as soon as they are
  /// half of all.
  void add(std::vector<Image>&& images);
  static void remove(const Image& image);

 private:
  const Scratch& scratch_;
  proofs::Random& random_;
  std::uint64_t numbers_ = 0;
  std::uint64_t storages_ = 0;
  std::vector<Image> waiting_;
};

}  // namespace semel::faults
