// A hash as one operation finds it, and how it changes it: fields that have ended are not there,
// and a change takes them out.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "engine/hashes/hash_op.hpp"
#include "engine/rules/hash_value.hpp"
#include "engine/rules/record.hpp"

namespace semel::engine {

class HashGround {
 public:
  /// `live` (null: absent) must live as long as this; `view` is of its value.
  HashGround(const RecordView* live, const HashView& view, Timestamp now) noexcept
      : live_(live), view_(view), now_(now) {}

  /// With the fields that have ended.
  [[nodiscard]] const HashView& all() const noexcept { return view_; }
  [[nodiscard]] Timestamp now() const noexcept { return now_; }
  /// Whether a field has ended and is still in the record.
  [[nodiscard]] bool some_ended() const noexcept {
    return view_.has_ends() && view_.ends().first <= now_;
  }
  [[nodiscard]] bool is_live(const HashView::Found& pair) const noexcept { return pair.due > now_; }

  [[nodiscard]] std::optional<HashView::Found> find(Bytes field) const noexcept {
    std::optional<HashView::Found> found = view_.find(field);
    if (found && !is_live(*found)) found.reset();
    return found;
  }
  /// Calls `visit(HashView::Found)` for each field in order.
  template <class Visit>
  void each(Visit&& visit) const {
    view_.each([&](const HashView::Found& pair) {
      if (is_live(pair)) visit(pair);
    });
  }
  [[nodiscard]] std::size_t size() const noexcept;

  /// Makes the changes. HashOutcome::number: how many fields are new or were removed. Errors:
  /// value_too_long.
  [[nodiscard]] Decision write(std::span<const HashChange> changes, const HashFacts& facts,
                               HashOutcome& outcome, std::string& scratch) const;
  /// Takes out the ended fields, of which there is one.
  [[nodiscard]] Decision trim(std::string& scratch) const;

 private:
  /// Makes `to` the hash without its ended fields. False: no field is left.
  [[nodiscard]] bool write_live(std::uint64_t seed, std::string& to) const;
  [[nodiscard]] Timestamp key_end() const noexcept;

  const RecordView* live_;
  const HashView& view_;
  Timestamp now_;
};

/// Takes the ended fields out of a live hash. Keeps it if none has ended.
[[nodiscard]] Decision trim_hash(const RecordView& live, Timestamp now, std::string& scratch);

}  // namespace semel::engine
