// See rate_rules.hpp.
//
// Ages are ms since an event, and negative for one in the future: threads may read times that
// differ a little, and a slice of a sliding window is known by its end. A record that ends later
// than it could (its end was set by EXPIRE, or the clock it was restored under is behind) counts
// as one of now, and is written anew, so that it ends after a period all the same.
#include "patterns/rate_rules.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "semel/limits.hpp"

namespace semel::detail {
namespace {

using Number = std::uint64_t;

constexpr Millis late_max{1'000};                  // that times of threads and nodes may differ
constexpr Millis fill_max = limits::ttl_max / 2;   // of a bucket
constexpr Number slices = limits::rate_exact_max;  // of a window that is not exact
constexpr std::size_t hits_max = 2 * slices;       // terms that change leave some of both kinds
// Between two hits of a record: the newest may end a slice after the call that the record was
// written by, and the other leaves the window then.
constexpr Millis gap_max = limits::rate_period_max + limits::rate_period_max / slices + late_max;
constexpr std::string_view head = "rate/1";
constexpr Bytes names[] = {"fixed", "slide", "bucket"};  // by RateKind

// A bucket is counted in parts: a token is as many as the period has milliseconds, and `refill`
// parts come back in each of them.
static_assert(limits::rate_max <= (Number{1} << 62) / limits::rate_period_max.count());

struct Hit {
  Millis age{0};
  Number taken = 0;
};

/// What a record says.
struct State {
  RateTerms terms{};
  Number amount = 0;        // fixed: taken. bucket: parts that come back before its record ends
  std::vector<Hit> hits{};  // sliding: the newest first, as ages since the newest
};

constexpr Number count_of(Millis time) noexcept {
  return static_cast<Number>(time.count());
}
constexpr Millis millis_of(Number count) noexcept {
  return Millis{static_cast<Millis::rep>(count)};
}
constexpr Number ceil_of(Number a, Number b) noexcept {
  return (a + b - 1) / b;
}

/// Parts that come back in a millisecond.
Number refill_of(const RateTerms& terms) noexcept {
  return terms.refill == 0 ? terms.limit : terms.refill;
}
/// All parts of a bucket.
Number room_of(const RateTerms& terms) noexcept {
  return terms.limit * count_of(terms.period);
}
Millis fill_time(const RateTerms& terms) noexcept {
  return millis_of(ceil_of(room_of(terms), refill_of(terms)));
}
/// Calls of so long a time are counted as one of its end.
Millis slice_of(const RateTerms& terms) noexcept {
  if (terms.limit <= limits::rate_exact_max) return Millis{1};
  return millis_of(ceil_of(count_of(terms.period), slices));
}

// --- the value ------------------------------------------------------------------------------

class Words {
 public:
  explicit Words(Bytes text) noexcept : rest_(text) {}

  [[nodiscard]] bool word(Bytes expected) noexcept { return next() == expected; }
  [[nodiscard]] bool number(Number least, Number most, Number& number) noexcept {
    const Bytes text = next();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() && number >= least &&
           number <= most;
  }
  [[nodiscard]] bool ended() const noexcept { return ended_; }

 private:
  Bytes next() noexcept {
    const std::size_t blank = rest_.find(' ');
    const Bytes word = rest_.substr(0, blank);
    ended_ = blank == Bytes::npos;
    rest_ = ended_ ? Bytes{} : rest_.substr(blank + 1);
    return word;
  }
  Bytes rest_;
  bool ended_ = false;  // the last word was the last one
};

bool read_hits(Words& words, std::vector<Hit>& hits) {
  Hit hit;
  for (;;) {
    if (!words.number(1, limits::rate_max, hit.taken) || hits.size() == hits_max) return false;
    hits.push_back(hit);
    if (words.ended()) return true;
    Number gap = 0;
    if (!words.number(1, count_of(gap_max), gap)) return false;
    hit.age += millis_of(gap);
  }
}

/// Nothing: it is none of ours.
std::optional<State> read_state(Bytes value) {
  Words words{value};
  if (!words.word(head)) return std::nullopt;
  State state;
  RateTerms& terms = state.terms;
  const Bytes rest = value.substr(std::min(value.size(), head.size() + 1));
  const auto* const name = std::find_if(std::begin(names), std::end(names),
                                        [&](Bytes each) { return rest.starts_with(each); });
  if (name == std::end(names) || !words.word(*name)) return std::nullopt;
  terms.kind = static_cast<RateKind>(name - std::begin(names));
  Number period = 0;
  if (!words.number(1, limits::rate_max, terms.limit)) return std::nullopt;
  if (!words.number(1, count_of(limits::rate_period_max), period)) return std::nullopt;
  terms.period = millis_of(period);
  bool is_read = false;
  switch (terms.kind) {
    case RateKind::fixed_window:
      is_read = words.number(0, limits::rate_max, state.amount);
      break;
    case RateKind::sliding_window:
      is_read = read_hits(words, state.hits);
      break;
    case RateKind::token_bucket:
      is_read = words.number(1, limits::rate_max, terms.refill) && fill_time(terms) <= fill_max &&
                words.number(0, terms.refill - 1, state.amount);
      break;
  }
  if (!is_read || !words.ended()) return std::nullopt;
  return state;
}

std::string begin_value(const RateTerms& terms) {
  std::string value{head};
  value.append(" ").append(names[static_cast<std::size_t>(terms.kind)]);
  value.append(" ").append(std::to_string(terms.limit));
  return value.append(" ").append(std::to_string(terms.period.count()));
}
void append_number(std::string& value, Number number) {
  value.append(" ").append(std::to_string(number));
}

// --- the kinds -----------------------------------------------------------------------------
//
// Each is read from a record of its kind, or from a number that was taken now; answers how much is
// left; and takes.

/// A record of another kind, or none: so much was taken, now.
struct Taken {
  Number number = 0;
};

class FixedWindow {
 public:
  FixedWindow(const RateTerms& terms, Taken taken) : terms_(terms), taken_(taken.number) {}
  FixedWindow(const RateTerms& terms, const State& state, Millis remaining) : terms_(terms) {
    age_ = std::max(state.terms.period - remaining, -late_max);
    is_late_ = remaining > state.terms.period + late_max;
    if (is_late_) age_ = Millis{0};
    if (age_ < terms.period) {
      taken_ = state.amount;
    } else {
      age_ = Millis{0};  // of the window that this call begins
    }
  }
  [[nodiscard]] bool is_late() const noexcept { return is_late_; }
  [[nodiscard]] Number taken() const noexcept { return taken_; }
  [[nodiscard]] Number left() const noexcept {
    return terms_.limit - std::min(taken_, terms_.limit);
  }
  [[nodiscard]] Millis until_taken(Number) const noexcept { return terms_.period - age_; }
  void take(Number cost) noexcept { taken_ += cost; }
  [[nodiscard]] Millis ends_after() const noexcept {
    return taken_ == 0 ? Millis{0} : terms_.period - age_;
  }
  [[nodiscard]] std::string value() const {
    std::string value = begin_value(terms_);
    append_number(value, taken_);
    return value;
  }

 private:
  const RateTerms& terms_;
  Number taken_ = 0;
  Millis age_{0};  // of the window
  bool is_late_ = false;
};

class SlidingWindow {
 public:
  SlidingWindow(const RateTerms& terms, Taken taken) : terms_(terms) {
    if (taken.number != 0) take(taken.number);
  }
  SlidingWindow(const RateTerms& terms, State&& state, Millis remaining)
      : terms_(terms), hits_(std::move(state.hits)) {
    const Millis ahead_max = slice_of(state.terms) - Millis{1} + late_max;
    Millis newest = state.terms.period - remaining;
    is_late_ = newest < -ahead_max;
    if (is_late_) newest = Millis{0};
    for (Hit& hit : hits_) hit.age += newest;
    end_with_own_slice();
    std::erase_if(hits_, [&](const Hit& hit) { return hit.age >= terms_.period; });
  }
  [[nodiscard]] bool is_late() const noexcept { return is_late_; }
  [[nodiscard]] Number taken() const noexcept {
    Number sum = 0;
    for (const Hit& hit : hits_) sum += hit.taken;
    return sum;
  }
  [[nodiscard]] Number left() const noexcept {
    return terms_.limit - std::min(taken(), terms_.limit);
  }
  /// Until no more than `most` is taken. The oldest calls have to leave the window first.
  [[nodiscard]] Millis until_taken(Number most) const noexcept {
    Number must_leave = taken() - most;
    std::size_t i = hits_.size() - 1;
    for (; i > 0 && hits_[i].taken < must_leave; --i) must_leave -= hits_[i].taken;
    return i == 0 ? ends_after() : terms_.period - hits_[i].age;
  }
  void take(Number cost) {
    ahead_ = Millis{0};
    if (hits_.empty() || hits_[0].age > Millis{0}) {
      hits_.insert(hits_.begin(), Hit{.age = Millis{1} - slice_of(terms_)});
    }
    hits_[0].taken += cost;
    while (hits_.size() > hits_max) {  // the two oldest are counted until the later of them leaves
      const Number oldest = hits_.back().taken;
      hits_.pop_back();
      hits_.back().taken += oldest;
    }
  }
  [[nodiscard]] Millis ends_after() const noexcept {
    return hits_.empty() ? Millis{0} : terms_.period - hits_[0].age + ahead_;
  }
  [[nodiscard]] std::string value() const {
    std::string value = begin_value(terms_);
    Millis before = hits_[0].age;
    for (const Hit& hit : hits_) {
      if (hit.age != before) append_number(value, count_of(hit.age - before));
      append_number(value, hit.taken);
      before = hit.age;
    }
    return value;
  }

 private:
  /// Terms with longer slices leave a newest hit that ends later than one of these terms may. All
  /// of its calls lie before now, so it counts long enough if it ends with the slice that begins
  /// now. The record is read as one of these terms next: a later end would look like a clock that
  /// is behind, and make all other hits older.
  void end_with_own_slice() {
    const Millis least = Millis{1} - slice_of(terms_);
    if (!hits_.empty()) ahead_ = std::max(least - hits_[0].age, Millis{0});
    for (Hit& hit : hits_) hit.age = std::max(hit.age, least);
    while (hits_.size() > 1 && hits_[0].age == hits_[1].age) {
      hits_[1].taken += hits_[0].taken;
      hits_.erase(hits_.begin());
    }
  }

  const RateTerms& terms_;
  std::vector<Hit> hits_{};  // the newest first
  Millis ahead_{0};          // that the newest ends later in the record, if it is not written
  bool is_late_ = false;
};

bool is_other_bucket(const RateTerms& one, const RateTerms& other) noexcept {
  return one.period != other.period || one.limit != other.limit ||
         refill_of(one) != refill_of(other);
}

class TokenBucket {
 public:
  TokenBucket(const RateTerms& terms, Taken taken)
      : terms_(terms), missing_(taken.number * count_of(terms.period)) {}
  TokenBucket(const RateTerms& terms, const State& state, Millis remaining) : terms_(terms) {
    const RateTerms& before = state.terms;
    is_late_ = remaining > fill_time(before) + late_max;
    if (is_late_) {
      missing_ = room_of(before);
    } else {
      missing_ = count_of(remaining) * before.refill - state.amount;
    }
    const bool is_changed = is_other_bucket(before, terms);
    // More than all is missing while a clock is behind; the products below have room for all.
    if (is_changed) missing_ = std::min(missing_, room_of(before));
    if (before.period != terms.period) {  // a token that was not back as a whole counts as taken
      missing_ = ceil_of(missing_, count_of(before.period)) * count_of(terms.period);
    }
    if (is_changed) missing_ = std::min(missing_, room_of(terms));
  }
  [[nodiscard]] bool is_late() const noexcept { return is_late_; }
  [[nodiscard]] Number taken() const noexcept { return ceil_of(missing_, count_of(terms_.period)); }
  [[nodiscard]] Number left() const noexcept {
    return (room_of(terms_) - std::min(missing_, room_of(terms_))) / count_of(terms_.period);
  }
  [[nodiscard]] Millis until_taken(Number most) const noexcept {
    const Number may_miss = most * count_of(terms_.period);
    return millis_of(ceil_of(missing_ - may_miss, refill_of(terms_)));
  }
  void take(Number cost) noexcept { missing_ += cost * count_of(terms_.period); }
  [[nodiscard]] Millis ends_after() const noexcept {
    return millis_of(ceil_of(missing_, refill_of(terms_)));
  }
  [[nodiscard]] std::string value() const {
    std::string value = begin_value(terms_);
    append_number(value, refill_of(terms_));
    append_number(value, count_of(ends_after()) * refill_of(terms_) - missing_);
    return value;
  }

 private:
  const RateTerms& terms_;
  Number missing_ = 0;  // parts
  bool is_late_ = false;
};

// --- the decision ---------------------------------------------------------------------------

/// How a record goes on that is of other terms than a call which does not write it.
struct GoesOn {
  Millis end{0};
  std::optional<Millis> until{};  ///< the cost of a refused call is left; nothing: by its terms
};

template <class Window>
RateDecision decide(Window window, const RateTerms& terms, Number cost,
                    const std::optional<GoesOn>& other) {
  RateDecision decision;
  RateOutcome& answer = decision.answer;
  answer.allowed = cost <= window.left();
  if (answer.allowed) {
    if (cost != 0) window.take(cost);
  } else {
    answer.retry_after = window.until_taken(terms.limit - cost);
  }
  answer.remaining = window.left();
  answer.reset_after = window.ends_after();
  decision.writes = cost != 0 && (answer.allowed || window.is_late());
  if (decision.writes) {
    decision.value = window.value();
    decision.keep = answer.reset_after;
  } else if (other) {
    answer.reset_after = other->until ? other->end : std::min(answer.reset_after, other->end);
    if (!answer.allowed) {
      answer.retry_after = other->until.value_or(std::min(answer.retry_after, other->end));
    }
  }
  return decision;
}

RateDecision decide_by(const RateTerms& terms, Taken taken, Number cost,
                       const std::optional<GoesOn>& other) {
  switch (terms.kind) {
    case RateKind::fixed_window:
      return decide(FixedWindow{terms, taken}, terms, cost, other);
    case RateKind::sliding_window:
      return decide(SlidingWindow{terms, taken}, terms, cost, other);
    case RateKind::token_bucket:
      return decide(TokenBucket{terms, taken}, terms, cost, other);
  }
  return {};
}

RateDecision decide_on(const RateTerms& terms, State&& state, Millis remaining, Number cost,
                       const std::optional<GoesOn>& other) {
  switch (terms.kind) {
    case RateKind::fixed_window:
      return decide(FixedWindow{terms, state, remaining}, terms, cost, other);
    case RateKind::sliding_window:
      return decide(SlidingWindow{terms, std::move(state), remaining}, terms, cost, other);
    case RateKind::token_bucket:
      return decide(TokenBucket{terms, state, remaining}, terms, cost, other);
  }
  return {};
}

/// What a record says by its own terms.
struct ByItself {
  Number taken = 0;
  Millis until{0};  ///< no more than `most` is taken
  bool is_late = false;
};
template <class Window>
ByItself by_itself(const Window& window, Number most) noexcept {
  const Number taken = window.taken();
  return {taken, taken <= most ? Millis{0} : window.until_taken(most), window.is_late()};
}
ByItself by_itself(const State& state, Millis remaining, Number most) {
  const RateTerms& terms = state.terms;
  switch (terms.kind) {
    case RateKind::fixed_window:
      return by_itself(FixedWindow{terms, state, remaining}, most);
    case RateKind::sliding_window:
      return by_itself(SlidingWindow{terms, State{state}, remaining}, most);
    case RateKind::token_bucket:
      return by_itself(TokenBucket{terms, state, remaining}, most);
  }
  return {};
}

}  // namespace

Status check_rate(const RateTerms& terms, Number cost) {
  const auto refuse = [](const char* what, Number number, Number least, Number most) {
    return Error{ErrorCode::bad_option, std::string{what} + " must be " + std::to_string(least) +
                                            ".." + std::to_string(most) + ", not " +
                                            std::to_string(number)};
  };
  if (terms.kind > RateKind::token_bucket) return Error{ErrorCode::bad_option, "no such kind"};
  if (terms.limit == 0 || terms.limit > limits::rate_max) {
    return refuse("the limit", terms.limit, 1, limits::rate_max);
  }
  if (terms.period < Millis{1} || terms.period > limits::rate_period_max) {
    return Error{ErrorCode::bad_option, "the period must be 1.." +
                                            std::to_string(limits::rate_period_max.count()) +
                                            " ms, not " + std::to_string(terms.period.count())};
  }
  if (terms.refill > limits::rate_max) return refuse("refill", terms.refill, 0, limits::rate_max);
  if (terms.refill != 0 && terms.kind != RateKind::token_bucket) {
    return Error{ErrorCode::bad_option, "only a token bucket has a refill"};
  }
  if (terms.kind == RateKind::token_bucket && fill_time(terms) > fill_max) {
    return Error{ErrorCode::bad_option, "the bucket would not be full within 50 years"};
  }
  if (cost > terms.limit) return refuse("the cost", cost, 0, terms.limit);
  return Done{};
}

Result<RateDecision> decide_rate(const std::optional<RateRecord>& record, const RateTerms& terms,
                                 Number cost) {
  if (!record) return decide_by(terms, {}, cost, std::nullopt);
  std::optional<State> state = read_state(record->value);
  if (!state) return Error{ErrorCode::wrong_type, {}};
  const RateTerms& before = state->terms;
  const bool is_same_kind = before.kind == terms.kind;
  const bool is_bucket = terms.kind == RateKind::token_bucket;
  const bool is_other = !is_same_kind || before.period != terms.period ||
                        (is_bucket && is_other_bucket(before, terms));
  std::optional<GoesOn> other;
  Number taken = 0;
  if (is_other) {
    const ByItself itself = by_itself(*state, record->remaining, terms.limit - cost);
    taken = std::min(itself.taken, terms.limit);
    if (!itself.is_late) {
      other.emplace(GoesOn{.end = record->remaining});
      // Calls leave a window by the terms of the one that asks; all else goes by the record's.
      if (!is_same_kind || is_bucket) other->until = itself.until;
    }
  }
  if (is_same_kind) return decide_on(terms, std::move(*state), record->remaining, cost, other);
  return decide_by(terms, {taken}, cost, other);
}

}  // namespace semel::detail
