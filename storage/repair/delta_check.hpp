// Whether each delta has the record that it follows on: what recover() refuses otherwise, for
// verify_storage(); and which deltas a repair leaves out.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "semel/journal.hpp"

namespace semel::storage {

/// Two passes over all mutations. The first finds deltas without a base; hardly ever are there any.
/// The second, which only then is needed, finds out whether a newer record has overtaken them.
class DeltaCheck {
 public:
  void add(const Mutation& mutation);
  /// True: show all mutations again to add_again(). To be called when all were added.
  [[nodiscard]] bool needs_second_pass();
  void add_again(const Mutation& mutation);
  /// Keys that have such a delta which was not overtaken and lives at `now`.
  [[nodiscard]] std::size_t missing(Timestamp now) const;
  /// After needs_second_pass(): the base of this delta, or one before it, is not there.
  [[nodiscard]] bool is_orphan(std::uint8_t db, Bytes key, Version version) const;

 private:
  using Key = std::pair<std::uint8_t, std::string>;
  struct Delta {
    Version base = 0;
    Timestamp due{};
  };
  /// A key that has large records of an object, or deltas.
  struct Object {
    std::set<Version> whole;
    std::map<Version, Delta> deltas;
  };
  /// Of a key with orphans.
  struct Orphans {
    std::map<Version, Timestamp> due;
    Version newest = 0;  // of its other mutations
  };

  std::map<Key, Object> objects_;
  std::map<Key, Orphans> orphans_;
  std::map<std::uint8_t, Version> flushed_;  // by database: older records are gone
};

}  // namespace semel::storage
