// Waits that block no thread: for event loops, and for callers that poll for signals.
#include "bindings/c/wait.hpp"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/stopwatch.hpp"
#include "semel/patterns/once.hpp"

using namespace semel;

namespace {

/// How often one waiting thread advances the engine for all.
constexpr Millis advance_every{10};

[[nodiscard]] int check_wait_ms(semel_int64 wait_ms) noexcept {
  if (wait_ms >= 0 && wait_ms <= limits::ttl_max.count()) return SEMEL_OK;
  return c::guarded([&] {
    return c::say(ErrorCode::bad_option, "wait_ms = " + std::to_string(wait_ms) + ", allowed 0.." +
                                             std::to_string(limits::ttl_max.count()));
  });
}

/// Runs `function`, which allocates before it has any effect, so a failure changes nothing.
template <class Function>
int begun(Function&& function) {
  return c::guarded([&] {
    try {
      return function();
    } catch (const std::bad_alloc&) {
      return c::say(ErrorCode::memory_full);
    }
  });
}

/// The one waiting thread that advances the engine.
class Leader {
 public:
  explicit Leader(std::atomic<bool>& taken) noexcept
      : taken_(taken),
        // mo: relaxed: only whether there is one matters; no data is published by it.
        leads_(!taken.exchange(true, std::memory_order_relaxed)) {}
  ~Leader() {
    if (leads_) taken_.store(false, std::memory_order_relaxed);  // mo: relaxed: as above
  }
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;
  [[nodiscard]] explicit operator bool() const noexcept { return leads_; }

 private:
  std::atomic<bool>& taken_;
  bool leads_;
};

}  // namespace

semel_wait::semel_wait(semel_claims& space, const semel_request& asked, int fd)
    : claims(space),
      given(asked),
      key(c::bounded_key(asked.key, asked.key_length)),
      owner(c::bounded(asked.owner, asked.owner_length, limits::owner_label_max)),
      notify_fd(fd) {
  given.key = key.data();
  given.owner = owner.data();
  given.owner_length = owner.size();
  if (given.claim_id == nullptr) return;
  std::memcpy(claim_id.data(), given.claim_id, claim_id.size());
  given.claim_id = claim_id.data();
}

semel_wait::~semel_wait() {
  leave();
  if (taken || !answered || !semel::detail::is_granted(outcome)) return;
  if (holds) {
    static_cast<void>(lock->lock.unlock());
  } else {
    detail::give_back(claims.claims, key, outcome);
  }
}

void semel_wait::enter(const ClaimRequest& asked, Millis longest) {
  if (longest == Millis{0}) {
    return answer_at_once(claims.claims.claim(asked));
  }
  deadline = deadline_after(claims.claims.engine().now(), longest);
  ClaimOutcome at_once;
  const bool waits = claims.claims.begin_wait(
      asked, deadline, ticket, at_once, [this](ClaimOutcome&& end) { answer(std::move(end)); });
  if (!waits) answer_at_once(std::move(at_once));
}

void semel_wait::answer_at_once(ClaimOutcome&& known) noexcept {
  const base::MutexLock guard{mutex};
  SEMEL_ASSERT(!answered);
  outcome = std::move(known);
  answered = true;
}

void semel_wait::answer(ClaimOutcome&& end) noexcept {
  const base::MutexLock guard{mutex};
  SEMEL_ASSERT(!answered);
  outcome = std::move(end);
  answered = true;
  ended.notify_all();
  if (notify_fd < 0) return;
  const char one = 1;
  // A full pipe is readable as well, so a failed write loses nothing.
  if (write(notify_fd, &one, 1) != 1) return;
}

void semel_wait::leave() noexcept {
  if (std::exchange(is_left, true)) return;
  if (ticket != 0) claims.claims.cancel_wait(key, ticket);
  const base::MutexLock guard{mutex};
  if (answered) return;
  outcome.answer = ClaimAnswer::in_flight;
  outcome.error = ErrorCode::timed_out;
}

bool semel_wait::wait_for(Millis longest) {
  Engine& engine = claims.claims.engine();
  const Leader leads{claims.engine->has_leader};
  for (;;) {
    const Millis own = deadline - engine.now();
    Millis step = leads ? std::min(longest, advance_every) : longest;
    if (deadline != no_end) step = std::min(step, std::max(own, Millis{1}));
    {
      const base::Stopwatch waited;
      base::MutexLock guard{mutex};
      while (!answered && waited.passed() < step) ended.wait_for(guard, step - waited.passed());
      if (answered) return true;
    }
    if (leads || deadline <= engine.now()) engine.advance();
    longest -= step;
    if (longest > Millis{0}) continue;
    const base::MutexLock guard{mutex};
    return answered;
  }
}

int semel_wait_begin(semel_claims* claims, const semel_request* request, int notify_fd,
                     semel_wait** wait) {
  if (claims == nullptr || wait == nullptr) return c::say_null("claims or wait");
  *wait = nullptr;
  if (const int error = c::check_process(*claims->engine)) return error;
  semel_request given;
  if (const int error = c::read_sized(request, given); error != SEMEL_OK) return error;
  if (const int error = c::check(given); error != SEMEL_OK) return error;
  return begun([&] {
    auto made = std::make_unique<semel_wait>(*claims, given, notify_fd);
    ClaimRequest asked = c::request_of(made->given);
    asked.key = made->key;
    const Watchdog* const keeper = given.keep_lease != 0 ? &claims->engine->keeper() : nullptr;
    if (!Watchdog::check(keeper, claims->claims, asked.lease)) {
      ClaimOutcome refused;
      refused.answer = ClaimAnswer::busy;
      refused.error = ErrorCode::bad_option;
      made->answer_at_once(std::move(refused));
    } else {
      made->enter(asked, Millis{given.wait_ms});
    }
    *wait = made.release();
    return int{SEMEL_OK};
  });
}

int semel_lock_begin(semel_lock* lock, semel_int64 wait_ms, int notify_fd, semel_wait** wait) {
  if (lock == nullptr || wait == nullptr) return c::say_null("lock or wait");
  *wait = nullptr;
  if (const int error = c::check_process(*lock->claims.engine)) return error;
  if (const int error = check_wait_ms(wait_ms)) return error;
  return begun([&] {
    semel_request none;
    SEMEL_INIT(none);
    auto made = std::make_unique<semel_wait>(lock->claims, none, notify_fd);
    const ClaimRequest asked = lock->lock.request();
    made->key = asked.key;
    made->lock = lock;
    made->holds = lock->lock.try_lock();
    if (made->holds) {
      ClaimOutcome granted;
      granted.answer = ClaimAnswer::granted;
      granted.epoch = lock->lock.fencing_token();
      made->answer_at_once(std::move(granted));
      made->asked_lock = true;
    } else if (wait_ms == 0 || lock->lock.why().answer != ClaimAnswer::in_flight) {
      ClaimOutcome refused = lock->lock.why();
      refused.error = lock->lock.why_not().code;
      made->answer_at_once(std::move(refused));
      made->asked_lock = true;
    } else {
      made->enter(asked, Millis{wait_ms});
    }
    *wait = made.release();
    return int{SEMEL_OK};
  });
}

int semel_wait_for(semel_wait* wait, semel_int64 longest_ms, int* answered) {
  if (wait == nullptr || answered == nullptr) return c::say_null("wait or answered");
  if (const int error = c::check_process(*wait->claims.engine)) return error;
  if (const int error = check_wait_ms(longest_ms)) return error;
  return c::guarded([&] {
    *answered = wait->wait_for(Millis{longest_ms}) ? 1 : 0;
    return int{SEMEL_OK};
  });
}

int semel_wait_end(semel_wait* wait, semel_claim_outcome* outcome) {
  if (wait == nullptr) return SEMEL_OK;
  if (const int error = c::check_process(*wait->claims.engine)) return error;
  c::Answer answer{outcome};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    const std::unique_ptr<semel_wait> ends{wait};
    wait->leave();
    if (outcome == nullptr) return int{SEMEL_OK};
    wait->taken = true;
    ClaimOutcome& result = wait->final_outcome();
    if (wait->lock == nullptr) {
      c::fill_claim(answer, result);
      return answer.deliver(
          c::say_outcome(result.error, *wait->claims.engine, wait->given.key_length));
    }
    if (result.error == ErrorCode::timed_out) result.error = ErrorCode::ok;
    Lock& lock = wait->lock->lock;
    if (wait->asked_lock) {
      c::fill_claim(answer, result);
      return answer.deliver(c::say(wait->holds ? Error{} : Error{result.error, {}}));
    }
    const bool held = lock.take(std::move(result));
    result = lock.why();
    result.error =
        held || lock.why_not().code == ErrorCode::timed_out ? ErrorCode::ok : lock.why_not().code;
    c::fill_claim(answer, result);
    return answer.deliver(result.error == ErrorCode::ok ? int{SEMEL_OK} : c::say(lock.why_not()));
  });
}
