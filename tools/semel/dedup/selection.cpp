#include "tools/semel/dedup/selection.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/semel/shared/exit_code.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {

Selection::Selection(const std::vector<KeySet>& sets, const DedupOptions& options,
                     MemoryBudget& budget)
    : options_(options), budget_(budget) {
  for (const KeySet& set : sets) parts_.push_back(Part{KeySet::Notes{set}, Pages{budget}});
}

bool Selection::is_wanted(const KeyNote& note) const noexcept {
  switch (options_.select) {
    case DedupOptions::Select::unique:
      return note.count == 1;
    case DedupOptions::Select::repeated:
      return note.count > 1;
    case DedupOptions::Select::each:
      return true;
  }
  return true;
}

Status Selection::prepare() {
  for (Part& part : parts_) {
    if (options_.keep == DedupOptions::Keep::last) {
      if (!part.sorted.reserve(budget_.limit())) return memory_error("no addresses to sort lines");
      for (KeyNote note; part.notes.next(note);) {
        if (!is_wanted(note)) continue;
        if (!part.sorted.grow_to((part.sorted_count + 1) * sizeof note)) {
          return memory_error(fmt::format(
              "the memory limit of {} is reached while the lines to keep are sorted, which takes "
              "{} bytes a key. Allow more with --memory",
              format_bytes(budget_.limit()), sizeof note));
        }
        reinterpret_cast<KeyNote*>(part.sorted.data())[part.sorted_count++] = note;
      }
      auto* const notes = reinterpret_cast<KeyNote*>(part.sorted.data());
      std::sort(notes, notes + part.sorted_count,
                [](const KeyNote& one, const KeyNote& other) { return one.line < other.line; });
    }
    advance(part);
  }
  choose();
  return Done{};
}

void Selection::advance(Part& part) const {
  if (options_.keep == DedupOptions::Keep::last) {
    part.is_over = part.sorted_at == part.sorted_count;
    if (part.is_over) return;
    part.next = reinterpret_cast<const KeyNote*>(part.sorted.data())[part.sorted_at++];
    return;
  }
  do {
    part.is_over = !part.notes.next(part.next);
  } while (!part.is_over && !is_wanted(part.next));
}

void Selection::choose() noexcept {
  chosen_ = nullptr;
  for (Part& part : parts_) {
    if (!part.is_over && (chosen_ == nullptr || part.next.line < chosen_->next.line)) {
      chosen_ = &part;
    }
  }
}

const KeyNote* Selection::peek() const noexcept {
  return chosen_ == nullptr ? nullptr : &chosen_->next;
}

void Selection::take() {
  advance(*chosen_);
  choose();
}

}  // namespace semel::tool
