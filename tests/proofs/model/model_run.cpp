#include "tests/proofs/model/model_run.hpp"
#include "semel/engine_host.hpp"

#include <cstdio>
#include <cstdlib>

namespace semel::proofs {
namespace {

Policy policy_of(std::size_t index) {
  Policy policy;
  policy.lease = Millis{15};
  policy.result_ttl = Millis{40};
  policy.failure_ttl = Millis{30};
  policy.attempts_ttl = Millis{60};
  switch (index) {
    case 0:  // the plain one
      break;
    case 5:
      policy.sliding_max = Millis{200};
      break;
    case 6:
      policy.unique_ttl = Millis{2'000};
      policy.sliding_max = Millis{5'000};
      break;
    case 1:
      policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
      policy.unique_ttl = Millis{100};
      policy.db = 1;
      break;
    case 2:
      policy.attempts_max = 3;
      policy.window = Millis{50};
      break;
    case 3:
      policy.issued = true;
      policy.window = Millis{50};
      policy.ahead = Millis{20};
      break;
    default:
      policy.strict = true;
      policy.on_failure = Policy::OnFailure::keep;
      policy.unique_ttl = Millis{5'000};
      policy.attempts_max = 5;
      policy.retry_after_max = Millis{4};
  }
  return policy;
}

constexpr Ms two_hundred_years = Ms{200} * 366 * 24 * 3600 * 1000;

}  // namespace

ModelRun::ModelRun(const Profile& profile, std::uint64_t seed)
    : profile_(profile), seed_(seed), random_(seed) {
  for (std::size_t i = 0; i < profile.key_count; ++i) {
    std::string key = "k" + std::to_string(i);
    if (i % 7 == 3) key.append(250, 'k');  // beyond the short form of a record
    if (i % 7 == 5) key.insert(key.begin(), '\0');
    keys_.push_back(std::move(key));
  }
}

void ModelRun::open() {
  Options options;
  options.clock = &clock_;
  options.journal = &journal_;
  options.memory_bytes = profile_.memory_bytes;
  options.value_bytes_max = profile_.value_bytes_max;
  options.shard_count = 1U << random_.below(5);
  options.hash_seed = seed_;
  auto engine = Engine::open(options);
  if (!engine) return fail("the engine does not open: " + engine.error().message());
  engine_ = *std::move(engine);
  for (std::size_t i = 0; i < namespace_count; ++i) {
    names_.push_back({"n" + std::to_string(i), policy_of(i), std::nullopt});
    auto claims = engine_->claims(names_[i].name, names_[i].policy);
    if (!claims) return fail("a namespace is refused: " + claims.error().message());
    names_[i].claims = *claims;
  }
}

ModelRun::~ModelRun() {
  engine_.reset();  // answers those who still wait, while this is whole
}

Moment ModelRun::moment() const {
  return {.now = now(),
          .unix_ms = clock_.unix_ms(),
          .dead_sessions = dead_sessions_,
          .value_bytes_max = profile_.value_bytes_max};
}

std::uint32_t ModelRun::session_number(SessionId session) const {
  if (session == 0) return 0;
  const auto at = session_numbers_.find(session);
  return at == session_numbers_.end() ? 1 : at->second;
}

bool ModelRun::run() {
  open();
  while (!failed_ && operations_ < profile_.operations) {
    ++operations_;
    one_operation();
    if (!failed_) take_answers();
    if (!failed_ && operations_ % profile_.verify_every == 0) verify();
    if (!failed_ && random_.chance(1, profile_.check_every)) compare_everything();
  }
  if (!failed_) compare_everything();
  if (!failed_) compare_snapshot();
  if (!failed_) compare_replay();
  return !failed_;
}

void ModelRun::one_operation() {
  const std::uint64_t choice = random_.below(1000);
  if (choice < 430) return do_store();
  if (choice < 550) return do_claim();
  if (choice < 690) return do_owner_call();
  if (choice < 790) return do_time();
  if (choice < 840) return do_advance();
  if (choice < 855) return do_claim_view();
  if (choice < 870) return do_issue();
  if (choice < 910) return do_multi_key();
  if (choice < 930) return do_store_batch();
  if (choice < 945) return do_claim_batch();
  if (choice < 955) return do_complete_batch();
  if (choice < 965) return do_claim_all();
  if (choice < 980) return do_section();
  if (choice < 988) return do_wait();
  if (choice < 995) return do_session();
  if (choice < 999) return do_operator_call();
  rare_operation();
}

void ModelRun::rare_operation() {
  switch (random_.below(8)) {
    case 0:
      return do_flush();
    case 1:
    case 2:
      return do_swap();
    case 3:
      return compare_snapshot();
    case 4:
      note("step of the wall clock");
      return clock_.step_wall(Millis{random_.duration(1'000'000)});
    default:
      return do_size();
  }
}

void ModelRun::do_time() {
  const bool far = now() > two_hundred_years;
  const Ms longest = far ? 1000 : limits::ttl_max.count();
  Ms by = static_cast<Ms>(random_.below(6));
  if (random_.chance(1, 30)) by = random_.duration(longest);
  note("clock advances by " + std::to_string(by));
  clock_.advance(Millis{by});
}

void ModelRun::do_advance() {
  if (random_.chance(2, 3)) {
    const std::size_t budget = random_.between(1, 40);
    note("advance with budget " + std::to_string(budget));
    static_cast<void>(engine_->advance(budget));
    return;
  }
  if (random_.chance(1, 4)) {
    note("compact");
    static_cast<void>(engine_->host().compact());
    return;
  }
  note("advance to the end");
  // Bounded: each round removes something or reports that nothing is left.
  for (int round = 0; round < 1000 && engine_->advance() == 0; ++round) {
  }
  take_answers();
  if (!failed_) check_waiters();
}

void ModelRun::judge(const char* what, Complaint complaint) {
  if (complaint != nullptr) fail(std::string{what} + ": " + complaint);
}

void ModelRun::expect(bool right, const std::string& what) {
  if (!right) fail(what);
}

void ModelRun::note(std::string text) {
  recent_.emplace_back(std::move(text));
  if (recent_.size() > remembered_operations) recent_.pop_front();
}

void ModelRun::note(Step step) {
  recent_.emplace_back(std::move(step));
  if (recent_.size() > remembered_operations) recent_.pop_front();
}

void ModelRun::fail(const std::string& what) {
  if (failed_) return;
  failed_ = true;
  std::printf("model: DIFFERENCE in profile %s, seed %llu, operation %llu, now %lld: %s\n",
              profile_.name, static_cast<unsigned long long>(seed_),
              static_cast<unsigned long long>(operations_), static_cast<long long>(now()),
              what.c_str());
  for (const auto& one : recent_) {
    const auto* const text_only = std::get_if<std::string>(&one);
    std::string text = text_only != nullptr ? *text_only : describe(std::get<Step>(one));
    for (char& c : text) c = c >= ' ' && c <= '~' ? c : '.';
    std::printf("  %s\n", text.c_str());
  }
}

}  // namespace semel::proofs
