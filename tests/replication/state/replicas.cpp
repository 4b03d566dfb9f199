// Replicas with other threads, seeds, shards and background work apply one log of random commands
// of every kind: all answers are equal, and so is the state at every 1,000th entry, byte by byte.
//
//   proof_replicas [--long] [--seed N] [--commands N] [--without time|secret|index]
//
// The first replica is the leader: later commands name the epochs and sessions that it was
// answered. The second has one shard and applies each stretch of the log on a new thread, beside
// threads that read, advance and compact. The third has 32 shards (ThreadSanitizer follows no more
// than 64 locks) and a background thread, and is made from a snapshot of the leader somewhere in
// the log. --without gives the second replica another time, secret or index than the log has: then
// a difference must be found, and the verdict is turned round.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "semel/engine_host.hpp"
#include "semel/store.hpp"
#include "tests/proofs/arguments.hpp"
#include "tests/replication/state/canonical.hpp"
#include "tests/replication/state/commands.hpp"
#include "tests/replication/state/origins.hpp"

namespace semel::tests {
namespace {

using namespace replication;

constexpr LogIndex stretch = 1'000;  // entries between two comparisons
constexpr unsigned shown_max = 8;

struct Wanted {
  proofs::Arguments arguments;
  std::uint64_t commands = 0;
  std::string without;
};

struct Logged {
  std::string entry;
  std::string answers;
};

Options options_of(unsigned shards, std::uint64_t seed) {
  Options options;
  options.shard_count = shards;
  options.hash_seed = seed;
  options.memory_bytes = std::size_t{64} << 20;
  options.background = std::nullopt;
  return options;
}

std::string bytes_of(const std::vector<Answer>& answers) {
  std::string bytes;
  for (const Answer& answer : answers) encode(answer, bytes);
  return bytes;
}

class Replicas {
 public:
  Replicas(const Wanted& wanted, std::uint64_t seed)
      : wanted_(wanted), seed_(seed), random_(seed), commands_(seed + 1), origins_(seed + 2) {}
  int run();

 private:
  [[nodiscard]] bool open();
  [[nodiscard]] bool lead();
  void follow(StateMachine& replica, LogIndex first, const char* name);
  void disturb(StateMachine& replica, std::uint64_t seed);
  void compare(StateMachine& replica, const std::string& expected, const char* name);
  void find(const std::string& what);

  const Wanted wanted_;
  const std::uint64_t seed_;
  proofs::Random random_;
  Commands commands_;
  Origins origins_;
  std::unique_ptr<StateMachine> leader_;
  std::unique_ptr<StateMachine> second_;
  std::unique_ptr<StateMachine> third_;
  LogIndex second_ahead_ = 0;  // its index is larger by so much
  std::vector<Logged> log_;    // the newest stretch
  LogIndex logged_ = 0;
  std::uint64_t applied_ = 0;  // commands
  std::uint64_t again_ = 0;    // that were answered as before
  std::uint64_t states_ = 0;
  std::uint64_t state_bytes_ = 0;
  std::atomic<bool> disturbs_{false};
  unsigned findings_ = 0;
};

void Replicas::find(const std::string& what) {
  if (findings_++ >= shown_max || !wanted_.without.empty()) return;
  std::printf("replicas: seed %llu: %s\n", static_cast<unsigned long long>(seed_), what.c_str());
}

bool Replicas::open() {
  auto leader = StateMachine::open(options_of(16, random_.bits()));
  auto second = StateMachine::open(options_of(1, random_.bits()));
  if (!leader || !second) return false;
  leader_ = *std::move(leader);
  second_ = *std::move(second);
  if (wanted_.without != "index") return true;
  second_ahead_ = 1;
  return second_->restore({.applied = 1, .unix_ms = 1}).ok();
}

/// A stretch of the log, as the leader makes and applies it.
bool Replicas::lead() {
  log_.clear();
  for (LogIndex i = 0; i < stretch && applied_ < wanted_.commands; ++i) {
    EntryBuilder builder{commands_.next_time(), random_.bits()};
    std::vector<Command> made;
    std::vector<bool> is_new;
    for (std::uint64_t wanted = random_.between(1, 20); wanted > 0; --wanted) {
      made.push_back(commands_.next());
      const Origins::Next next = origins_.next();
      const auto added = builder.add(made.back(), next.origin);
      is_new.push_back(next.is_new);
      if (added.ok() && *added) continue;
      made.pop_back();
      break;
    }
    const auto answers = leader_->apply(++logged_, builder.bytes());
    if (!answers) {
      find("the leader: " + answers.error().message());
      return false;
    }
    for (std::size_t c = 0; c < made.size(); ++c) {
      // The answer of a number that came before is that of another command.
      if (is_new[c]) commands_.note(made[c], (*answers)[c]);
      if (is_new[c] || std::holds_alternative<NotApplied>((*answers)[c].what)) {
        origins_.note(made[c], (*answers)[c]);
      }
      again_ += !is_new[c] && !std::holds_alternative<NotApplied>((*answers)[c].what);
    }
    applied_ += made.size();
    log_.push_back({builder.bytes(), bytes_of(*answers)});
    commands_.forget_bytes();
    if (random_.chance(1, 50)) leader_->engine().advance();
  }
  return true;
}

void Replicas::follow(StateMachine& replica, LogIndex first, const char* name) {
  const bool is_second = &replica == second_.get();
  for (std::size_t i = 0; i < log_.size(); ++i) {
    std::string entry = log_[i].entry;
    if (is_second && wanted_.without == "time") ++entry[1];
    if (is_second && wanted_.without == "secret") entry[9] = static_cast<char>(entry[9] ^ 1);
    const auto answers = replica.apply(first + i + (is_second ? second_ahead_ : 0), entry);
    if (!answers) return find(std::string{name} + ": " + answers.error().message());
    if (bytes_of(*answers) != log_[i].answers) {
      return find(std::string{name} + ": entry " + std::to_string(first + i) +
                  " is answered otherwise");
    }
  }
}

/// What clients and the engine do beside: none of it may show.
void Replicas::disturb(StateMachine& replica, std::uint64_t seed) {
  proofs::Random random{seed};
  Engine& engine = replica.engine();
  // mo: relaxed: it ends a little later
  while (disturbs_.load(std::memory_order_relaxed)) {
    switch (random.below(8)) {
      case 0:
        engine.advance(random.between(1, 10'000));
        break;
      case 1:
        if (random.chance(1, 50)) engine.host().compact();
        break;
      case 2:
        if (engine.store().set("k1", "not by the log").ok()) find("a write of its own was taken");
        if (const auto claims = engine.claims("orders"); claims.ok()) {
          Claims orders = *claims;
          if (orders.claim({.key = "not by the log"}).error == ErrorCode::ok) {
            find("a claim of its own was granted");
          }
        }
        break;
      default:
        static_cast<void>(engine.store().get("k" + std::to_string(random.below(600))));
    }
  }
}

void Replicas::compare(StateMachine& replica, const std::string& expected, const char* name) {
  Canonical found = canonical(replica);
  if (&replica == second_.get() && wanted_.without == "index") found.state.applied -= 1;
  if (found.bytes() == expected) return;
  find(std::string{name} + ": another state after entry " + std::to_string(logged_));
}

int Replicas::run() {
  if (!open()) {
    find("not opened");
    return 1;
  }
  const LogIndex third_from = random_.between(1, 6);  // stretches
  while (applied_ < wanted_.commands && findings_ == 0) {
    const LogIndex first = logged_ + 1;
    if (!lead()) break;
    // mo: relaxed: for a thread that begins later
    disturbs_.store(true, std::memory_order_relaxed);
    std::thread noise{[&, seed = random_.bits()] { disturb(*second_, seed); }};
    std::thread second{[&] { follow(*second_, first, "second"); }};
    if (third_) follow(*third_, first, "third");
    second.join();
    disturbs_.store(false, std::memory_order_relaxed);  // mo: relaxed: as above
    noise.join();
    const Canonical state = canonical(*leader_);
    if (!state.status || state.state.applied != logged_) find("the leader's snapshot");
    const std::string expected = state.bytes();
    compare(*second_, expected, "second");
    if (third_) compare(*third_, expected, "third");
    ++states_;
    state_bytes_ += expected.size();
    if (!third_ && states_ >= third_from) {
      Options options = options_of(32, random_.bits());
      options.background = Millis{1};
      auto third = copy_of(*leader_, options);
      if (!third) {
        find("no copy: " + third.error().message());
        break;
      }
      third_ = *std::move(third);
      compare(*third_, expected, "a copy");
    }
  }
  bool is_varied = true;
  for (const ClaimAnswer answer :
       {ClaimAnswer::granted, ClaimAnswer::regranted, ClaimAnswer::in_flight, ClaimAnswer::replay,
        ClaimAnswer::kept_failure, ClaimAnswer::mismatch, ClaimAnswer::in_doubt,
        ClaimAnswer::too_old, ClaimAnswer::too_new, ClaimAnswer::unknown}) {
    const std::uint64_t times = commands_.answered(answer);
    is_varied = is_varied && times > applied_ / 10'000;
    std::printf("replicas: claims answered %u: %llu\n", static_cast<unsigned>(answer),
                static_cast<unsigned long long>(times));
  }
  using Why = NotApplied::Why;
  is_varied = is_varied && again_ > applied_ / 100;
  std::printf("replicas: commands answered as before: %llu\n",
              static_cast<unsigned long long>(again_));
  for (const Why why : {Why::forgotten, Why::too_far, Why::other_life, Why::no_life}) {
    const std::uint64_t times = origins_.refused(why);
    is_varied = is_varied && times > applied_ / 10'000;
    std::printf("replicas: commands not applied %u: %llu\n", static_cast<unsigned>(why),
                static_cast<unsigned long long>(times));
  }
  if (!is_varied) std::printf("replicas: some of these are next to none\n");
  std::printf(
      "replicas: %llu commands in %llu entries, %llu states of %llu bytes compared, "
      "%u differences\n",
      static_cast<unsigned long long>(applied_), static_cast<unsigned long long>(logged_),
      static_cast<unsigned long long>(states_),
      static_cast<unsigned long long>(state_bytes_ / std::max<std::uint64_t>(states_, 1)),
      findings_);
  if (!wanted_.without.empty()) return findings_ > 0 ? 0 : 1;
  return findings_ == 0 && is_varied && applied_ >= wanted_.commands ? 0 : 1;
}

std::optional<Wanted> parse(int count, char** texts) {
  Wanted wanted;
  std::vector<char*> rest{texts[0]};
  for (int i = 1; i < count; ++i) {
    const bool more = i + 1 < count;
    if (std::strcmp(texts[i], "--commands") == 0 && more) {
      wanted.commands = std::strtoull(texts[++i], nullptr, 10);
    } else if (std::strcmp(texts[i], "--without") == 0 && more) {
      wanted.without = texts[++i];
    } else {
      rest.push_back(texts[i]);
    }
  }
  const auto arguments = proofs::parse_arguments(static_cast<int>(rest.size()), rest.data());
  if (!arguments) return std::nullopt;
  wanted.arguments = *arguments;
  if (wanted.commands == 0) wanted.commands = arguments->is_long ? 10'000'000 : 1'000'000;
  return wanted;
}

}  // namespace
}  // namespace semel::tests

int main(int count, char** texts) {
  const auto wanted = semel::tests::parse(count, texts);
  if (!wanted) return 2;
  const std::uint64_t seed = wanted->arguments.seed.value_or(semel::proofs::fresh_seed());
  std::printf("replicas: seed %llu\n", static_cast<unsigned long long>(seed));
  return semel::tests::Replicas{*wanted, seed}.run();
}
