// A Journal in memory, for tests and examples: keeps every mutation, can be replayed.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "semel/journal.hpp"

namespace semel {

class MemoryJournal final : public Journal {
 public:
  MemoryJournal();
  ~MemoryJournal() override;

  [[nodiscard]] Ticket append(std::span<const Mutation> group) override;
  [[nodiscard]] Status wait(Ticket ticket, Durability level) override;
  [[nodiscard]] Ticket newest() const override;
  [[nodiscard]] bool accepts_writes() const noexcept override;
  [[nodiscard]] bool accepts_frees() const noexcept override;

  /// The answer of accepts_writes(). At first: true.
  void set_accepts_writes(bool accepts) noexcept;
  /// While true, accepts_frees() is true even if accepts_writes() is false. At first: false.
  void set_accepts_frees(bool accepts) noexcept;

  /// Mutations so far; groups are numbered by ticket, starting at 1.
  [[nodiscard]] std::size_t size() const;
  /// Visits every mutation with its group's ticket, oldest first. Blocks appends until it returns.
  void replay(const std::function<void(Ticket, const Mutation&)>& visit) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel
