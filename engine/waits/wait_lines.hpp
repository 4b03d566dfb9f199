// The waiters of each key in order of arrival: a line for each key that is waited for, and a
// waiter in the lines of all its keys. A side table: it is empty while nothing waits.
//
// A waiter is, under the queue's mutex,
//   waiting -> asked    at its turn, while a thread tries for it without the lock
//   -> leaving          out of its lines, until it has been notified
//   -> running          its receiver runs, without the lock
//
// Everything that a wait needs is allocated by its Entrance. From then on nothing here can fail:
// the answers of others may depend on it, and grants are made on behalf of waiters.
//
// Invariants, see check_invariants():
//   the places of all lines == the places of all waiters that are waiting or asked;
//   a line is there while it has a place or is busy, and has at most waiters_per_key_max places;
//   a waiter is asked exactly while it has a line that asks it, and that line is busy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/memory/region.hpp"
#include "engine/waits/attempt.hpp"
#include "engine/waits/parked_threads.hpp"
#include "engine/waits/wait_marks.hpp"
#include "semel/claims.hpp"
#include "semel/section.hpp"

namespace semel::engine {

/// Bytes that all who use them keep alive.
using SharedKey = std::shared_ptr<const std::string>;

struct WaitLine;
struct Waiter;

/// Earliest first; the ticket tells equal times apart.
template <class Target>
using Alarms = std::map<std::pair<Timestamp, std::uint64_t>, Target*>;

/// A waiter in the line of one of its keys.
struct WaitPlace {
  Waiter* waiter = nullptr;
  WaitLine* line = nullptr;
  std::size_t key = 0;  ///< which of its keys
  WaitKind kind = WaitKind::claim;
  WaitPlace* before = nullptr;
  WaitPlace* after = nullptr;
};

struct WaitLine {
  LineName name{};
  SharedKey key;  // bytes of the name
  WaitPlace* first = nullptr;
  WaitPlace* last = nullptr;
  std::size_t size = 0;
  std::array<std::size_t, wait_kinds> sizes{};  // of each kind; in all: size
  bool busy = false;                            // a thread tries for its waiters, without the lock
  bool again = false;                           // something changed while it did
  Seen seen;                                    // by the last try that left a waiter in line
  std::uint64_t ticket = 0;
  std::size_t charged = 0;             // to the memory limit
  Alarms<WaitLine>::iterator timer{};  // when to try again; at no_end: not
};

struct Waiter {
  enum class State : std::uint8_t { waiting, asked, leaving, running };

  Attempt* attempt = nullptr;
  std::unique_ptr<Attempt> owned;      // with a receiver
  std::unique_ptr<Receiver> receiver;  // taken away when it is cancelled, or
  ParkedThread* parked = nullptr;      // the blocked thread
  std::vector<WaitPlace> places;
  Timestamp deadline = no_end;
  WaitTicket ticket = 0;
  WaitTicket arrival = 0;  // its order in its lines: a ticket, its own or an earlier one's
  State state = State::waiting;
  bool cancelled = false;            // its answer goes nowhere
  bool again = false;                // asked: another of its lines came to it
  WaitLine* asked_by = nullptr;      // asked: the line
  std::thread::id runner{};          // running: where
  Waiter* next = nullptr;            // leaving: to be notified by the same thread
  std::size_t charged = 0;           // to the memory limit
  Alarms<Waiter>::iterator timer{};  // if it has a deadline

  /// Whether it waits for `key`, or for nothing any more.
  [[nodiscard]] bool may_be_of(const KeyRef& key) const noexcept;
};

/// Guarded by the queue's mutex.
class WaitLines {
 public:
  using Waiters = std::map<WaitTicket, Waiter>;
  using Node = Waiters::node_type;
  using Lines = std::unordered_map<LineName, WaitLine, HashLineName>;

  /// All memory that a wait takes, in hand before anything is locked or counted. std::bad_alloc.
  struct Entrance {
    Entrance(std::span<const KeyRef> keys, Timestamp deadline);
    [[nodiscard]] Waiter& waiter() noexcept { return node.mapped(); }

    struct OfKey {
      SharedKey key;
      LineName name;
      Lines::node_type line;
      Alarms<WaitLine>::node_type timer;
    };
    std::vector<OfKey> keys;
    Node node;
    Alarms<Waiter>::node_type timer;
    std::size_t bytes = 0;  ///< at most, if all its lines are new
  };

  /// A waiter that has left. Its memory is given back with it.
  class Ended {
   public:
    Ended() noexcept = default;
    Ended(Region& region, Node node) noexcept : region_(&region), node_(std::move(node)) {}
    ~Ended() {
      if (!node_.empty()) region_->charge(-static_cast<std::ptrdiff_t>(node_.mapped().charged));
    }
    Ended(Ended&&) noexcept = default;
    Ended& operator=(Ended&&) noexcept = default;

   private:
    Region* region_ = nullptr;
    Node node_;
  };

  WaitLines(Region& region, WaitMarks& marks) noexcept : region_(region), marks_(marks) {}
  WaitLines(const WaitLines&) = delete;
  WaitLines& operator=(const WaitLines&) = delete;

  /// Puts the waiter at the end of its lines, or where an earlier arrival belongs. Not ok: nothing
  /// has changed. std::bad_alloc likewise.
  [[nodiscard]] ErrorCode enter(Entrance& entrance);
  /// Ends its waiting: it is in no line, and has no timer.
  void take_out(Waiter& waiter) noexcept;
  /// Takes it out of here altogether. The result is to end without the lock: it runs destructors of
  /// others.
  [[nodiscard]] Ended extract(const Waiter& waiter) noexcept;

  [[nodiscard]] WaitLine* find(const LineName& name) noexcept;
  [[nodiscard]] Waiter* find(WaitTicket ticket) noexcept;
  /// A thread begins to try for the waiters of the line, and keeps it until it ends.
  static void begin_asking(WaitLine& line) noexcept;
  void end_asking(WaitLine& line) noexcept;

  /// When to try for the line's waiters again.
  void set_recheck(WaitLine& line, Timestamp when) noexcept;
  /// Has the line looked at again, by the thread that keeps it or by the next drain.
  void look_again(WaitLine& line) noexcept;
  /// The same for all lines that `which` picks.
  template <class Which>
  void look_again(const Which& which) noexcept {
    for (auto& [name, line] : lines_) {
      if (which(std::as_const(line))) look_again(line);
    }
  }
  /// The place from `from` on whose kind is not among `stopped`, a bit for each. Null: none.
  [[nodiscard]] static WaitPlace* next_of(const WaitLine& line, WaitPlace* from,
                                          std::uint32_t stopped) noexcept;
  /// A waiter that was asked stays where it is.
  void leave_in_line(Waiter& waiter) noexcept;
  /// A line that is due by `now`; it is no longer. Null: none.
  [[nodiscard]] WaitLine* take_due(Timestamp now) noexcept;
  /// The deadlines, earliest first.
  [[nodiscard]] Alarms<Waiter>& deadlines() noexcept { return deadlines_; }
  [[nodiscard]] Waiters& waiters() noexcept { return waiters_; }
  /// The earliest timer.
  [[nodiscard]] Timestamp next() const noexcept;

  /// Asserts them. O(waiters).
  void check_invariants() const noexcept;

 private:
  void insert(WaitPlace& place) noexcept;
  void unlink(WaitPlace& place) noexcept;
  void look_into_others(const Waiter& waiter) noexcept;
  [[nodiscard]] WaitLine& line_of(Entrance::OfKey& key) noexcept;
  void erase_if_idle(WaitLine& line) noexcept;

  Region& region_;
  WaitMarks& marks_;
  Lines lines_;
  Waiters waiters_;
  Alarms<WaitLine> rechecks_;
  Alarms<Waiter> deadlines_;
  std::uint64_t tickets_ = 0;  // the last one; never given twice
};

}  // namespace semel::engine
