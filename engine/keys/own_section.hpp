// An atomic section as the core sees it; section.hpp is what it is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "semel/engine.hpp"

namespace semel::engine {

/// Takes the mutations of an atomic section, which leave as one group.
class MutationSink {
 public:
  virtual ~MutationSink() = default;
  virtual void add(const Mutation& mutation) = 0;
  /// Makes room, so that add() of `records` mutations with so many bytes of key, value and owner
  /// altogether cannot fail. std::bad_alloc.
  virtual void make_room(std::size_t bytes, std::size_t records) = 0;
  /// Whether the journal took writes when the section began, or, of a change that only frees, what
  /// frees and the section has nothing else.
  [[nodiscard]] virtual bool accepts(bool frees) const noexcept = 0;
};

/// Learns which records changed. A section passes on what it changed when it has ended.
class ChangeListener {
 public:
  /// False: no waiter. To be asked after the change was made visible.
  [[nodiscard]] virtual bool has_waiters() const noexcept = 0;
  virtual void changed(std::uint8_t db, Bytes key) noexcept = 0;
  /// Any record may have changed.
  virtual void all_changed() noexcept = 0;

 protected:
  ~ChangeListener() = default;
};

/// An atomic section as the thread that began it meets it: that thread's calls on the section's
/// shards happen inside.
class OwnSection : public MutationSink {
 public:
  [[nodiscard]] virtual Timestamp now() const noexcept = 0;
  [[nodiscard]] virtual bool holds_shard(std::uint32_t shard) const noexcept = 0;
  /// Waiters for this key are notified when the section has ended.
  virtual void note_change(const KeyRef& key) = 0;
  /// The same for waiters for any key.
  virtual void note_all_changed() = 0;
  /// Ends the waits of no_wait threads for the section.
  virtual void take_long() noexcept = 0;
};

}  // namespace semel::engine
