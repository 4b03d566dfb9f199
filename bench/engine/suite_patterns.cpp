// Question: what does once() cost over the claim and the completion that it is made of, and a
// replay
//           over a lookup? What is a claim and its completion in process to the same pair in Redis?
// Method:   one thread, pinned, no journal; new keys of 32 bytes into a table that has its size,
// each
//           kind of call in a process of its own, taking turns in rounds; the replies are checked.
//           Redis: the usual two calls for each key, a script (SET NX GET PX) by its SHA and a SET,
//           one after the other over a Unix socket, which is the quicker way for the server.
// Compare:  within one round.
// Report:   a row for each goal; the costs in ns as notes.
#include "bench/engine/suite_patterns.hpp"

#include <stdlib.h>

#include <filesystem>

#include "bench/engine/ours.hpp"
#include "bench/harness/keys.hpp"
#include "bench/harness/suite_context.hpp"
#include "bench/storage/storage_redis.hpp"
#include "semel/engine_host.hpp"
#include "semel/patterns/consume.hpp"
#include "semel/patterns/debounce.hpp"
#include "semel/patterns/lock.hpp"
#include "semel/patterns/once.hpp"

namespace semel::bench {

namespace {

/// Nanoseconds a call: of all calls together, and of each by itself.
struct Cost {
  double mean = 0;
  Tail each;
};

/// `call(i)` for all i, timed as a whole; then for as many again, timed one by one.
template <class Call>
Cost cost_of(std::uint64_t calls, Call&& call) {
  pin_to_core(0);
  Cost cost;
  const std::uint64_t begin = ticks_before();
  for (std::uint64_t i = 0; i < calls; ++i) call(i);
  cost.mean =
      static_cast<double>(ticks_after() - begin) / ticks_per_ns() / static_cast<double>(calls);
  Histogram histogram;
  for (std::uint64_t i = calls; i < 2 * calls; ++i) {
    const std::uint64_t before = ticks_before();
    call(i);
    histogram.add(ticks_after() - before);
  }
  cost.each = histogram.tail(ticks_per_ns());
  return cost;
}

/// An engine whose table has been as large as it will be, so that no figure has its growth.
std::unique_ptr<Engine> grown_engine(std::uint64_t records) {
  std::unique_ptr<Engine> engine = open_engine(records, nullptr, false);
  Store store = engine->store();
  for (std::uint64_t i = 0; i < records; ++i) {
    const Key key = key_of(~i);
    require(store.set(bytes_of(key), "x").has_value(), "set: an error");
  }
  require(engine->flush(0).value() == records, "flush: not all of it");
  engine->host().quiesce();
  return engine;
}

constexpr std::string_view result = "paid";

Cost measure_pairs(std::uint64_t calls) {
  const auto engine = grown_engine(2 * calls);
  Claims claims = engine->claims("orders", policies::message).value();
  return cost_of(calls, [&](std::uint64_t i) {
    const Key key = key_of(i);
    const ClaimOutcome claim = claims.claim({.key = bytes_of(key)});
    require(claim.answer == ClaimAnswer::granted, "claim: not granted");
    const OwnerOutcome done = claims.complete({.key = bytes_of(key), .epoch = claim.epoch});
    require(done.answer == OwnerAnswer::ok, "complete: not ok");
  });
}

Cost measure_once(std::uint64_t calls) {
  const auto engine = grown_engine(2 * calls);
  Claims claims = engine->claims("orders", policies::message).value();
  return cost_of(calls, [&](std::uint64_t i) {
    const Key key = key_of(i);
    require(once(claims, bytes_of(key), [] {}).answer == OnceAnswer::ran, "once: it did not run");
  });
}

Cost measure_consume(std::uint64_t calls) {
  const auto engine = grown_engine(2 * calls);
  Claims claims = engine->claims("mq", policies::message).value();
  return cost_of(calls, [&](std::uint64_t i) {
    const Key key = key_of(i);
    const Consumed consumed = consume_once(claims, {.id = bytes_of(key)}, [] {});
    require(consumed.verdict == Verdict::ack, "consume_once: not acknowledged");
  });
}

/// An uncontended lock: acquired and released.
Cost measure_lock(std::uint64_t calls) {
  const auto engine = grown_engine(calls);
  Claims claims = engine->claims("locks", policies::lock).value();
  Lock lock{claims, "one"};
  return cost_of(calls, [&](std::uint64_t) {
    require(lock.try_lock() && lock.unlock(), "lock: not taken and given back");
  });
}

Cost measure_replay(std::uint64_t calls) {
  const auto engine = grown_engine(2 * calls);
  Claims claims = engine->claims("orders", policies::message).value();
  const auto run = [] { return std::string{result}; };
  for (std::uint64_t i = 0; i < 2 * calls; ++i) {
    const Key key = key_of(i);
    require(once(claims, bytes_of(key), run).answer == OnceAnswer::ran, "once: it did not run");
  }
  return cost_of(calls, [&](std::uint64_t i) {
    const Key key = key_of(i);
    const auto outcome = once(claims, bytes_of(key), run);
    require(outcome.answer == OnceAnswer::replayed && outcome.value == result, "once: no replay");
  });
}

/// A string of the result's length under a key of the claim's length.
Cost measure_get(std::uint64_t calls) {
  const auto engine = grown_engine(2 * calls);
  Store store = engine->store();
  const auto name_of = [](std::uint64_t i, std::array<char, 39>& name) {
    const Key key = key_of(i);
    std::copy_n("orders:", 7, name.begin());
    std::copy_n(bytes_of(key).begin(), sizeof key, name.begin() + 7);
    return Bytes{name.data(), name.size()};
  };
  std::array<char, 39> name;
  for (std::uint64_t i = 0; i < 2 * calls; ++i) {
    require(store.set(name_of(i, name), result, {.expiry = Expiry::in(long_ttl)}).has_value(),
            "set: an error");
  }
  return cost_of(calls, [&](std::uint64_t i) {
    const auto value = store.get(name_of(i, name));
    require(value.has_value() && *value == result, "get: not what was set");
  });
}

constexpr std::string_view claim_script =
    "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'GET', 'PX', ARGV[2])";

Cost measure_redis(std::uint64_t calls, const std::string& directory) {
  RedisServer server{directory, {"--appendonly", "no"}};
  RedisClient& client = server.client();
  std::string command;
  add_command(command, {"SCRIPT", "LOAD", claim_script});
  client.send(command);
  const std::string sha = client.reply();
  return cost_of(calls, [&](std::uint64_t i) {
    const Key key = key_of(i);
    command.clear();
    add_command(command, {"EVALSHA", sha, "1", bytes_of(key), "CONSUMING", "60000"});
    client.send(command);
    require(client.reply().empty(), "redis-server: the claim was not granted");
    command.clear();
    add_command(command, {"SET", bytes_of(key), "CONSUMED", "PX", "86400000"});
    client.send(command);
    require(client.reply() == "+OK", "redis-server: the mark was not set");
  });
}

struct Figures {
  std::vector<Cost> pairs;
  std::vector<Cost> once;
  std::vector<Cost> consume;
  std::vector<Cost> lock;
  std::vector<Cost> replay;
  std::vector<Cost> get;
  std::vector<Cost> redis;
};

std::vector<double> means(const std::vector<Cost>& costs) {
  return each(costs, [](const Cost& cost) { return cost.mean; });
}
std::vector<double> rates(const std::vector<Cost>& costs) {
  return each(costs, [](const Cost& cost) { return 1e6 / cost.mean; });
}
std::vector<double> tails(const std::vector<Cost>& costs) {
  return each(costs, [](const Cost& cost) { return cost.each.p99 / 1e3; });
}

void add_rows(const Figures& figures, Report& report) {
  report.rows.push_back(row_of("once, new key, empty function (ns)",
                               {.ours = means(figures.once), .peer = means(figures.pairs)},
                               "Semel, claim + complete", ratio_at_most(1.5)));
  report.rows.push_back(row_of("once, replay (ns)",
                               {.ours = means(figures.replay), .peer = means(figures.get)},
                               "Semel, get of a string", ratio_at_most(1.2)));
  if (!figures.redis.empty()) {
    report.rows.push_back(row_of("claim + complete (thousand/s)",
                                 {.ours = rates(figures.pairs), .peer = rates(figures.redis)},
                                 "Redis, script + SET, not pipelined", ratio_at_least(20)));
    report.rows.push_back(row_of("claim + complete, p99 (us)",
                                 {.ours = tails(figures.pairs), .peer = tails(figures.redis)},
                                 "Redis, script + SET, not pipelined", ratio_at_most(0.05)));
  }
  const auto note = [&](const char* name, const std::vector<Cost>& costs) {
    if (costs.empty()) return;
    report.notes.push_back(
        {std::string{name} + " (ns): mean; p50; p99; p99.9",
         figure(median(means(costs))) + "; " +
             figure(median(each(costs, [](const Cost& c) { return c.each.p50; }))) + "; " +
             figure(median(each(costs, [](const Cost& c) { return c.each.p99; }))) + "; " +
             figure(median(each(costs, [](const Cost& c) { return c.each.p999; })))});
  };
  note("claim + complete", figures.pairs);
  note("once, new key", figures.once);
  note("consume_once, new message", figures.consume);
  note("lock + unlock", figures.lock);
  note("once, replay", figures.replay);
  note("get of a string", figures.get);
  note("Redis, script + SET", figures.redis);
}

}  // namespace

std::vector<std::string> pattern_groups() {
  return {};
}

bool run_pattern_suite(const SuiteOptions& options, Report& report) {
  Context context{.options = options, .setup = {}, .report = report};
  const std::uint64_t calls = std::min<std::uint64_t>(options.records, 1'000'000);
  const std::uint64_t redis_calls = std::min<std::uint64_t>(calls, options.quick ? 2'000 : 100'000);
  const bool has_redis = is_installed("redis-server");
  if (!has_redis) report.notes.push_back({"redis-server", "not available"});
  Figures figures;
  for (context.round = 0; context.round < options.rounds; ++context.round) {
    const auto add = [&](const char* what, std::vector<Cost>& to, auto&& measure) {
      if (const auto cost = context.measured(what, measure)) to.push_back(*cost);
    };
    add("claim + complete", figures.pairs, [&] { return measure_pairs(calls); });
    add("once, new keys", figures.once, [&] { return measure_once(calls); });
    add("once, replays", figures.replay, [&] { return measure_replay(calls); });
    add("gets", figures.get, [&] { return measure_get(calls); });
    add("consume_once", figures.consume, [&] { return measure_consume(calls); });
    add("lock + unlock", figures.lock, [&] { return measure_lock(calls); });
    if (!has_redis) continue;
    std::string directory = options.directory + "/semel_bench_XXXXXX";
    if (mkdtemp(directory.data()) == nullptr) return false;
    add("Redis", figures.redis, [&] { return measure_redis(redis_calls, directory); });
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  }
  add_rows(figures, report);
  return true;
}

}  // namespace semel::bench
