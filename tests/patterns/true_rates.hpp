// What rate limits promise, in the plainest way: with every call that was allowed, by times of the
// clock. For tests of patterns/rate_rules.cpp, with which it has nothing in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "semel/patterns/rate_limit.hpp"

namespace semel::tests {

using RateCount = std::uint64_t;

class TrueRate {
 public:
  virtual ~TrueRate() = default;
  /// As much is to be had at `at`.
  [[nodiscard]] virtual RateCount left(std::int64_t at) const = 0;
  [[nodiscard]] virtual bool is_whole(std::int64_t at) const = 0;
  virtual void take(std::int64_t at, RateCount cost) = 0;
};

class TrueFixed final : public TrueRate {
 public:
  explicit TrueFixed(const RateTerms& terms) : terms_(terms) {}
  RateCount left(std::int64_t at) const override {
    return is_whole(at) ? terms_.limit : terms_.limit - taken_;
  }
  bool is_whole(std::int64_t at) const override {
    return taken_ == 0 || at >= begin_ + terms_.period.count();
  }
  void take(std::int64_t at, RateCount cost) override {
    if (is_whole(at)) {
      begin_ = at;
      taken_ = 0;
    }
    taken_ += cost;
  }

 private:
  RateTerms terms_;
  std::int64_t begin_ = 0;
  RateCount taken_ = 0;
};

class TrueSliding final : public TrueRate {
 public:
  explicit TrueSliding(const RateTerms& terms) : terms_(terms) {}
  [[nodiscard]] RateCount taken(std::int64_t at, std::int64_t span) const {
    RateCount sum = 0;
    for (const auto& [when, cost] : hits_) sum += when > at - span ? cost : 0;
    return sum;
  }
  RateCount left(std::int64_t at) const override {
    return terms_.limit - taken(at, terms_.period.count());
  }
  bool is_whole(std::int64_t at) const override { return left(at) == terms_.limit; }
  void take(std::int64_t at, RateCount cost) override { hits_.emplace_back(at, cost); }

 private:
  RateTerms terms_;
  std::vector<std::pair<std::int64_t, RateCount>> hits_;
};

class TrueBucket final : public TrueRate {
 public:
  explicit TrueBucket(const RateTerms& terms)
      : terms_(terms), token_(static_cast<RateCount>(terms.period.count())) {
    parts_ = room();
  }
  RateCount left(std::int64_t at) const override { return parts(at) / token_; }
  bool is_whole(std::int64_t at) const override { return parts(at) == room(); }
  void take(std::int64_t at, RateCount cost) override {
    parts_ = parts(at) - cost * token_;
    at_ = at;
  }

 private:
  [[nodiscard]] RateCount room() const { return terms_.limit * token_; }
  [[nodiscard]] RateCount parts(std::int64_t at) const {
    const RateCount refill = terms_.refill == 0 ? terms_.limit : terms_.refill;
    return std::min(room(), parts_ + static_cast<RateCount>(at - at_) * refill);
  }
  RateTerms terms_;
  RateCount token_;
  RateCount parts_ = 0;
  std::int64_t at_ = 0;
};

inline std::unique_ptr<TrueRate> truth_of(const RateTerms& terms) {
  switch (terms.kind) {
    case RateKind::fixed_window:
      return std::make_unique<TrueFixed>(terms);
    case RateKind::sliding_window:
      return std::make_unique<TrueSliding>(terms);
    case RateKind::token_bucket:
      break;
  }
  return std::make_unique<TrueBucket>(terms);
}

/// From `now` until `cost` is to be had, or all of it.
[[nodiscard]] inline std::int64_t ms_until(const TrueRate& truth, std::int64_t now, RateCount cost,
                                           bool whole) {
  std::int64_t at = now;
  while (whole ? !truth.is_whole(at) : truth.left(at) < cost) ++at;
  return at - now;
}

}  // namespace semel::tests
