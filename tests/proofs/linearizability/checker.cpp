#include "tests/proofs/linearizability/checker.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_set>
#include <utility>

namespace semel::proofs {
namespace {

/// One way to explain the history so far.
struct Configuration {
  std::uint64_t done = 0;  ///< bit per place: the call under way there has taken effect
  std::uint64_t dead_sessions = 0;
  std::vector<KeyState> keys;
  bool operator==(const Configuration&) const = default;
};

struct ConfigurationHash {
  std::size_t operator()(const Configuration& configuration) const noexcept {
    std::size_t hash = configuration.done * 0x9e3779b97f4a7c15ULL ^ configuration.dead_sessions;
    for (const KeyState& key : configuration.keys) hash = hash * 31 + hash_of(key);
    return hash;
  }
};

using Configurations = std::unordered_set<Configuration, ConfigurationHash>;

struct Edge {
  std::uint64_t moment;
  std::size_t call;
  bool is_return;
};

class Search {
 public:
  explicit Search(const History& history) : history_(history) {
    Configuration first;
    first.keys.resize(history.key_count);
    configurations_.insert(std::move(first));
    places_.fill(no_call);
    place_of_.assign(history.calls.size(), no_call);
    returned_.assign(history.calls.size(), false);
    find_clock_floors();
  }

  Verdict run() {
    for (const Edge& edge : edges()) {
      if (edge.is_return) {
        if (!on_return(edge.call)) break;
      } else if (!on_invoke(edge.call)) {
        break;
      }
    }
    return std::move(verdict_);
  }

 private:
  [[nodiscard]] std::vector<Edge> edges() const {
    std::vector<Edge> edges;
    edges.reserve(history_.calls.size() * 2);
    for (std::size_t i = 0; i < history_.calls.size(); ++i) {
      edges.push_back({history_.calls[i].invoked, i, false});
      edges.push_back({history_.calls[i].returned, i, true});
    }
    std::sort(edges.begin(), edges.end(),
              [](const Edge& one, const Edge& other) { return one.moment < other.moment; });
    return edges;
  }

  /// For each call, the earliest reading of the clock among the calls that return after it.
  void find_clock_floors() {
    std::vector<std::size_t> by_return(history_.calls.size());
    std::iota(by_return.begin(), by_return.end(), std::size_t{0});
    std::sort(by_return.begin(), by_return.end(), [this](std::size_t one, std::size_t other) {
      return history_.calls[one].returned > history_.calls[other].returned;
    });
    clock_from_.resize(by_return.size());
    Ms earliest = never;
    for (const std::size_t call : by_return) {
      clock_from_[call] = earliest == never ? history_.calls[call].clock_after : earliest;
      earliest = std::min(earliest, history_.calls[call].clock_before);
    }
  }

  bool on_invoke(std::size_t call) {
    const auto free = std::find(places_.begin(), places_.end(), no_call);
    if (free == places_.end()) {
      verdict_.linearizable = false;
      verdict_.gave_up = true;
      verdict_.report = "more calls under way than the checker has places for";
      return false;
    }
    *free = call;
    place_of_[call] = static_cast<std::size_t>(free - places_.begin());
    return true;
  }

  /// Keeps the configurations in which `call` has taken effect; makes them from those where it
  /// has not, by any order of calls under way that ends with it.
  bool on_return(std::size_t call) {
    const std::uint64_t bit = std::uint64_t{1} << place_of_[call];
    Configurations explained;
    Configurations tried;
    std::vector<Configuration> open;
    last_complaint_ = nullptr;
    for (Configuration configuration : configurations_) {
      absorb(configuration);
      if ((configuration.done & bit) != 0) {
        explained.insert(std::move(configuration));
      } else if (tried.insert(configuration).second) {
        open.push_back(std::move(configuration));
      }
    }
    while (!open.empty()) {
      const Configuration from = std::move(open.back());
      open.pop_back();
      for (std::size_t place = 0; place < places_.size(); ++place) {
        if (places_[place] == no_call || ((from.done >> place) & 1U) != 0) continue;
        for (Configuration& to : take_effect(from, place, places_[place] == call)) {
          if ((to.done & bit) != 0) {
            explained.insert(std::move(to));
          } else if (tried.insert(to).second) {
            open.push_back(std::move(to));
          }
        }
      }
      if (explained.size() + tried.size() > configurations_max) return give_up(call);
    }
    return settle(call, bit, explained);
  }

  bool settle(std::size_t call, std::uint64_t bit, const Configurations& explained) {
    if (explained.empty()) {
      verdict_.linearizable = false;
      verdict_.report = report(call);
      return false;
    }
    configurations_.clear();
    for (Configuration configuration : explained) {
      configuration.done &= ~bit;
      // No call to come reads the clock earlier than this: what has ended by then is gone.
      for (KeyState& key : configuration.keys) pass_time(key, clock_from_[call]);
      configurations_.insert(std::move(configuration));
    }
    verdict_.configurations_most = std::max(verdict_.configurations_most, configurations_.size());
    places_[place_of_[call]] = no_call;
    returned_[call] = true;
    recent_.push_back(call);
    return true;
  }

  bool give_up(std::size_t call) {
    verdict_.linearizable = false;
    verdict_.gave_up = true;
    verdict_.report = "too many explanations to follow; " + report(call);
    return false;
  }

  /// Every configuration that `from` can become when the call at `place` takes effect next.
  std::vector<Configuration> take_effect(const Configuration& from, std::size_t place,
                                         bool is_returning) {
    std::vector<Configuration> results;
    const Call& call = history_.calls[places_[place]];
    if (call.after != no_call && !has_happened(from, call.after)) return results;
    const auto [begin, end] = clock_span(call);
    for (const Configuration& start : swept_starts(from, call)) {
      for (auto now = begin; now != end; ++now) {
        Configuration to = start;
        const Complaint complaint = apply(to, call, *now);
        if (complaint != nullptr) {
          if (is_returning) last_complaint_ = complaint;
          continue;
        }
        to.done |= std::uint64_t{1} << place;
        absorb(to);
        if (std::find(results.begin(), results.end(), to) == results.end()) {
          results.push_back(std::move(to));
        }
      }
    }
    return results;
  }

  /// `from`, and `from` with any of the call's keys swept of what ended during the call's span:
  /// each of them may or may not be gone already when the call takes effect.
  [[nodiscard]] std::vector<Configuration> swept_starts(const Configuration& from,
                                                        const Call& call) const {
    std::vector<Configuration> starts{from};
    if (call.clock_before == call.clock_after) return starts;
    const auto [begin, end] = clock_span(call);
    for (std::size_t key = 0; key < from.keys.size(); ++key) {
      const bool touched = std::any_of(call.steps.begin(), call.steps.end(),
                                       [key](const Step& one) { return one.key == key; });
      if (!touched) continue;
      std::vector<KeyState> ways{from.keys[key]};
      for (auto until = begin; until != end; ++until) {
        KeyState swept = from.keys[key];
        pass_time(swept, *until);
        if (!(swept == ways.back())) ways.push_back(std::move(swept));
      }
      const std::size_t count = starts.size();
      for (std::size_t way = 1; way < ways.size(); ++way) {
        for (std::size_t i = 0; i < count; ++i) {
          starts.push_back(starts[i]);
          starts.back().keys[key] = ways[way];
        }
      }
    }
    return starts;
  }

  /// Lets every call under way take effect that is right here and changes nothing. Whatever
  /// explains the rest of the history without it also explains it with it, so the configuration
  /// without it need not be followed: this keeps the search from trying every order of reads.
  void absorb(Configuration& configuration) {
    for (bool again = true; again;) {
      again = false;
      for (std::size_t place = 0; place < places_.size(); ++place) {
        if (places_[place] == no_call || ((configuration.done >> place) & 1U) != 0) continue;
        const Call& call = history_.calls[places_[place]];
        if (call.after != no_call && !has_happened(configuration, call.after)) continue;
        if (!changes_nothing(configuration, call)) continue;
        configuration.done |= std::uint64_t{1} << place;
        again = true;
      }
    }
  }

  [[nodiscard]] bool changes_nothing(const Configuration& configuration, const Call& call) const {
    const auto [begin, end] = clock_span(call);
    for (auto now = begin; now != end; ++now) {
      Configuration to = configuration;
      if (apply(to, call, *now) == nullptr && to == configuration) return true;
    }
    return false;
  }

  [[nodiscard]] bool has_happened(const Configuration& from, std::size_t call) const {
    if (returned_[call]) return true;
    const std::size_t place = place_of_[call];
    return place != no_call && places_[place] == call && ((from.done >> place) & 1U) != 0;
  }

  using ClockValue = std::vector<Ms>::const_iterator;
  [[nodiscard]] std::pair<ClockValue, ClockValue> clock_span(const Call& call) const {
    const std::vector<Ms>& values = history_.clock_values;
    return {std::lower_bound(values.begin(), values.end(), call.clock_before),
            std::upper_bound(values.begin(), values.end(), call.clock_after)};
  }

  Complaint apply(Configuration& to, const Call& call, Ms now) const {
    Moment moment;
    moment.now = now;
    moment.unix_ms = now + history_.unix_zero;
    for (const Step& one : call.steps) {
      moment.dead_sessions = to.dead_sessions;
      if (const Complaint complaint = apply(to, one, moment)) return complaint;
    }
    return nullptr;
  }

  /// What has ended by `now` is gone for this step, but stays in the state if the step changes
  /// nothing: a call with an older reading of the clock may still act on it until it is swept.
  Complaint apply(Configuration& to, const Step& one, const Moment& moment) const {
    KeyState aged = to.keys[one.key];
    pass_time(aged, moment.now);
    KeyState after = aged;
    if (const Complaint complaint = judge(to, after, one, moment)) return complaint;
    if (!(after == aged)) to.keys[one.key] = std::move(after);
    return nullptr;
  }

  Complaint judge(Configuration& to, KeyState& key, const Step& one, const Moment& moment) const {
    if (const auto* store = std::get_if<StoreStep>(&one.what)) {
      return step(key, store->call.view(), store->seen, moment);
    }
    if (const auto* claim = std::get_if<ClaimStep>(&one.what)) {
      return step(key, history_.policy, claim->call.view(), claim->call.session, claim->seen,
                  moment);
    }
    if (const auto* owner = std::get_if<OwnerStep>(&one.what)) {
      return step(key, history_.policy, owner->call.verb, owner->call.view(), owner->seen, moment);
    }
    if (const auto* close = std::get_if<CloseSession>(&one.what)) {
      to.dead_sessions |= std::uint64_t{1} << close->session;
      return nullptr;
    }
    return apply_shown(key, std::get<Shown>(one.what), moment.now);
  }

  static Complaint apply_shown(KeyState& key, const Shown& shown, Ms now) {
    if (!shown.present) return step_not_shown(key, now);
    if (!alive(key, now)) return shown.due <= now ? nullptr : "a record is shown that is not there";
    if (shown.kind != key.kind) return "kind of a shown record";
    if (const Complaint complaint = take_own_version(key, shown.version)) return complaint;
    if (shown.due != key.due) return "due of a shown record";
    if (key.kind == Kind::string && shown.value != key.value) return "value of a shown record";
    return nullptr;
  }

  [[nodiscard]] std::string report(std::size_t call) const {
    std::string text = "no order explains this call";
    if (last_complaint_ != nullptr) text.append(" (last try: ").append(last_complaint_).append(")");
    text.append(":\n  ").append(describe(history_.calls[call])).append("\nunder way with it:\n");
    for (const std::size_t other : places_) {
      if (other == no_call || other == call) continue;
      text.append("  ").append(describe(history_.calls[other])).append("\n");
    }
    text.append("returned just before:\n");
    const std::size_t first = recent_.size() > 20 ? recent_.size() - 20 : 0;
    for (std::size_t i = first; i < recent_.size(); ++i) {
      text.append("  ").append(describe(history_.calls[recent_[i]])).append("\n");
    }
    return text;
  }

  const History& history_;
  Configurations configurations_;
  std::array<std::size_t, calls_under_way_max> places_{};
  std::vector<std::size_t> place_of_;
  std::vector<bool> returned_;
  std::vector<Ms> clock_from_;
  std::vector<std::size_t> recent_;
  Complaint last_complaint_ = nullptr;
  Verdict verdict_;
};

}  // namespace

Verdict check(const History& history) {
  return Search{history}.run();
}

}  // namespace semel::proofs
