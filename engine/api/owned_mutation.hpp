// A mutation that owns its bytes, for whoever keeps one beyond the call that showed it.
#pragma once

#include <string>

#include "semel/journal.hpp"

namespace semel::engine {

/// A copy of a mutation with all bytes that it refers to. A field of bytes that a mutation or a
/// claim gains has its copy here. Thread safety: as that of std::string.
class OwnedMutation {
 public:
  /// Copies `from`. Throws std::bad_alloc.
  explicit OwnedMutation(const Mutation& from)
      : mutation_(from), key_(from.key), value_(from.value), trail_(from.trail) {
    if (!from.claim) return;
    owner_ = from.claim->owner;
    result_ = from.claim->result;
    memos_ = from.claim->memos;
  }

  /// The mutation; its bytes live as long as this copy.
  [[nodiscard]] Mutation view() const {
    Mutation seen = mutation_;
    seen.key = key_;
    seen.value = value_;
    seen.trail = trail_;
    if (seen.claim) {
      seen.claim->owner = owner_;
      seen.claim->result = result_;
      seen.claim->memos = memos_;
    }
    return seen;
  }

 private:
  Mutation mutation_;  // its bytes are those of the call that showed it: only view() is read
  std::string key_;
  std::string value_;
  std::string trail_;
  std::string owner_;
  std::string result_;
  std::string memos_;
};

}  // namespace semel::engine
