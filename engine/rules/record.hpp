// What one key holds, as the truth tables see it, and what they decide.
#pragma once

#include <cstdint>

#include "semel/op.hpp"
#include "semel/types.hpp"

namespace semel::engine {

/// A live record. Bytes stay valid while the caller is inside its operation.
struct RecordView {
  Kind kind = Kind::string;
  /// Of a string; of a claim: see claim_codec.hpp; of a hash: hash_value.hpp; of the others:
  /// packed_object.hpp, or the name of a large object. A record may be stored again with it.
  Bytes value;
  Timestamp due = no_end;
  Version version = 0;
  bool raw = false;  ///< of a string: it grew by APPEND or SETRANGE (OBJECT ENCODING)
};

enum class Action : std::uint8_t {
  keep,   ///< change nothing
  store,  ///< the record becomes {kind, value, due}
  erase,  ///< the record goes
};

/// What else becomes visible with a record: the nodes of a large object. begin() and end() are
/// called around the compare-and-set that publishes the record.
class Publication {
 public:
  virtual ~Publication() = default;
  /// False: others have changed what it begins from, so the decision is to be made again.
  [[nodiscard]] virtual bool begin() noexcept = 0;
  virtual void end(bool is_published) noexcept = 0;
};

/// Result of a truth table: a pure function of (record or none, operation, now).
struct Decision {
  Action action = Action::keep;
  Kind kind = Kind::string;
  Timestamp due = no_end;
  Bytes value;  ///< may point into the operation, the record seen, or the caller's scratch
  /// A store that only frees: the record ends sooner, or a claim is no longer held. Accepted while
  /// the journal accepts no other writes, as every erase is.
  bool gives_up = false;
  /// A store that changes no answer, and is no change of the record: the version stays.
  bool keeps_version = false;
  bool raw = false;  ///< a store of a string: as RecordView::raw
  /// There was no memory to make the value.
  bool no_memory = false;
  /// Of a store of a large object that was changed; null: none.
  Publication* publication = nullptr;
  bool only_looks = false;  ///< no use of the key, by which a cache chooses
  /// A store that keeps kind and end: what it changes of the record seen (edit_trail.hpp); empty:
  /// not known. Valid as long as `value`.
  Bytes trail{};

  [[nodiscard]] bool frees() const noexcept { return action == Action::erase || gives_up; }
};

}  // namespace semel::engine
