// See semel/patterns/debounce.hpp.
//
// Protocol of run_once_more_after
//   caller during a run   1. writes the mark, which gives it a new version   2. claims: in flight
//   runner at the end     1. releases the claim   2. compares the mark with the version that it
//                         read when it began, and runs again if it differs
// At least one of them sees the other's first step, so no call that was answered "will run again"
// is lost.
#include "semel/patterns/debounce.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <new>
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#include "base/assert.hpp"
#include "base/mutex.hpp"
#include "semel/engine_host.hpp"
#include "semel/store.hpp"

namespace semel {
namespace {

/// No name of a namespace begins with it, so it cannot be the key of a claim.
[[nodiscard]] std::string asked_key_of(const Claims& claims, Bytes key) {
  std::string name{"asked/"};
  return name.append(claims.name()).append(":").append(key);
}

constexpr Millis mark_ttl_min{86'400'000};  // longer than a run takes

[[nodiscard]] bool runs_again(const DebounceOptions& options) noexcept {
  return options.run_once_more_after || options.run_latest_after;
}

}  // namespace

/// The last function that a call has handed over, for each key. One is here before its call leaves
/// its mark, so that a runner that sees the mark finds it. It is here no longer than turns of this
/// object are under way for the key: a run of another object would never take it.
class Debounce::Handed {
 public:
  /// The turn begins; it ends with the returned object.
  [[nodiscard]] std::shared_ptr<void> enter(Bytes key) {
    std::string name{key};
    {
      const base::MutexLock lock{mutex_};
      ++keys_[name].turns;
    }
    return {this, [this, name = std::move(name)](void*) { leave(name); }};
  }
  [[nodiscard]] std::uint64_t put(Bytes key, Turn::Function function) {
    const base::MutexLock lock{mutex_};
    Last& last = last_of(key);
    last.function.swap(function);  // the one before ends with the parameter, outside of the lock
    return last.place = ++places_;
  }
  /// Removes the function at `place`, or an earlier one: its call runs by itself or has got another
  /// answer.
  void take_back(Bytes key, std::uint64_t place) noexcept {
    Turn::Function function;  // its captures are destroyed outside of the lock
    const base::MutexLock lock{mutex_};
    Last& last = last_of(key);
    if (last.place <= place) function.swap(last.function);
  }
  [[nodiscard]] bool has(Bytes key) noexcept {
    const base::MutexLock lock{mutex_};
    return static_cast<bool>(last_of(key).function);
  }
  /// Empty: none was handed over.
  [[nodiscard]] Turn::Function take(Bytes key) noexcept {
    const base::MutexLock lock{mutex_};
    return std::exchange(last_of(key).function, nullptr);
  }

 private:
  struct Last {
    std::size_t turns = 0;
    std::uint64_t place = 0;
    Turn::Function function;
  };
  using Keys = std::map<std::string, Last, std::less<>>;
  /// Of a key with a turn under way.
  [[nodiscard]] Last& last_of(Bytes key) noexcept SEMEL_REQUIRES(mutex_) {
    const auto found = keys_.find(key);
    SEMEL_ASSERT(found != keys_.end() && found->second.turns > 0);
    return found->second;
  }
  void leave(Bytes key) noexcept {
    Keys::node_type ended;  // as in take_back()
    const base::MutexLock lock{mutex_};
    if (--last_of(key).turns == 0) ended = keys_.extract(keys_.find(key));
  }

  base::Mutex mutex_;
  std::uint64_t places_ SEMEL_GUARDED_BY(mutex_) = 0;
  Keys keys_ SEMEL_GUARDED_BY(mutex_);
};

Debounce::Debounce(Engine& engine, const Claims& claims, const DebounceOptions& options)
    : engine_(&engine), claims_(claims), options_(options) {
  if (options.run_latest_after) handed_ = std::make_shared<Handed>();
}

Debounce::Turn::Turn(Debounce& debounce, Bytes key, Function latest)
    : debounce_(debounce), key_(key) {
  if (!Watchdog::check(debounce.options_.watchdog, debounce.claims_, debounce.options_.interval)) {
    answer_ = DebounceAnswer::refused;
    return;
  }
  if (debounce.handed_ != nullptr) turn_ = debounce.handed_->enter(key);
  if (latest) place_ = debounce.handed_->put(key, std::move(latest));
  if (!runs_again(debounce.options_) || announce()) ask();
  if (place_ != 0 && answer_ != DebounceAnswer::will_run_again) {
    debounce.handed_->take_back(key, place_);
  }
}

/// Writes the mark. False: it cannot be written, and nothing runs.
bool Debounce::Turn::announce() {
  asked_key_ = asked_key_of(debounce_.claims_, key_);
  Store store = debounce_.engine_->store(debounce_.claims_.policy().db);
  const Millis ttl = std::max(debounce_.options_.interval, mark_ttl_min);
  const auto marked = store.set(asked_key_, "1", {.expiry = Expiry::in(ttl)});
  if (marked.ok()) return true;
  const bool later = retry_of(marked.error().code) == Retry::later;
  answer_ = later ? DebounceAnswer::busy : DebounceAnswer::refused;
  return false;
}

Debounce::Turn::~Turn() {
  if (!runs_) return;
  // The function threw, or its thread is being cancelled. Whatever becomes of the release, the
  // claim ends with its interval.
  try {
    end(false);
    while (runs_ && own_ != nullptr) {
      bool ok = false;
      try {
        ok = run_one();
      } catch (...) {  // the first exception, or the end of the thread, is on its way
      }
      end(ok);
    }
  } catch (const std::bad_alloc&) {
  }
}

bool Debounce::Turn::run_one() {
  SEMEL_ASSERT(own_ != nullptr);
  return handed_over_ ? handed_over_() : (*own_)();
}

/// Takes the mark away if it is still the one that the run began with.
bool Debounce::Turn::others_asked() {
  SEMEL_ASSERT(!asked_key_.empty());
  const StoreOp op{.verb = Verb::delex,
                   .db = debounce_.claims_.policy().db,
                   .condition = Condition::if_version,
                   .key = asked_key_,
                   .expected = seen_};
  StoreOutcome outcome;
  debounce_.engine_->host().apply(op, outcome);
  return outcome.error == ErrorCode::ok && outcome.found && !outcome.applied;
}

void Debounce::Turn::ask() {
  SEMEL_ASSERT(!runs_);
  const DebounceOptions& options = debounce_.options_;
  const ClaimOutcome claim = debounce_.claims_.claim({.key = key_, .lease = options.interval});
  runs_ = claim.answer == ClaimAnswer::granted;
  if (runs_) {
    SEMEL_ASSERT(claim.epoch != 0);
    epoch_ = claim.epoch;
    if (runs_again(options)) {
      Store store = debounce_.engine_->store(debounce_.claims_.policy().db);
      const auto mark = store.get_versioned(asked_key_);
      seen_ = mark.ok() && *mark ? (*mark)->version : 0;
    }
    if (options.watchdog != nullptr) {
      kept_ = options.watchdog->keep(debounce_.claims_, key_, epoch_, options.interval);
    }
    return;
  }
  // Another run serves the callers of this one.
  if (answer_ == DebounceAnswer::ran || answer_ == DebounceAnswer::failed) return;
  if (claim.answer == ClaimAnswer::in_flight) {
    answer_ = runs_again(options) ? DebounceAnswer::will_run_again : DebounceAnswer::suppressed;
    return;
  }
  const bool later = retry_of(claim.error) == Retry::later;
  answer_ = later ? DebounceAnswer::busy : DebounceAnswer::refused;
}

void Debounce::Turn::run(const Function& function) {
  own_ = &function;
  std::exception_ptr thrown;
  while (runs_) {
    try {
      end(run_one());
#ifdef __GLIBCXX__
    } catch (const abi::__forced_unwind&) {
      throw;  // the thread is being cancelled, and that cannot be caught
#endif
    } catch (...) {
      if (!runs_again(debounce_.options_)) throw;
      if (thrown == nullptr) thrown = std::current_exception();
      end(false);
    }
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

void Debounce::Turn::end(bool ok) {
  SEMEL_ASSERT(runs_);
  const DebounceOptions& options = debounce_.options_;
  kept_ = {};
  runs_ = false;
  answer_ = ok ? DebounceAnswer::ran : DebounceAnswer::failed;
  const bool removes =
      runs_again(options) || (ok ? options.remove_on_finish : options.remove_on_error);
  if (!removes) return;
  const OwnerAnswer released = debounce_.claims_.release({.key = key_, .epoch = epoch_}).answer;
  // Another answer than ok: the run took longer than its interval. If another run has begun, it
  // serves all earlier callers. If there is none (unknown), callers still wait for this one.
  if (released != OwnerAnswer::ok && released != OwnerAnswer::unknown) return;
  if (!runs_again(options)) return;
  // A call may have left its function after this one was granted and its mark before we read it.
  const bool is_handed = debounce_.handed_ != nullptr && debounce_.handed_->has(key_);
  if (!others_asked() && !is_handed) return;
  ask();
  if (!runs_ || debounce_.handed_ == nullptr) return;
  if (Function latest = debounce_.handed_->take(key_)) handed_over_ = std::move(latest);
}

Result<Millis> Debounce::remaining(Bytes key) {
  SEMEL_TRY(view, claims_.get(key));
  return view.state == ClaimState::held ? view.lease_remaining : Millis{0};
}

}  // namespace semel
