#include "semel/patterns/replay_guard.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "patterns/tokens/forward_time.hpp"
#include "semel/limits.hpp"
#include "semel/store.hpp"

namespace semel {

namespace {

/// Two threads may read SystemClock 0.3 ms apart (clock.hpp), so by one of its milliseconds: a
/// nonce that one has seen end is not yet over for another without it.
constexpr Millis clocks_apart{1};

Error bad_option(const char* what) {
  return {ErrorCode::bad_option, what};
}

Status check_options(const ReplayGuardOptions& options) {
  const bool in_range = options.window >= Millis{1} && options.ahead >= Millis{0} &&
                        options.window <= limits::ttl_max && options.ahead <= limits::ttl_max &&
                        options.window + options.ahead + clocks_apart <= limits::ttl_max;
  if (!in_range) return bad_option("window and ahead, allowed 1.. and 0.. up to ttl_max together");
  if (options.db >= limits::db_count) return bad_option("db");
  if (options.name.empty() || options.name.size() > limits::namespace_name_max) {
    return bad_option("name, allowed 1..64 bytes");
  }
  if (options.secrets.empty() == !options.secrets_of) {
    return bad_option("secrets, give either those of all callers or those of each");
  }
  for (const std::string& secret : options.secrets) {
    if (secret.empty()) return bad_option("secrets, one is empty");
  }
  const bool can_sign = !signature_of({}, "secret", options.scheme).empty();
  if (!can_sign) return bad_option("scheme, libcrypto does not compute it");
  return Done{};
}

}  // namespace

class ReplayGuard::Impl {
 public:
  Impl(Engine& engine, ReplayGuardOptions options)
      : engine_(engine), options_(std::move(options)), time_(engine.clock()) {}

  ReplayOutcome check(const SignedRequest& request) {
    if (!is_well_formed(request, options_.scheme)) return {ReplayAnswer::malformed};
    if (!is_signed(request)) return {ReplayAnswer::bad_signature};
    const ReplayAnswer before = in_time(request.timestamp_unix_ms);
    if (before != ReplayAnswer::accepted) return {before};
    const auto taken =
        engine_.store(options_.db)
            .set(composite_key({options_.name, request.caller, request.nonce}), {},
                 {.condition = Condition::if_absent,
                  .expiry = Expiry::in(options_.window + options_.ahead + clocks_apart)});
    if (!taken.ok()) return {ReplayAnswer::busy, taken.error().code};
    if (!taken->stored) return {ReplayAnswer::replayed};
    // This thread may have paused for so long that the record of the same nonce has ended before it
    // came to ask; then it is too late for the request as well.
    return {in_time(request.timestamp_unix_ms)};
  }

 private:
  ReplayAnswer in_time(std::int64_t timestamp) noexcept {
    const std::int64_t age = time_.unix_ms() - timestamp;
    if (age >= options_.window.count()) return ReplayAnswer::too_old;
    return age < -options_.ahead.count() ? ReplayAnswer::too_new : ReplayAnswer::accepted;
  }

  [[nodiscard]] bool is_signed(const SignedRequest& request) const {
    if (!options_.secrets_of) return is_signed_by(request, options_.secrets, options_.scheme);
    return is_signed_by(request, options_.secrets_of(request.caller), options_.scheme);
  }

  Engine& engine_;
  const ReplayGuardOptions options_;
  patterns::ForwardTime time_;
};

ReplayGuard::ReplayGuard(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ReplayGuard::~ReplayGuard() = default;
ReplayGuard::ReplayGuard(ReplayGuard&&) noexcept = default;
ReplayGuard& ReplayGuard::operator=(ReplayGuard&&) noexcept = default;

Result<ReplayGuard> ReplayGuard::open(Engine& engine, ReplayGuardOptions options) {
  SEMEL_CHECK(check_options(options));
  return ReplayGuard{std::make_unique<Impl>(engine, std::move(options))};
}

ReplayOutcome ReplayGuard::check(const SignedRequest& request) {
  return impl_->check(request);
}

}  // namespace semel
