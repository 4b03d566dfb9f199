// See semel/patterns/read_write_lock.hpp, and docs/decisions/0100-a-read-write-lock.md for why this
// keeps its promises.
//
//   "{key}#read0", "{key}#read1", ..   claims, one a reader
//   "{key}#write"                      a claim, the writer's
//   "{key}#next"                       a claim, of the caller in front
//   "ns:{key}#token"                   a string whose version is the token
//
// An attempt claims first and looks at the others afterwards: of a reader and a writer that come
// together, the later claim sees the earlier one. Both may give way; never do both stay.
#include "semel/patterns/read_write_lock.hpp"

#include <algorithm>
#include <utility>

#include "patterns/holders/slots.hpp"
#include "semel/engine.hpp"
#include "semel/patterns/once.hpp"
#include "semel/store.hpp"

namespace semel {
namespace {

using detail::is_granted;
using detail::is_in_flight;

/// A token is kept for so long after the last writer. The next reader makes one that is larger.
constexpr Millis token_ttl{86'400'000};
/// Of the place in front, in process: its owner's session ends it sooner.
constexpr Millis place_lease{10'000};
AccessOutcome refused_access(ErrorCode code) {
  AccessOutcome found;
  found.claim.answer = ClaimAnswer::busy;
  found.claim.error = code;
  return found;
}

std::string with(const std::string& stem, std::string_view word) {
  return std::string{stem}.append(word);
}

/// A claim of `key` in the name of `request`, as the lock needs it for itself.
ClaimRequest helper_of(const ClaimRequest& request, Bytes key, Millis lease) {
  return {.key = key, .lease = lease, .owner = request.owner, .session = request.session};
}

/// The place in front. Not given back by itself: a client asks again.
class Place {
 public:
  Place(Claims& claims, const ClaimRequest& request, std::string key)
      : claims_(claims), request_(request), key_(std::move(key)) {}

  [[nodiscard]] bool is_mine() const noexcept { return epoch_ != 0; }
  [[nodiscard]] const std::string& key() const noexcept { return key_; }

  /// Whether it is that of the request's claim id. A free one is not taken, unless it has just
  /// ended.
  void find(Millis lease) {
    const Result<ClaimView> view = claims_.get(key_);
    if (view.ok() && view->state == ClaimState::held) take(lease);
  }
  /// If it is free.
  void take(Millis lease) {
    ClaimRequest asked = helper_of(request_, key_, lease);
    asked.claim_id = request_.claim_id;
    note(claims_.claim(asked));
  }
  /// Stands in the line for it.
  [[nodiscard]] ClaimOutcome wait(Millis lease, Timestamp deadline) {
    ClaimOutcome outcome = claims_.claim_or_wait(helper_of(request_, key_, lease), deadline);
    note(outcome);
    return outcome;
  }
  void keep(Millis lease) {
    const OwnerOutcome kept = claims_.renew({.key = key_, .epoch = epoch_, .lease = lease});
    if (kept.answer != OwnerAnswer::ok) epoch_ = 0;
  }
  /// The engine is gone by now, perhaps.
  void forget() noexcept { epoch_ = 0; }
  void give() noexcept {
    if (epoch_ == 0) return;
    ClaimOutcome grant;
    grant.epoch = std::exchange(epoch_, 0);
    detail::give_back(claims_, key_, grant);
  }

 private:
  void note(const ClaimOutcome& outcome) noexcept {
    epoch_ = is_granted(outcome) ? outcome.epoch : 0;
  }

  Claims& claims_;
  const ClaimRequest& request_;
  const std::string key_;
  Epoch epoch_ = 0;
};

/// Gives it back at the end of a wait, also with an exception.
class PlaceUntilHere {
 public:
  explicit PlaceUntilHere(Place& place) noexcept : place_(place) {}
  ~PlaceUntilHere() { place_.give(); }
  PlaceUntilHere(const PlaceUntilHere&) = delete;
  PlaceUntilHere& operator=(const PlaceUntilHere&) = delete;

 private:
  Place& place_;
};

/// The attempts of one caller.
class AccessAttempt {
 public:
  AccessAttempt(Claims& claims, const ClaimRequest& request, Access access)
      : claims_(claims),
        request_(request),
        access_(access),
        stem_(detail::stem_of(request.key)),
        write_(with(stem_, "write")),
        readers_(claims, request, with(stem_, "read"), limits::readers_max),
        place_(claims, request_, with(stem_, "next")) {}

  [[nodiscard]] Place& place() noexcept { return place_; }

  /// One attempt. The place in front is given back with a grant, and with an exception.
  [[nodiscard]] AccessOutcome ask() {
    AccessOutcome found;
    try {
      if (!(request_.claim_id && find_own(found))) enter(found);
      if (is_granted(found.claim)) confirm(found);
    } catch (...) {
      if (found.claim.answer == ClaimAnswer::granted) {
        detail::give_back(claims_, found.key, found.claim);
      }
      place_.give();
      throw;
    }
    if (is_granted(found.claim)) place_.give();
    return found;
  }

  /// After ask() was answered `found`: until it may be answered otherwise, or the deadline. False:
  /// `found` says why it cannot wait.
  [[nodiscard]] bool wait(AccessOutcome& found, Timestamp deadline) {
    if (!place_.is_mine()) {
      ClaimOutcome outcome = place_.wait(place_lease, deadline);
      if (place_.is_mine() || outcome.error == ErrorCode::timed_out) return true;
      if (outcome.error != ErrorCode::ok) return refuse(found, std::move(outcome));
      detail::pause_a_moment();  // the place is in doubt, or there is no memory for it
      return true;
    }
    // In front: only those that are in stand in the way, one after the other.
    const Timestamp until =
        std::min(deadline, deadline_after(claims_.engine().now(), place_lease / 3));
    const ClaimRequest blocker = helper_of(request_, found.key, place_lease);
    ClaimOutcome outcome = claims_.claim_or_wait(blocker, until);
    if (is_granted(outcome)) {
      detail::give_back(claims_, blocker.key, outcome);
    } else if (outcome.error != ErrorCode::timed_out && outcome.error != ErrorCode::ok) {
      return refuse(found, std::move(outcome));
    }
    place_.keep(place_lease);
    return true;
  }

 private:
  /// What the claim id has; it is looked at as if it were claimed now.
  [[nodiscard]] bool find_own(AccessOutcome& found) {
    if (access_ == Access::read) {
      detail::SlotFound slot;
      if (!readers_.find_own(slot, limits::readers_max)) return false;
      found = {.claim = std::move(slot.claim), .key = std::move(slot.key)};
      return true;
    }
    const Result<ClaimView> view = claims_.get(write_);
    if (!view.ok() || view->state != ClaimState::held) return false;
    found = {.claim = claim(write_), .key = write_};
    return is_granted(found.claim);
  }

  /// Claims, unless others are in or in front. They are looked at before as well, so that an
  /// attempt that is refused changes nothing as a rule.
  void enter(AccessOutcome& found) {
    if (!place_.is_mine() && is_next(found)) return;
    if (is_kept_out(found)) return;
    if (access_ == Access::write) {
      found = {.claim = claim(write_), .key = write_};
      return;
    }
    detail::SlotFound slot;
    readers_.claim_lowest(slot);
    found = {.claim = std::move(slot.claim), .key = std::move(slot.key)};
  }

  /// A grant stays if no excluded caller is in, and if it is still held after that check and after
  /// the token was made.
  void confirm(AccessOutcome& found) {
    AccessOutcome other;
    Result<Version> token = Version{0};
    bool stays = !is_kept_out(other);
    if (stays) {
      token = make_token();
      stays = token.ok();
      if (!stays) other = refused_access(token.error().code);
    }
    if (stays && !detail::is_live(claims_, found.key, found.claim.epoch)) {
      stays = false;
      other = {.claim = found.claim, .key = found.key};
      other.claim.answer = ClaimAnswer::in_flight;
      other.claim.error = ErrorCode::timed_out;  // its lease is shorter than an attempt
      other.claim.epoch = 0;
    }
    if (!stays) {
      // What the claim id had before is not taken away: the other may be about to give way to it,
      // and has to see it until then.
      const bool is_new = found.claim.answer == ClaimAnswer::granted;
      if (is_new) detail::give_back(claims_, found.key, found.claim);
      found = std::move(other);
      return;
    }
    found.token = *token;
  }

  /// Another caller is in front. A place in doubt excludes no caller.
  [[nodiscard]] bool is_next(AccessOutcome& found) {
    const Result<ClaimView> view = claims_.get(place_.key());
    if (!view.ok()) {
      found = refused_access(view.error().code);
      return true;
    }
    if (view->state != ClaimState::held || view->lease_remaining <= Millis{0}) return false;
    found = {.claim = detail::in_flight_of(claims_, *view), .key = place_.key()};
    return true;
  }

  /// A caller that this access excludes is in.
  [[nodiscard]] bool is_kept_out(AccessOutcome& found) {
    if (access_ == Access::read) return is_in(write_, found);
    for (std::uint32_t slot = 0; slot < limits::readers_max; ++slot) {
      if (is_in(readers_.key_of(slot), found)) return true;
    }
    return false;
  }

  [[nodiscard]] bool is_in(const std::string& key, AccessOutcome& found) {
    const Result<ClaimView> view = claims_.get(key);
    if (!view.ok()) {  // one that cannot be read counts
      found = refused_access(view.error().code);
      return true;
    }
    if (!detail::is_taken(*view)) return false;
    found = {.claim = detail::in_flight_of(claims_, *view), .key = key};
    if (view->state == ClaimState::held) return true;
    ClaimOutcome outcome = claim(key);  // a doubt, or a claim of finished work
    if (is_granted(outcome)) {
      detail::give_back(claims_, key, outcome);
    } else {
      found.claim = std::move(outcome);
    }
    return true;
  }

  /// Larger than those of all writers before, and than those of all readers if this is a writer's.
  [[nodiscard]] Result<Version> make_token() {
    Store store = claims_.engine().store(claims_.policy().db);
    const std::string key = std::string{claims_.name()}.append(":").append(with(stem_, "token"));
    SEMEL_TRY(seen, store.get_versioned(key));
    if (seen && access_ == Access::read) return seen->version;
    SEMEL_TRY(set, store.set(key, "1", {.expiry = Expiry::in(token_ttl)}));
    return set.version;
  }

  [[nodiscard]] ClaimOutcome claim(const std::string& key) {
    ClaimRequest asked = request_;
    asked.key = key;
    return claims_.claim(asked);
  }

  [[nodiscard]] bool refuse(AccessOutcome& found, ClaimOutcome&& outcome) {
    if (outcome.error == ErrorCode::closing) place_.forget();
    found = {.claim = std::move(outcome), .key = place_.key()};
    return false;
  }

  Claims& claims_;
  const ClaimRequest request_;
  const Access access_;
  const std::string stem_;
  const std::string write_;
  detail::Slots readers_;
  Place place_;
};

}  // namespace

AccessOutcome claim_access(Claims& claims, const ClaimRequest& request, Access access,
                           std::optional<Duration> next) {
  if (request.key.empty()) return refused_access(ErrorCode::key_empty);
  const bool is_possible = !next || (request.claim_id && *next >= Duration{Millis{1}} &&
                                     *next <= Duration{limits::next_max});
  if (!is_possible) return refused_access(ErrorCode::bad_option);
  AccessAttempt asking{claims, request, access};
  Place& place = asking.place();
  const Millis wanted{next.value_or(place_lease)};
  if (request.claim_id) place.find(wanted);
  AccessOutcome found = asking.ask();
  if (!next || !is_in_flight(found.claim)) {
    place.give();
  } else if (place.is_mine()) {
    place.keep(wanted);
  } else {
    place.take(wanted);
  }
  return found;
}

AccessOutcome claim_access_or_wait(Claims& claims, const ClaimRequest& request, Access access,
                                   Timestamp deadline) {
  if (request.key.empty()) return refused_access(ErrorCode::key_empty);
  constexpr unsigned late_max = 16;  // leases that are over each time are too short
  AccessAttempt asking{claims, request, access};
  const PlaceUntilHere given{asking.place()};
  if (request.claim_id) asking.place().find(place_lease);  // of an attempt with `next` before
  for (unsigned late = 0;;) {
    AccessOutcome found = asking.ask();
    const bool is_late = found.claim.error == ErrorCode::timed_out && ++late < late_max;
    const bool is_over = claims.engine().now() >= deadline;
    if (is_over || !(is_late || is_in_flight(found.claim))) return found;
    if (!is_late && !asking.wait(found, deadline)) return found;
  }
}

Result<std::vector<AccessView>> accesses_held(Claims& claims, Bytes key) {
  if (key.empty()) return Error{ErrorCode::key_empty, {}};
  std::vector<std::string> keys = access_keys(key);
  keys.pop_back();
  std::vector<AccessView> held;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    SEMEL_TRY(view, claims.get(keys[i]));
    if (!detail::is_taken(view)) continue;
    held.push_back({.access = i == 0 ? Access::write : Access::read,
                    .waits = i + 1 == keys.size(),
                    .key = std::move(keys[i]),
                    .claim = std::move(view)});
  }
  return held;
}

std::vector<std::string> access_keys(Bytes key) {
  const std::string stem = detail::stem_of(key);
  std::vector<std::string> keys{with(stem, "write")};
  for (std::uint32_t slot = 0; slot < limits::readers_max; ++slot) {
    keys.push_back(with(stem, "read") + std::to_string(slot));
  }
  keys.push_back(with(stem, "next"));
  keys.push_back(with(stem, "token"));
  return keys;
}

ReadWriteLock::ReadWriteLock(const Claims& claims, Bytes key, const ReadWriteOptions& options)
    : hold_(claims, key,
            {.lease = options.lease,
             .owner = options.owner,
             .session = options.session,
             .watchdog = options.watchdog},
            std::string{"read/write lock '"}.append(key).append("'")) {}

bool ReadWriteLock::attempt(Access access, Timestamp deadline) {
  return hold_.attempt([&](Claims& claims, const ClaimRequest& request) {
    AccessOutcome found = claim_access_or_wait(claims, request, access, deadline);
    return detail::Attempted{.claim = std::move(found.claim),
                             .key = std::move(found.key),
                             .kind = static_cast<std::uint32_t>(access),
                             .token = found.token};
  });
}

bool ReadWriteLock::try_read() {
  return attempt(Access::read, Timestamp::min());
}

bool ReadWriteLock::try_write() {
  return attempt(Access::write, Timestamp::min());
}

bool ReadWriteLock::try_read_for(Duration wait) {
  return attempt(Access::read, hold_.end_of(wait));
}

bool ReadWriteLock::try_write_for(Duration wait) {
  return attempt(Access::write, hold_.end_of(wait));
}

void ReadWriteLock::read() {
  if (!attempt(Access::read, no_end)) hold_.throw_why();
}

void ReadWriteLock::write() {
  if (!attempt(Access::write, no_end)) hold_.throw_why();
}

}  // namespace semel
