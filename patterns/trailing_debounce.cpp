// See semel/patterns/trailing_debounce.hpp.
//
//   value of "ns:{key}#last"   trail/1 STATE KEEP QUIET AGE EPOCH \n payload
//     STATE w   waits: it is due KEEP before the record ends. AGE: ms between the first call and
//               the time when it is due
//     STATE r   runs, by the claim of EPOCH
//
// No time of a clock is in it: times are counted back from the end of the record, which the engine
// keeps over restarts, leaders and steps of the wall clock. Each step is one compare-and-set. A run
// claims first and marks the payload then: of a call and a run at once, one comes second, and sees
// the other. The end of a run deletes a payload with the mark of its epoch only, so the payload of
// a later call stays.
#include "semel/patterns/trailing_debounce.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "patterns/dated_string.hpp"
#include "semel/engine.hpp"
#include "semel/limits.hpp"

namespace semel {
namespace {

using detail::DatedString;

constexpr std::string_view trail_mark = "trail/1 ";

/// How long the payload of a run is kept behind the lease that it began with, at least.
constexpr Millis run_keep{86'400'000};

struct Trail {
  bool runs = false;
  Millis keep{0};
  Millis quiet{0};
  Millis age{0};
  Epoch epoch = 0;
  Bytes payload{};
};

/// Takes a number and the character behind it from the front.
template <class Number>
bool take_number(std::string_view& text, char behind, Number& number) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto size = static_cast<std::size_t>(end - text.data());
  if (error != std::errc{} || size >= text.size() || text[size] != behind) return false;
  text.remove_prefix(size + 1);
  return true;
}

bool take_time(std::string_view& text, Millis& time) noexcept {
  std::int64_t number = 0;
  // An age grows with the time for which nothing has run.
  constexpr std::int64_t most = limits::ttl_max.count();
  if (!take_number(text, ' ', number) || number < 0 || number > most) return false;
  time = Millis{number};
  return true;
}

std::optional<Trail> read_trail(std::string_view text) noexcept {
  if (!text.starts_with(trail_mark)) return std::nullopt;
  text.remove_prefix(trail_mark.size());
  if (!text.starts_with("w ") && !text.starts_with("r ")) return std::nullopt;
  Trail trail;
  trail.runs = text.front() == 'r';
  text.remove_prefix(2);
  const bool is_whole = take_time(text, trail.keep) && take_time(text, trail.quiet) &&
                        take_time(text, trail.age) && take_number(text, '\n', trail.epoch);
  if (!is_whole || trail.keep > limits::debounce_max || trail.quiet > limits::debounce_max) {
    return std::nullopt;
  }
  trail.payload = text;
  return trail;
}

/// How long before the record ends it was due, or the lease of its run was over.
Millis kept_behind(const Trail& trail) noexcept {
  return trail.runs ? std::max(trail.keep, run_keep) : trail.keep;
}

std::string write_trail(const Trail& trail) {
  std::string text{trail_mark};
  text.append(trail.runs ? "r " : "w ");
  for (const Millis time : {trail.keep, trail.quiet, trail.age}) {
    text.append(std::to_string(time.count())).append(" ");
  }
  return text.append(std::to_string(trail.epoch)).append("\n").append(trail.payload);
}

/// The record of a key, as it was read.
class Last {
 public:
  Last(const Claims& claims, Bytes key)
      : engine_(claims.engine()),
        store_(engine_.store(claims.policy().db)),
        name_(std::string{claims.name()}.append(":").append(trailing_last_key(key))) {}

  /// Errors: wrong_type: it is not ours.
  [[nodiscard]] Status read() {
    SEMEL_TRY(seen, detail::look_at_dated(engine_, store_, name_));
    seen_ = std::move(seen);
    now_ = engine_.now();
    trail_.reset();
    // One that has ended since is as none.
    if (!seen_.value || seen_.due <= now_) return Done{};
    trail_ = read_trail(seen_.value->value);
    if (!trail_) return Error{ErrorCode::wrong_type, {}};
    return Done{};
  }
  [[nodiscard]] const std::optional<Trail>& trail() const noexcept { return trail_; }
  /// Until it is due; negative: since. A record that ends later than it could counts as one of now.
  [[nodiscard]] Millis due_in() const noexcept {
    return std::min(seen_.due - now_ - trail_->keep, trail_->quiet);
  }
  [[nodiscard]] TrailingState state() const noexcept {
    if (!trail_) return TrailingState::idle;
    if (trail_->runs) return TrailingState::running;
    return due_in() > Millis{0} ? TrailingState::quiet : TrailingState::due;
  }

  /// False: another was faster, and it has to be read again.
  [[nodiscard]] Result<bool> replace(const Trail& trail, Millis life) {
    SEMEL_TRY(set, store_.compare_and_set(name_, seen_.version(), write_trail(trail),
                                          Expiry::at(now_ + life)));
    return set.stored;
  }
  [[nodiscard]] Result<bool> remove() {
    const StoreOp op{.verb = Verb::delex,
                     .db = store_.db(),
                     .condition = Condition::if_version,
                     .key = name_,
                     .expected = seen_.version()};
    StoreOutcome outcome;
    engine_.host().apply(op, outcome);
    if (outcome.error != ErrorCode::ok) return Error{outcome.error, {}};
    return outcome.applied || !outcome.found;
  }

 private:
  Engine& engine_;
  Store store_;
  const std::string name_;
  DatedString seen_;
  Timestamp now_{};
  std::optional<Trail> trail_;  // points into seen_
};

Status check_terms(const TrailingTerms& terms) {
  const auto is_out = [](Millis time, Millis least) {
    return time < least || time > limits::debounce_max;
  };
  const auto refuse = [](const char* name, Millis time, Millis least) {
    return Error{ErrorCode::bad_option, std::string{name} + " must be " +
                                            std::to_string(least.count()) + ".." +
                                            std::to_string(limits::debounce_max.count()) +
                                            " ms, not " + std::to_string(time.count())};
  };
  if (is_out(terms.quiet, Millis{1})) return refuse("the quiet time", terms.quiet, Millis{1});
  if (is_out(terms.max_wait, terms.quiet)) {
    return refuse("the longest wait", terms.max_wait, terms.quiet);
  }
  if (is_out(terms.keep, Millis{1})) return refuse("the time to keep", terms.keep, Millis{1});
  return Done{};
}

/// Marks the payload that is due as run by the claim of the turn. True: the turn has its payload.
/// False: it is not due any more.
Result<bool> mark_run(Last& last, Millis lease, TrailingTurn& turn) {
  for (;;) {
    const TrailingState state = last.state();
    turn.state = state;
    if (state == TrailingState::idle || state == TrailingState::quiet) return false;
    Trail trail = *last.trail();
    turn.payload = trail.payload;
    turn.state = TrailingState::running;
    if (trail.runs && trail.epoch == turn.claim.epoch) return true;  // asked again
    trail.runs = true;
    trail.epoch = turn.claim.epoch;
    trail.age = Millis{0};
    // A lease that is renewed may be a longer one, and the end of the run needs the payload.
    const Millis runs = std::min(lease, limits::debounce_max);
    SEMEL_TRY(stored, last.replace(trail, runs + kept_behind(trail)));
    if (stored) return true;
    SEMEL_CHECK(last.read());
  }
}

}  // namespace

std::string trailing_run_key(Bytes key) {
  return std::string{"{"}.append(key).append("}#run");
}

std::string trailing_last_key(Bytes key) {
  return std::string{"{"}.append(key).append("}#last");
}

Result<TrailingCall> call_trailing(Claims& claims, Bytes key, Bytes payload,
                                   const TrailingTerms& terms) {
  if (key.empty()) return Error{ErrorCode::key_empty, {}};
  SEMEL_CHECK(check_terms(terms));
  Last last{claims, key};
  for (;;) {
    SEMEL_CHECK(last.read());
    const bool replaces = last.trail() && !last.trail()->runs;
    // Since the first call that no run has taken.
    const Millis age = replaces ? last.trail()->age - last.due_in() : Millis{0};
    const Millis due_in = std::clamp(terms.max_wait - age, Millis{0}, terms.quiet);
    const Trail trail{.keep = terms.keep,
                      .quiet = terms.quiet,
                      .age = std::min(age + due_in, limits::ttl_max),
                      .payload = payload};
    SEMEL_TRY(stored, last.replace(trail, due_in + terms.keep));
    if (stored) return TrailingCall{.due_in = due_in, .replaced = replaces};
  }
}

Result<TrailingTurn> take_trailing(Claims& claims, const ClaimRequest& request) {
  if (request.key.empty()) return Error{ErrorCode::key_empty, {}};
  Last last{claims, request.key};
  SEMEL_CHECK(last.read());
  TrailingTurn turn;
  turn.state = last.state();
  if (turn.state == TrailingState::idle) return turn;
  if (turn.state == TrailingState::quiet) {
    turn.due_in = last.due_in();
    return turn;
  }
  turn.key = trailing_run_key(request.key);
  turn.state = TrailingState::running;
  ClaimRequest of_run = request;
  of_run.key = turn.key;
  turn.claim = claims.claim(of_run);
  if (!detail::is_granted(turn.claim)) return turn;
  const Millis lease = request.lease.value_or(claims.policy().lease);
  Result<bool> marked = false;
  try {
    Status again = last.read();  // another may have run it before the claim
    marked = again.ok() ? mark_run(last, lease, turn) : Result<bool>{again.error()};
  } catch (...) {  // no caller learns of the run
    detail::give_back(claims, turn.key, turn.claim);
    throw;
  }
  if (marked.ok() && *marked) return turn;
  detail::give_back(claims, turn.key, turn.claim);
  if (!marked.ok()) return marked.error();
  if (turn.state == TrailingState::quiet) turn.due_in = last.due_in();
  turn.claim = {};
  return turn;
}

OwnerOutcome end_trailing(Claims& claims, Bytes key, Epoch epoch, TrailingEnd how) {
  OwnerOutcome refused;
  refused.answer = OwnerAnswer::refused;
  refused.error = key.empty() ? ErrorCode::key_empty : ErrorCode::ok;
  if (key.empty()) return refused;
  Last last{claims, key};
  for (;;) {
    if (const Status read = last.read(); !read) {
      refused.error = read.error().code;
      return refused;
    }
    if (!last.trail() || !last.trail()->runs || last.trail()->epoch != epoch) break;
    Trail trail = *last.trail();
    trail.runs = false;
    trail.epoch = 0;
    trail.age = trail.quiet;
    const Result<bool> ended =
        how == TrailingEnd::done ? last.remove() : last.replace(trail, trail.quiet + trail.keep);
    if (!ended.ok()) {
      refused.error = ended.error().code;
      return refused;
    }
    if (*ended) break;
  }
  return claims.release({.key = trailing_run_key(key), .epoch = epoch});
}

Result<std::vector<TrailingView>> debounces(Claims& claims, std::size_t count) {
  if (count == 0 || count > limits::debounces_max) return Error{ErrorCode::bad_option, {}};
  const std::string prefix = std::string{claims.name()} + ":{";
  constexpr std::string_view behind = "}#last";
  std::set<std::pair<Timestamp, std::string>> first;  // by when it is due, or its run's
                                                      // lease ends; a scan may meet it twice
  const ScanOptions options{
      .db = claims.policy().db, .kind = Kind::string, .prefix = prefix, .count = 1'000};
  std::uint64_t cursor = 0;
  do {
    const auto next = claims.engine().scan(cursor, options, [&](const ScanItem& item) {
      std::string_view key = item.key;
      if (!key.ends_with(behind)) return;
      key.remove_prefix(prefix.size());
      key.remove_suffix(behind.size());
      const std::optional<Trail> trail = read_trail(item.value);
      if (!trail) return;  // another record
      first.emplace(item.due - kept_behind(*trail), key);
      if (first.size() > count) first.erase(std::prev(first.end()));
    });
    if (!next.ok()) return next.error();
    cursor = *next;
  } while (cursor != 0);
  std::vector<TrailingView> found;
  std::set<std::string_view> seen;
  for (const auto& [due, key] : first) {
    if (!seen.insert(key).second) continue;
    Last last{claims, key};
    if (!last.read() || !last.trail()) continue;  // another record, or one that has gone
    const TrailingState state = last.state();
    const Millis due_in = state == TrailingState::quiet ? last.due_in() : Millis{0};
    found.push_back({.key = key, .state = state, .due_in = due_in});
  }
  return found;
}

// --- the object ---------------------------------------------------------------------------------

TrailingDebounce::Turn::Turn(TrailingDebounce& debounce, Bytes key)
    : debounce_(debounce), key_(key) {
  const TrailingOptions& options = debounce.options_;
  Claims& claims = debounce.claims_;
  const auto refuse = [this](ErrorCode why) {
    const bool later = retry_of(why) == Retry::later;
    answer_.answer = later ? TrailingAnswer::busy : TrailingAnswer::refused;
    answer_.error = why;
  };
  if (const Status can = Watchdog::check(options.watchdog, claims, options.lease); !can) {
    refuse(can.error().code);
    return;
  }
  Result<TrailingTurn> turn = take_trailing(claims, {.key = key, .lease = options.lease});
  if (!turn.ok()) {
    refuse(turn.error().code);
    return;
  }
  turn_ = *std::move(turn);
  answer_.due_in = turn_.due_in;
  if (turn_.state == TrailingState::idle) {
    answer_.answer = TrailingAnswer::idle;
  } else if (turn_.state == TrailingState::quiet) {
    answer_.answer = TrailingAnswer::quiet;
  } else if (turn_.claim.answer == ClaimAnswer::in_flight) {
    answer_.answer = TrailingAnswer::running;
  } else if (!detail::is_granted(turn_.claim)) {
    refuse(turn_.claim.error);
  } else {
    epoch_ = turn_.claim.epoch;
    if (options.watchdog == nullptr) return;
    try {
      kept_ = options.watchdog->keep(claims, turn_.key, epoch_, options.lease);
    } catch (...) {  // no destructor will end the run
      detail::give_back(claims, turn_.key, turn_.claim);
      throw;
    }
  }
}

TrailingDebounce::Turn::~Turn() {
  if (epoch_ == 0) return;
  try {
    end(false);                      // it threw
  } catch (const std::bad_alloc&) {  // it comes again with the end of its lease
  }
}

void TrailingDebounce::Turn::end(bool ok) {
  kept_ = {};
  const Epoch epoch = std::exchange(epoch_, 0);
  answer_.answer = ok ? TrailingAnswer::ran : TrailingAnswer::failed;
  const OwnerOutcome ended =
      end_trailing(debounce_.claims_, key_, epoch, ok ? TrailingEnd::done : TrailingEnd::again);
  answer_.error = ended.error;
  answer_.lost = ended.answer != OwnerAnswer::ok || ended.late;
}

}  // namespace semel
