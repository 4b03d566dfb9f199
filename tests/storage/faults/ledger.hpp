// What each key may hold after a failure. Kept by the proof, never by the storage.
//
// A key has one writer, so what it was asked to become is a list. What was acknowledged last, or
// anything that was asked after that, may be found; nothing older. Others may copy it meanwhile.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "semel/types.hpp"

namespace semel::faults {

inline constexpr std::int64_t never_ends = std::numeric_limits<std::int64_t>::max();
inline constexpr const char* absent = "-";

class History {
 public:
  History() = default;
  History(const History& other);  ///< from any thread
  History& operator=(const History&) = delete;
  /// The key is about to become `state`, for ever.
  void ask(std::string state);
  /// The same for `ttl`, which begins at `unix_ms` or later: the clock may go on before it is done.
  void ask(std::string state, std::int64_t unix_ms, Millis ttl);
  /// The newest was refused: it did not happen.
  void withdraw();
  /// The newest was told to have happened. `certain`: whatever comes, it must be there; else only
  /// if `at` lies far enough before a failure.
  void acknowledge(bool certain, Timestamp at);
  /// Everything acknowledged so far is certain now.
  void make_certain();
  /// Somebody was shown this, so it, or something asked later, must be found.
  void show(const std::string& state);
  /// The answer says what the newest is called; a state that ends with '*' stands for any that
  /// begins like it.
  void rename(std::string state);
  [[nodiscard]] const std::string& newest() const { return said_.back().state; }
  /// What is asked for has begun by `unix_ms`: it was done by then, or the power went.
  void begun_by(std::int64_t unix_ms);
  [[nodiscard]] std::int64_t newest_ends() const { return said_.back().ends_unix_ms; }
  [[nodiscard]] std::int64_t newest_ends_by() const { return said_.back().ends_by; }
  /// Whether a delete that finds nothing at `unix_ms` is right.
  [[nodiscard]] bool may_be_absent(std::int64_t unix_ms) const;
  /// Whether its writer may be shown `found` between two times of the wall clock.
  [[nodiscard]] bool may_be(const std::string& found, std::int64_t from_unix_ms,
                            std::int64_t to_unix_ms) const;
  /// A boot has met a clock that was set back: what has an end may stay beyond it.
  void outlive_boot();
  /// From now on what is certain takes nothing away: for as_of(), until judge().
  void keep_all() { keeps_all_ = true; }
  /// Becomes what a copy may hold that was begun at `begun` and done at `unix_ms`: what was
  /// acknowledged since may be missing. Of one that keeps all.
  void as_of(Timestamp begun, std::int64_t unix_ms);

  struct Verdict {
    bool right = false;
    bool is_older = false;    ///< wrong, and it is what the key held before
    Timestamp oldest_lost{};  ///< when the first of what is gone was acknowledged; {}: nothing
    std::string expected;     ///< in words
    std::string story;        ///< what was asked and found lately, newest last
  };
  /// Compares what was found between two times of the wall clock, and goes on from it. What was
  /// acknowledged at or before `horizon` must be there.
  [[nodiscard]] Verdict judge(const std::string& found, std::int64_t from_unix_ms,
                              std::int64_t to_unix_ms, Timestamp horizon);

 private:
  struct Said {
    std::string state{};
    std::int64_t ends_unix_ms = never_ends;
    std::int64_t ends_by = never_ends;  // not known before begun_by
    Millis ttl{0};                      // 0: none, or its end is known
    bool acknowledged = false;
    bool certain = false;
    Timestamp at{};
  };
  [[nodiscard]] static bool is(const Said& said, const std::string& found,
                               std::int64_t from_unix_ms, std::int64_t to_unix_ms);

  void tell(std::string line);
  void drop_before(std::size_t said);
  void go_on_from(const std::string& found, std::size_t first, std::optional<std::size_t> hit,
                  std::int64_t from_unix_ms, std::int64_t to_unix_ms);

  mutable std::mutex mutex_;       // the writer reads without it
  std::deque<std::string> story_;  // bounded
  bool keeps_all_ = false;
  std::vector<Said> said_{{.state = absent, .acknowledged = true, .certain = true}};
};

/// By the name of the key. Filled before threads start; each thread has keys of its own.
using Ledger = std::map<std::string, History>;

}  // namespace semel::faults
