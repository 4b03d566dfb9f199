// A hash as one operation finds it, packed or large, and how it changes it: fields that have ended
// are not there, and a change takes them out.
#pragma once

#include <optional>
#include <span>

#include "engine/hashes/hash_op.hpp"
#include "engine/hashes/hash_scratch.hpp"
#include "engine/objects/hash_tree.hpp"
#include "engine/rules/hash_value.hpp"
#include "engine/rules/record.hpp"

namespace semel::engine {

class HashGround {
 public:
  /// `live` (null: absent), which is a hash, must live as long as this.
  HashGround(const RecordView* live, Timestamp now) noexcept
      : live_(live),
        object_(live == nullptr ? nullptr : large_object_of(Kind::hash, live->value)),
        now_(now) {
    if (live_ != nullptr && object_ == nullptr) view_ = HashView{live_->value};
  }

  /// False: the record is damaged.
  [[nodiscard]] bool is_good() const noexcept { return view_.good(); }
  [[nodiscard]] Timestamp now() const noexcept { return now_; }
  /// No field is in the record, not even one that has ended.
  [[nodiscard]] bool is_empty() const noexcept { return live_ == nullptr; }
  /// Whether a field has ended and is still in the record.
  [[nodiscard]] bool some_ended() const noexcept;
  /// Whether a field that is there has an end.
  [[nodiscard]] bool has_live_ends() const noexcept;

  [[nodiscard]] std::optional<HashView::Found> find(Bytes field) const {
    std::optional<HashView::Found> found =
        object_ == nullptr ? view_.find(field) : find_in_tree(field);
    if (found && !is_live(*found)) found.reset();
    return found;
  }
  /// Calls `visit(HashView::Found)` for each field in order.
  template <class Visit>
  void each(Visit&& visit) const {
    each_with_ended([&](const HashView::Found& pair) {
      if (is_live(pair)) visit(pair);
    });
  }
  [[nodiscard]] std::size_t size() const noexcept;
  /// With the fields that have ended.
  [[nodiscard]] std::size_t all_size() const noexcept {
    return object_ == nullptr ? view_.size() : HashTrees{*object_}.size();
  }
  /// Whether at_rank() looks at few fields.
  [[nodiscard]] bool has_ranks() const noexcept {
    return !some_ended() && (object_ != nullptr || view_.is_indexed());
  }
  /// Of one that has_ranks(): a field for each rank below size(). None: the record is damaged.
  [[nodiscard]] std::optional<HashView::Found> at_rank(std::size_t rank) const noexcept;
  /// Of one with more than plain_fields_max fields: calls `visit(hash, HashView::Found)` in the
  /// order of the hashes, from `first` on, until it returns false.
  template <class Visit>
  void each_from(std::uint32_t first, Visit&& visit) const;

  /// Makes the changes. HashOutcome::number: how many fields are new or were removed. Errors:
  /// value_too_long.
  [[nodiscard]] Decision write(std::span<const HashChange> changes, const HashFacts& facts,
                               HashOutcome& outcome, HashScratch& scratch) const;

 private:
  [[nodiscard]] bool is_live(const HashView::Found& pair) const noexcept { return pair.due > now_; }
  [[nodiscard]] std::optional<HashView::Found> find_in_tree(Bytes field) const;
  template <class Visit>
  void each_with_ended(Visit&& visit) const {
    if (object_ == nullptr) return view_.each(visit);
    for (TreeCursor at = object_->tree().at(0); at.has_element(); at.next()) {
      visit(field_at(at.element()));
    }
  }
  [[nodiscard]] Timestamp key_end() const noexcept;
  [[nodiscard]] Decision write_large(std::span<const HashChange> changes, const HashFacts& facts,
                                     HashOutcome& outcome, HashScratch& scratch) const;
  /// Makes it large, with the changes. `ground`: it, without the fields that have ended.
  [[nodiscard]] Decision make_large(const HashView& ground, std::span<const HashChange> changes,
                                    const HashFacts& facts, HashScratch& scratch) const;
  /// `decision` with the trail, if that may stand for it.
  [[nodiscard]] Decision with_trail(Decision decision, const HashScratch& scratch) const noexcept;

  const RecordView* live_;
  const LargeObject* object_;  // null: it is packed
  HashView view_;              // of a packed one
  Timestamp now_;
};

template <class Visit>
void HashGround::each_from(std::uint32_t first, Visit&& visit) const {
  if (object_ != nullptr) {
    TreeCursor at = object_->tree().lower_bound(FieldKey{first, {}}.bytes());
    for (; at.has_element(); at.next()) {
      const TreeElement element = at.element();
      if (!visit(hash_of_key(element.key), field_at(element))) return;
    }
    return;
  }
  for (std::size_t i = view_.lower_bound(first); i < view_.size(); ++i) {
    const std::uint64_t word = view_.index_word(i);
    const auto pair = view_.pair_at(static_cast<std::uint32_t>(word));
    if (pair && !visit(static_cast<std::uint32_t>(word >> 32), *pair)) return;
  }
}

}  // namespace semel::engine
