#include "gateway/store/node_store.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "gateway/store/node_words.hpp"

namespace semel::gateway {
namespace {

constexpr Millis renew_every{100};  // leases are 1 s at least
constexpr Millis wait_min{25};
constexpr Millis wait_max{250};
constexpr Millis store_pause{1'000};

ClaimId new_claim_id() {
  ClaimId id{};
  base::fill_random(id);
  return id;
}

/// The remaining lease, by this machine's steady clock, counted from before it began.
Millis lease_left(const Work& work) noexcept {
  if (!work.lease_since) return Millis{0};
  return std::max(work.lease - work.lease_since->passed(), Millis{0});
}

/// Shows the client only the kind of an error: addresses and users of the store are for operators,
/// see /readyz.
Refusal unavailable(const NodeCall& asked) {
  std::string detail = "the store does not answer";
  if (asked.is_answered) detail = "the answer of the store is none";
  if (asked.is_answered && asked.reply.is_error()) {
    detail = "the store refuses: " + std::string{error_word(asked.reply.text)};
  }
  return {Outcome::store_unavailable, std::move(detail), store_pause};
}

Admission not_admitted(const NodeCall& asked) {
  return {.outcome = Outcome::store_unavailable, .refusal = unavailable(asked)};
}

}  // namespace

/// Counted while it lives. Not in an unnamed namespace: frames of coroutines have it as a member.
class GiveBackCount {
 public:
  explicit GiveBackCount(std::size_t& count) noexcept : count_(count) { ++count_; }
  ~GiveBackCount() { --count_; }
  GiveBackCount(const GiveBackCount&) = delete;
  GiveBackCount& operator=(const GiveBackCount&) = delete;

 private:
  std::size_t& count_;
};

namespace {

std::string owner_command(std::string_view verb, const Work& work) {
  const std::string name = claims_name(*work.route);
  const std::string epoch = std::to_string(work.epoch);
  return command_of({verb, name, work.key, epoch});
}

}  // namespace

NodeStore::NodeStore(asio::io_context& io, const RequestRules& rules, HeldReplies& held,
                     const NodeContext& context, std::shared_ptr<NodeLink> link)
    : io_(io),
      rules_(rules),
      held_(held),
      context_(context),
      link_(link != nullptr ? std::move(link) : std::make_shared<NodeLink>(io, context)) {}

NodeStore::~NodeStore() = default;

asio::awaitable<NodeCall> NodeStore::call(const std::string& command, Millis within) {
  const NodeCommand whole{command};
  co_return co_await call(whole, within);
}

asio::awaitable<NodeCall> NodeStore::call(const NodeCommand& command, Millis within) {
  return call_node(io_, link_, context_.counters, command, within);
}

Prepared NodeStore::prepare(const Route& route, const Request& request) {
  if (const auto refusal = rules_.check_headers(route, request)) return {.refusal = refusal};
  if (route.signature.is_required) {
    if (const auto refusal = rules_.check_signature(route, request)) return {.refusal = refusal};
  }
  return rules_.prepare(route, request);
}

asio::awaitable<std::optional<Refusal>> NodeStore::take_nonce(const Route& route,
                                                              const Request& request) {
  const auto self = shared_from_this();
  const Result<SignatureHeaders> headers = signature_headers(request.fields);
  SEMEL_ASSERT(headers.ok());  // prepare() has looked
  const std::string command = nonce_command(route, *headers, new_claim_id());
  NodeCall asked = co_await call(command, context_.settings.patience);
  const auto outcome = claim_outcome_of(asked.reply);
  if (!asked.is_answered || (!outcome && !asked.reply.is_error())) {
    // The client repeats the same request: its nonce must not be used up by a call that failed.
    const std::string key = composite_key({headers->key_id, headers->nonce});
    if (asked.is_answered || asked.may_be_done) {
      give_back({nonces_name(route), key, command, 0, nonce_lease(route.signature)});
    }
    co_return unavailable(asked);
  }
  if (!outcome) co_return unavailable(asked);
  switch (outcome->answer) {
    case ClaimAnswer::granted:
    case ClaimAnswer::regranted:
      co_return std::nullopt;
    case ClaimAnswer::too_old:
      co_return nonce_refusal(route, ReplayAnswer::too_old, {});
    case ClaimAnswer::too_new:
      co_return nonce_refusal(route, ReplayAnswer::too_new, {});
    case ClaimAnswer::busy:
    case ClaimAnswer::unprotected:
      co_return nonce_refusal(route, ReplayAnswer::busy, sentence_of(outcome->error));
    default:
      co_return nonce_refusal(route, ReplayAnswer::replayed, {});
  }
}

asio::awaitable<Admission> NodeStore::claim(Work& work) {
  const auto self = shared_from_this();
  const std::string command = claim_command(work, new_claim_id());
  const Millis lease = claim_policy(*work.route).lease;
  // A claim with unknown outcome is released within its lease, before it could become a doubt.
  const Millis patience = std::min(context_.settings.patience, lease / 2);
  const base::Stopwatch since;
  Millis pause = wait_min;
  asio::steady_timer timer{io_};
  for (;;) {
    NodeCall asked = co_await call(command, patience);
    std::optional<ClaimOutcome> outcome = claim_outcome_of(asked.reply);
    if (!asked.is_answered || (!outcome && !asked.reply.is_error())) {
      if (asked.is_answered || asked.may_be_done) {
        give_back({claims_name(*work.route), work.key, command, 0, lease});
      }
      co_return not_admitted(asked);
    }
    if (!outcome) co_return not_admitted(asked);
    if (outcome->answer == ClaimAnswer::granted || outcome->answer == ClaimAnswer::regranted) {
      work.lease_since = asked.sent;
      work.lease = outcome->answer == ClaimAnswer::granted ? lease : outcome->remaining;
    }
    const Millis left = work.route->wait - since.passed();
    if (outcome->answer != ClaimAnswer::in_flight || left <= Millis{0}) {
      Admission admission = admission_of(work, *std::move(outcome));
      held_.share(work, admission);
      co_return admission;
    }
    timer.expires_after(std::min(pause, left));
    co_await timer.async_wait(no_throw);
    pause = std::min(pause * 2, wait_max);
  }
}

LeaseState NodeStore::keep(Work& work) {
  // Less than half is left: the answer was slow, or answers an earlier try.
  if (lease_left(work) * 2 < work.route->lease) return LeaseState::unsure;
  kept_.insert_or_assign(&work, Kept{&work});
  start_renewing();
  return LeaseState::held;
}

asio::awaitable<bool> NodeStore::renew(Work& work) {
  const auto self = shared_from_this();
  const std::string command = owner_command("SEMEL.RENEW", work);
  const Millis left = lease_left(work);
  const NodeCall asked = co_await call(command, left);
  const auto outcome = owner_outcome_of(asked.reply);
  if (asked.is_answered && outcome && outcome->answer == OwnerAnswer::ok) {
    work.lease_since = asked.sent;
    work.lease = work.route->lease;
  }
  // Nothing was sent to the upstream. A new owner of the work has another epoch.
  if (lease_left(work) * 4 < work.route->lease) {
    give_back({claims_name(*work.route), work.key, {}, work.epoch, work.route->lease});
    co_return false;
  }
  kept_.insert_or_assign(&work, Kept{&work});
  start_renewing();
  co_return true;
}

void NodeStore::stop_keeping(const Work& work) noexcept {
  const auto found = kept_.find(&work);
  if (found != kept_.end()) kept_.erase(found);
}

void NodeStore::start_renewing() {
  if (std::exchange(is_renewing_, true)) return;
  asio::co_spawn(io_, renew_kept(), [self = shared_from_this()](const std::exception_ptr&) {
    self->is_renewing_ = false;  // without memory, the next request begins anew
  });
}

asio::awaitable<void> NodeStore::renew_kept() {
  const auto self = shared_from_this();
  asio::steady_timer timer{io_};
  while (!kept_.empty()) {
    timer.expires_after(renew_every);
    co_await timer.async_wait(no_throw);
    for (auto& [name, kept_work] : kept_) {
      const Work* const work = kept_work.work;
      if (kept_work.is_under_way || lease_left(*work) * 3 > work->route->lease * 2) continue;
      kept_work.is_under_way = true;
      const Millis within = std::max(lease_left(*work), renew_every);
      asio::co_spawn(io_, renew_one(work, work->epoch, within, owner_command("SEMEL.RENEW", *work)),
                     [self, kept = work](const std::exception_ptr&) {
                       const auto found = self->kept_.find(kept);
                       if (found != self->kept_.end()) found->second.is_under_way = false;
                     });
    }
  }
}

/// `work` identifies only: the request may have ended, and another one may have its address.
asio::awaitable<void> NodeStore::renew_one(const Work* work, Epoch epoch, Millis within,
                                           std::string command) {
  const auto self = shared_from_this();
  const NodeCall asked = co_await call(command, within);
  const auto outcome = owner_outcome_of(asked.reply);
  const auto found = kept_.find(work);
  if (found == kept_.end() || found->second.work->epoch != epoch) co_return;
  if (!asked.is_answered || !outcome || outcome->answer != OwnerAnswer::ok) co_return;
  found->second.work->lease_since = asked.sent;
  found->second.work->lease = found->second.work->route->lease;
}

asio::awaitable<Completion> NodeStore::complete(const Work& work, const RecordedReply& reply) {
  const auto self = shared_from_this();
  stop_keeping(work);
  std::string room;
  std::optional<std::string_view> bytes = record_of(*work.route, reply, room);
  if (!bytes) {
    const bool is_noted = co_await doubt(work, too_long_for_record);
    co_return Completion{.recorded = is_noted ? Recorded::yes : Recorded::no};
  }
  const std::string name = claims_name(*work.route);
  const std::string epoch = std::to_string(work.epoch);
  Completion completion{.recorded = Recorded::no};
  for (int tries = 0; tries < 2; ++tries) {
    const std::string first = command_before({"SEMEL.COMPLETE", name, work.key, epoch}, *bytes);
    const NodeCommand command{first, *bytes};
    const Millis within = std::max(lease_left(work), context_.settings.timeout);
    const NodeCall asked = co_await call(command, within);
    if (auto outcome = owner_outcome_of(asked.reply); asked.is_answered && outcome) {
      completion = completion_of(*std::move(outcome));
      break;
    }
    // The node has no room for the reply. To record that the work is done takes a few bytes.
    if (!asked.is_answered || !asked.reply.is_error() || reply.body.empty()) break;
    room = record_without_body(reply);
    bytes = room;
  }
  if (completion.newer && !held_.share(work, *completion.newer)) completion.newer.reset();
  co_return completion;
}

asio::awaitable<bool> NodeStore::end(const Work& work, std::string_view why, std::string_view how,
                                     Millis within) {
  const std::string name = claims_name(*work.route);
  const std::string epoch = std::to_string(work.epoch);
  const std::string command = command_of({"SEMEL.FAIL", name, work.key, epoch, why, how});
  const NodeCall asked = co_await call(command, within);
  const auto outcome = owner_outcome_of(asked.reply);
  co_return asked.is_answered&& outcome && outcome->answer == OwnerAnswer::ok;
}

asio::awaitable<bool> NodeStore::release(const Work& work) {
  const auto self = shared_from_this();
  stop_keeping(work);
  const bool is_free = co_await end(work, "", "RELEASE", context_.settings.patience);
  if (!is_free) {
    give_back({claims_name(*work.route), work.key, {}, work.epoch, lease_left(work)});
  }
  co_return is_free;
}

asio::awaitable<bool> NodeStore::doubt(const Work& work, std::string_view why) {
  const auto self = shared_from_this();
  stop_keeping(work);
  const Millis within = std::max(lease_left(work), context_.settings.timeout);
  co_return co_await end(work, why, "IN-DOUBT", within);
}

asio::awaitable<IssuedToken> NodeStore::issue_token(const Route& issuing, const Request& request) {
  const auto self = shared_from_this();
  NewToken made = rules_.new_token(issuing, request);
  IssuedToken issued;
  issued.refusal = std::move(made.refusal);
  if (issued.refusal) co_return issued;
  const Route* const route = rules_.find(issuing.token_route);
  const std::string name = claims_name(*route);
  const std::string ttl = std::to_string(route->token_ttl.count());
  const std::string command = command_of({"SEMEL.ISSUE", name, made.key, "TTL", ttl});
  NodeCall asked = co_await call(command, context_.settings.patience);
  // 0: the key was known. For a random key this means that an earlier try has succeeded.
  const bool is_issued = asked.is_answered && asked.reply.kind == NodeReply::Kind::text &&
                         (asked.reply.text == "1" || asked.reply.text == "0");
  if (is_issued) {
    issued.token = std::move(made.token);
  } else {
    issued.refusal = unavailable(asked);
  }
  co_return issued;
}

/// Retries until the lease has ended: then the claim has ended by itself.
void NodeStore::give_back(Orphan orphan) {
  if (given_back_ >= limits::given_back_max || orphan.within <= Millis{0}) return;
  asio::co_spawn(io_, give_back_now(std::move(orphan)),
                 [self = shared_from_this()](const std::exception_ptr&) {});
}

asio::awaitable<void> NodeStore::give_back_now(Orphan orphan) {
  const auto self = shared_from_this();
  const GiveBackCount counted{given_back_};
  const base::Stopwatch since;
  if (!orphan.claim.empty()) {
    // Claims with the same id: the answer has the epoch that is needed to end the claim.
    const NodeCall asked = co_await call(orphan.claim, orphan.within);
    const auto outcome = claim_outcome_of(asked.reply);
    const bool is_ours =
        asked.is_answered && outcome &&
        (outcome->answer == ClaimAnswer::granted || outcome->answer == ClaimAnswer::regranted);
    if (!is_ours) co_return;
    orphan.epoch = outcome->epoch;
  }
  const std::string epoch = std::to_string(orphan.epoch);
  const std::string command =
      command_of({"SEMEL.FAIL", orphan.name, orphan.key, epoch, "", "RELEASE"});
  const Millis left = std::max(orphan.within - since.passed(), context_.settings.timeout);
  static_cast<void>(co_await call(command, left));
}

}  // namespace semel::gateway
