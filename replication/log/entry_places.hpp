// Where the entries of a replicated log are on its disk, by index.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/assert.hpp"
#include "replication/log/log_entry.hpp"
#include "storage/log/log_format.hpp"

namespace semel::replication {

/// Entries first()..last() are there; none: last() is first() - 1. Belongs to one thread.
class EntryPlaces {
 public:
  struct Place {
    storage::LogOffset offset;
    std::uint32_t bytes;  // of the data
    std::uint8_t type;
    Term term;
  };

  [[nodiscard]] LogIndex first() const noexcept { return first_; }
  [[nodiscard]] LogIndex last() const noexcept { return first_ + places_.size() - 1; }
  /// Null: it is not there.
  [[nodiscard]] const Place* find(LogIndex index) const noexcept {
    return index < first_ || index > last() ? nullptr : &places_[index - first_];
  }
  /// Of an entry that is there, or of the one before the first, if it is known; else 0.
  [[nodiscard]] Term term_of(LogIndex index) const noexcept {
    if (index + 1 == first_) return term_before_;
    const Place* const found = find(index);
    return found == nullptr ? 0 : found->term;
  }
  /// Whether an entry may stand at `index` next: it replaces one, or follows the last.
  [[nodiscard]] bool continues(LogIndex index) const noexcept {
    return index >= first_ && index <= last() + 1;
  }

  /// What a statement at `offset` changes. What it is about continues().
  void take(const LogStatement& statement, storage::LogOffset offset) {
    using What = LogStatement::What;
    const LogEntry& entry = statement.entry;
    SEMEL_ASSERT(statement.what != What::entry || continues(entry.index));
    switch (statement.what) {
      case What::begin:
        break;
      case What::entry:
        places_.resize(entry.index - first_);
        places_.push_back(
            {offset, static_cast<std::uint32_t>(entry.data.size()), entry.type, entry.term});
        break;
      case What::truncate:
        places_.resize(std::min<std::size_t>(places_.size(), entry.index - first_));
        break;
      case What::restart:
        places_.clear();
        first_ = entry.index + 1;
        term_before_ = entry.term;
        break;
    }
  }
  /// The log begins with `index`: earlier entries are unknown.
  void begin(LogIndex index) noexcept {
    places_.clear();
    first_ = index;
  }
  /// Forgets entries up to `index`, which is there. Returns the offset of the first remaining
  /// entry; none: there is none.
  std::optional<storage::LogOffset> forget(LogIndex index) {
    SEMEL_ASSERT_SLOW(find(index) != nullptr);
    term_before_ = term_of(index);
    places_.erase(places_.begin(),
                  places_.begin() + static_cast<std::ptrdiff_t>(index + 1 - first_));
    first_ = index + 1;
    if (places_.empty()) return std::nullopt;
    return places_.front().offset;
  }

 private:
  LogIndex first_ = 1;
  Term term_before_ = 0;  // of the entry before the first; 0: not known
  std::deque<Place> places_;
};

}  // namespace semel::replication
