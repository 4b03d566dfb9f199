// See rate_rules.hpp.
//
// Ages are ms since an event, and negative for one in the future: threads may read times that
// differ a little, and a slice of a sliding window is known by its end. A record that ends later
// than it could (its end was set by EXPIRE, or the clock it was restored under is behind) counts
// as one of now, and is written anew, so that it ends after a period all the same.
#include "patterns/rate_rules.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "patterns/rate_record.hpp"
#include "semel/limits.hpp"

namespace semel::detail {
namespace {

using rate::append_number;
using rate::begin_value;
using rate::ceil_of;
using rate::count_of;
using rate::fill_max;
using rate::fill_time;
using rate::Hit;
using rate::hits_max;
using rate::late_max;
using rate::millis_of;
using rate::Number;
using rate::read_state;
using rate::refill_of;
using rate::room_of;
using rate::slice_of;
using rate::State;

// --- the kinds ------------------------------------------------------------------------------
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
