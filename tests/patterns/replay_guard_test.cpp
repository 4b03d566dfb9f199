// A signed request is taken once: each side of each boundary, each field changed, and the clocks
// that do not help.
#include "semel/patterns/replay_guard.hpp"

#include <atomic>
#include <barrier>
#include <functional>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/limits.hpp"
#include "semel/store.hpp"
#include "tests/patterns/paused_clock.hpp"

using namespace semel;
using namespace std::chrono_literals;

namespace {

constexpr Bytes secret = "the secret of all";

/// A request that owns what it says.
struct Request {
  std::string caller = "shop-7";
  std::vector<std::pair<std::string, std::string>> parameters{{"order", "4711"}, {"sum", "10"}};
  std::int64_t timestamp = 0;
  std::string nonce = "nonce-1";
  std::string signature{};

  /// Valid as long as this is, and its parameters do not move.
  [[nodiscard]] SignedRequest view(std::vector<KeyField>& fields) const {
    fields.clear();
    for (const auto& [name, value] : parameters) fields.push_back({name, value});
    return {.caller = caller,
            .parameters = fields,
            .timestamp_unix_ms = timestamp,
            .nonce = nonce,
            .signature = signature};
  }
  Request& sign(Bytes with = secret, SignatureScheme scheme = SignatureScheme::hmac_sha256) {
    std::vector<KeyField> fields;
    signature = signature_of(view(fields), with, scheme);
    return *this;
  }
};

ReplayAnswer check(ReplayGuard& guard, const Request& request) {
  std::vector<KeyField> fields;
  return guard.check(request.view(fields)).answer;
}

ReplayGuardOptions short_options() {
  ReplayGuardOptions options;
  options.window = 1000ms;
  options.ahead = 500ms;
  options.secrets = {std::string{secret}};
  return options;
}

template <class ClockType>
struct ReplayGuardFixture {
  explicit ReplayGuardFixture(ReplayGuardOptions options = short_options()) {
    guard(std::move(options));
  }
  ReplayGuard& guard(ReplayGuardOptions options) {
    auto opened = ReplayGuard::open(*engine, std::move(options));
    REQUIRE(opened.has_value());
    guards.push_back(*std::move(opened));
    return guards.back();
  }
  /// A signed one, sent `ago` before now by the wall clock.
  [[nodiscard]] Request sent(Millis ago, const std::string& nonce = "nonce-1") const {
    Request request;
    request.timestamp = clock.unix_ms() - ago.count();
    request.nonce = nonce;
    return request.sign();
  }
  ReplayAnswer check(const Request& request) { return ::check(guards.back(), request); }

  ClockType clock;
  std::unique_ptr<Engine> engine = *Engine::open({.clock = &clock});
  std::vector<ReplayGuard> guards;
};

}  // namespace

TEST_CASE("replay_guard: a request is accepted once, and forgotten when it is too old anyway",
          "[patterns][signed]") {
  ReplayGuardFixture<ManualClock> fixture;
  const Request request = fixture.sent(0ms);
  CHECK(fixture.check(request) == ReplayAnswer::accepted);
  CHECK(fixture.check(request) == ReplayAnswer::replayed);
  CHECK(*fixture.engine->store().exists("nonce|shop-7|nonce-1"));
  CHECK(fixture.check(fixture.sent(0ms, "nonce-2")) == ReplayAnswer::accepted);
  fixture.clock.advance(1500ms);
  CHECK(*fixture.engine->store().exists("nonce|shop-7|nonce-1"));
  fixture.clock.advance(1ms);
  CHECK_FALSE(*fixture.engine->store().exists("nonce|shop-7|nonce-1"));
  CHECK(fixture.check(request) == ReplayAnswer::too_old);
}

TEST_CASE("replay_guard: the window is half-open, and so is what is ahead", "[patterns][signed]") {
  ReplayGuardFixture<ManualClock> fixture;
  CHECK(fixture.check(fixture.sent(999ms, "a")) == ReplayAnswer::accepted);
  CHECK(fixture.check(fixture.sent(1000ms, "b")) == ReplayAnswer::too_old);
  CHECK(fixture.check(fixture.sent(-500ms, "c")) == ReplayAnswer::accepted);
  CHECK(fixture.check(fixture.sent(-501ms, "d")) == ReplayAnswer::too_new);

  auto options = short_options();
  options.ahead = 0ms;
  ReplayGuard& strict = fixture.guard(options);
  CHECK(check(strict, fixture.sent(0ms, "e")) == ReplayAnswer::accepted);
  CHECK(check(strict, fixture.sent(-1ms, "f")) == ReplayAnswer::too_new);
}

TEST_CASE("replay_guard: a nonce is taken for as long as its request is in time",
          "[patterns][signed]") {
  ReplayGuardFixture<ManualClock> fixture;
  for (const Millis ago : {-500ms, -1ms, 0ms, 1ms, 999ms}) {
    const Request request = fixture.sent(ago, std::to_string(ago.count()));
    REQUIRE(fixture.check(request) == ReplayAnswer::accepted);
    for (Millis passed = 0ms; passed < 1600ms; passed += 1ms) {
      const ReplayAnswer expected =
          ago + passed < 1000ms ? ReplayAnswer::replayed : ReplayAnswer::too_old;
      INFO(ago.count() << " ms ago, and " << passed.count());
      REQUIRE(fixture.check(request) == expected);
      fixture.clock.advance(1ms);
      fixture.engine->advance();
    }
  }
}

TEST_CASE("replay_guard: nothing that is signed can be changed", "[patterns][signed]") {
  ReplayGuardFixture<ManualClock> fixture;
  const std::vector<std::function<void(Request&)>> changes{
      [](Request& r) { r.caller = "shop-8"; },
      [](Request& r) { r.caller = ""; },
      [](Request& r) { r.timestamp += 1; },
      [](Request& r) { r.nonce = "nonce-2"; },
      [](Request& r) { r.parameters[0].second = "4712"; },
      [](Request& r) { r.parameters[0].first = "Order"; },
      [](Request& r) { r.parameters.pop_back(); },
      [](Request& r) {
        r.parameters.push_back({"more", ""});
      },
      [](Request& r) { r.parameters.push_back(r.parameters[0]); },
      [](Request& r) {
        r.parameters = {{"order", "4711&sum=10"}};
      },
      [](Request& r) {
        r.parameters = {{"order=4711&sum", "10"}};
      },
      [](Request& r) { std::swap(r.parameters[0].second, r.parameters[1].second); },
      [](Request& r) { r.signature.front() = r.signature.front() == '0' ? '1' : '0'; },
      [](Request& r) { r.signature.back() = r.signature.back() == '0' ? '1' : '0'; },
      [](Request& r) { r.signature.pop_back(); },
      [](Request& r) { r.signature += '0'; },
      [](Request& r) { r.signature.clear(); },
  };
  for (const SignatureScheme scheme :
       {SignatureScheme::hmac_sha256, SignatureScheme::md5_sorted_parameters}) {
    auto options = short_options();
    options.scheme = scheme;
    options.name = scheme == SignatureScheme::hmac_sha256 ? "hmac" : "md5";
    ReplayGuard& guard = fixture.guard(options);
    for (std::size_t i = 0; i < changes.size(); ++i) {
      Request request = fixture.sent(0ms).sign(secret, scheme);
      changes[i](request);
      INFO("change " << i);
      CHECK(check(guard, request) == ReplayAnswer::bad_signature);
    }
    Request request = fixture.sent(0ms).sign(secret, scheme);
    std::swap(request.parameters[0], request.parameters[1]);
    for (char& c : request.signature) c = static_cast<char>(std::toupper(c));
    CHECK(check(guard, request) == ReplayAnswer::accepted);
  }
  // A caller without the secret leaves nothing behind.
  CHECK(fixture.engine->stats().records == 2);
}

TEST_CASE("replay_guard: the signature is judged before the time, and both before the nonce",
          "[patterns][signed]") {
  ReplayGuardFixture<ManualClock> fixture;
  Request request = fixture.sent(5000ms);
  CHECK(fixture.check(request) == ReplayAnswer::too_old);
  request.signature.front() = '?';
  CHECK(fixture.check(request) == ReplayAnswer::bad_signature);
  request.nonce.clear();
  CHECK(fixture.check(request) == ReplayAnswer::malformed);
  CHECK(fixture.check(fixture.sent(0ms)) == ReplayAnswer::accepted);
}

TEST_CASE("replay_guard: what is out of its range is malformed", "[patterns][signed][limits]") {
  ReplayGuardFixture<ManualClock> fixture;
  const auto with = [&](auto change) {
    Request request = fixture.sent(0ms, "fresh");
    change(request);
    return fixture.check(request.sign());
  };
  CHECK(with([](Request& r) { r.nonce = ""; }) == ReplayAnswer::malformed);
  CHECK(with([](Request& r) { r.nonce = std::string(limits::signed_nonce_max, '|'); }) ==
        ReplayAnswer::accepted);
  CHECK(with([](Request& r) { r.nonce = std::string(limits::signed_nonce_max + 1, 'n'); }) ==
        ReplayAnswer::malformed);
  CHECK(with([](Request& r) { r.caller = std::string(limits::signed_caller_max, 'c'); }) ==
        ReplayAnswer::accepted);
  CHECK(with([](Request& r) { r.caller = std::string(limits::signed_caller_max + 1, 'c'); }) ==
        ReplayAnswer::malformed);
  CHECK(with([](Request& r) { r.timestamp = -1; }) == ReplayAnswer::malformed);
  CHECK(with([](Request& r) { r.timestamp = 0; }) == ReplayAnswer::too_old);
  CHECK(with([](Request& r) { r.timestamp = 253'402'300'799'999; }) == ReplayAnswer::too_new);
  CHECK(with([](Request& r) { r.timestamp = 253'402'300'800'000; }) == ReplayAnswer::malformed);
  CHECK(with([](Request& r) {
          r.nonce = "p";
          r.parameters.assign(limits::signed_parameters_max, {"a", ""});
        }) == ReplayAnswer::accepted);
  CHECK(with([](Request& r) {
          r.parameters.assign(limits::signed_parameters_max + 1, {"a", ""});
        }) == ReplayAnswer::malformed);
  CHECK(with([](Request& r) {
          r.nonce = "b";
          r.parameters = {{"a", std::string(limits::signed_bytes_max - 1, 'v')}};
        }) == ReplayAnswer::accepted);
  CHECK(with([](Request& r) {
          r.parameters = {{"a", std::string(limits::signed_bytes_max, 'v')}};
        }) == ReplayAnswer::malformed);

  auto options = short_options();
  options.scheme = SignatureScheme::md5_sorted_parameters;
  ReplayGuard& old = fixture.guard(options);
  for (const char* name : {"caller", "nonce", "timestamp"}) {
    Request request = fixture.sent(0ms, "m");
    request.parameters.push_back({name, "x"});
    CHECK(check(old, request.sign(secret, options.scheme)) == ReplayAnswer::malformed);
  }
}

TEST_CASE("replay_guard: nonces of two callers, or equal when concatenated, are two",
          "[patterns][signed]") {
  ReplayGuardFixture<ManualClock> fixture;
  const auto from = [&](std::string caller, std::string nonce) {
    Request request = fixture.sent(0ms, nonce);
    request.caller = std::move(caller);
    return fixture.check(request.sign());
  };
  CHECK(from("a", "b|c") == ReplayAnswer::accepted);
  CHECK(from("a|b", "c") == ReplayAnswer::accepted);
  CHECK(from("a", "b") == ReplayAnswer::accepted);
  CHECK(from("b", "b") == ReplayAnswer::accepted);
  CHECK(from("", "b") == ReplayAnswer::accepted);
  CHECK(from("a", "b") == ReplayAnswer::replayed);
}

TEST_CASE("replay_guard: exactly one of two threads with one nonce is accepted",
          "[patterns][signed]") {
  ReplayGuardFixture<ManualClock> fixture;
  constexpr int rounds = 2'000;
  std::vector<Request> requests;
  for (int i = 0; i < rounds; ++i) requests.push_back(fixture.sent(0ms, std::to_string(i)));
  std::barrier together{2};
  std::vector<std::array<ReplayAnswer, 2>> answers(rounds);
  const auto run = [&](std::size_t who) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      together.arrive_and_wait();
      answers[i][who] = fixture.check(requests[i]);
    }
  };
  std::thread other{run, 1U};
  run(0);
  other.join();
  for (auto& pair : answers) {
    std::sort(pair.begin(), pair.end());
    REQUIRE(pair == std::array{ReplayAnswer::accepted, ReplayAnswer::replayed});
  }
}

TEST_CASE("replay_guard: a check that pauses until the nonce is forgotten is too late",
          "[patterns][signed]") {
  ReplayGuardFixture<tests::PausedClock> fixture;
  const Request request = fixture.sent(-500ms);
  REQUIRE(fixture.check(request) == ReplayAnswer::accepted);
  fixture.clock.advance(1499ms);
  CHECK(fixture.check(request) == ReplayAnswer::replayed);  // without a pause
  // The time is looked at, then the thread stands still, then it finds the nonce free.
  fixture.clock.pause_after(1, 10ms);
  CHECK(fixture.check(request) == ReplayAnswer::too_old);
}

TEST_CASE("replay_guard: a wall clock that is set back opens no window again",
          "[patterns][signed]") {
  ReplayGuardFixture<ManualClock> fixture;
  const Request request = fixture.sent(0ms);
  REQUIRE(fixture.check(request) == ReplayAnswer::accepted);
  const Request old = fixture.sent(1000ms, "old");
  CHECK(fixture.check(old) == ReplayAnswer::too_old);
  fixture.clock.step_wall(-1h);
  CHECK(fixture.check(old) == ReplayAnswer::too_old);
  CHECK(fixture.check(request) == ReplayAnswer::replayed);
  // The guard's time goes on meanwhile, so that it is over when the nonce is.
  fixture.clock.advance(999ms);
  CHECK(fixture.check(request) == ReplayAnswer::replayed);
  fixture.clock.advance(1ms);
  CHECK(fixture.check(request) == ReplayAnswer::too_old);
  fixture.clock.advance(10min);
  CHECK(fixture.check(request) == ReplayAnswer::too_old);
  // The price: what is stamped by the wall clock as it is now, is not taken.
  CHECK(fixture.check(fixture.sent(0ms, "honest")) == ReplayAnswer::too_old);
  fixture.clock.step_wall(1h);
  CHECK(fixture.check(fixture.sent(0ms, "honest")) == ReplayAnswer::accepted);
}

TEST_CASE("replay_guard: a wall clock that is set ahead ages requests and frees no nonce",
          "[patterns][signed]") {
  ReplayGuardFixture<ManualClock> fixture;
  const Request request = fixture.sent(0ms);
  REQUIRE(fixture.check(request) == ReplayAnswer::accepted);
  fixture.clock.step_wall(999ms);
  CHECK(fixture.check(request) == ReplayAnswer::replayed);
  fixture.clock.step_wall(1ms);
  CHECK(fixture.check(request) == ReplayAnswer::too_old);
  CHECK(fixture.check(fixture.sent(0ms)) ==
        ReplayAnswer::replayed);  // signed anew with an old nonce
}

TEST_CASE("replay_guard: any of several secrets may have signed, and each caller has its own",
          "[patterns][signed]") {
  ReplayGuardFixture<ManualClock> fixture;
  auto options = short_options();
  options.secrets = {"new", "old"};
  ReplayGuard& rotating = fixture.guard(options);
  CHECK(check(rotating, fixture.sent(0ms, "1").sign("new")) == ReplayAnswer::accepted);
  CHECK(check(rotating, fixture.sent(0ms, "2").sign("old")) == ReplayAnswer::accepted);
  CHECK(check(rotating, fixture.sent(0ms, "2").sign("new")) == ReplayAnswer::replayed);
  CHECK(check(rotating, fixture.sent(0ms, "3").sign("older")) == ReplayAnswer::bad_signature);

  options.secrets.clear();
  options.secrets_of = [](Bytes caller) {
    std::vector<std::string> secrets;
    if (caller == "shop-7") secrets = {"seven", ""};
    return secrets;
  };
  ReplayGuard& each = fixture.guard(options);
  CHECK(check(each, fixture.sent(0ms, "4").sign("seven")) == ReplayAnswer::accepted);
  CHECK(check(each, fixture.sent(0ms, "5").sign("")) == ReplayAnswer::bad_signature);
  Request unknown = fixture.sent(0ms, "6");
  unknown.caller = "shop-8";
  CHECK(check(each, unknown.sign("seven")) == ReplayAnswer::bad_signature);
}

TEST_CASE("replay_guard: without memory for the nonce nothing is accepted", "[patterns][signed]") {
  ManualClock clock;
  auto engine = *Engine::open({.clock = &clock, .memory_bytes = limits::memory_bytes_min});
  auto guard = *ReplayGuard::open(*engine, short_options());
  Store store = engine->store(1);
  ErrorCode full = ErrorCode::ok;
  for (std::size_t size = 4096; size > 0; size /= 2) {
    full = ErrorCode::ok;
    for (int i = 0; full == ErrorCode::ok && i < 1'000'000; ++i) {
      const auto set =
          store.set(std::to_string(size) + "-" + std::to_string(i), std::string(size, 'x'));
      if (!set.ok()) full = set.error().code;
    }
    REQUIRE(full == ErrorCode::memory_full);
  }
  Request request;
  request.timestamp = clock.unix_ms();
  request.nonce = std::string(limits::signed_nonce_max, 'n');
  request.sign();
  std::vector<KeyField> fields;
  const ReplayOutcome refused = guard.check(request.view(fields));
  CHECK(refused.answer == ReplayAnswer::busy);
  CHECK(refused.error == ErrorCode::memory_full);
  static_cast<void>(engine->flush({}));
  CHECK(check(guard, request) == ReplayAnswer::accepted);
}

TEST_CASE("replay_guard: options out of their range are refused by name",
          "[patterns][signed][limits]") {
  ReplayGuardFixture<ManualClock> fixture;
  const auto refuse = [&](auto change, const char* named) {
    auto options = short_options();
    change(options);
    const auto opened = ReplayGuard::open(*fixture.engine, options);
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().code == ErrorCode::bad_option);
    CHECK_THAT(opened.error().detail, Catch::Contains(named));
  };
  refuse([](auto& o) { o.window = 0ms; }, "window");
  refuse([](auto& o) { o.ahead = -1ms; }, "ahead");
  refuse([](auto& o) { o.window = limits::ttl_max - 500ms; }, "window");
  refuse([](auto& o) { o.window = Millis::max(); }, "window");
  refuse([](auto& o) { o.db = 16; }, "db");
  refuse([](auto& o) { o.name = ""; }, "name");
  refuse([](auto& o) { o.name = std::string(65, 'n'); }, "name");
  refuse([](auto& o) { o.secrets.clear(); }, "secrets");
  refuse([](auto& o) { o.secrets.emplace_back(); }, "secrets");
  refuse([](auto& o) { o.secrets_of = [](Bytes) { return std::vector<std::string>{}; }; },
         "secrets");
  auto widest = short_options();
  widest.window = limits::ttl_max - 501ms;
  widest.name = std::string(64, 'n');
  widest.db = 15;
  ReplayGuard& guard = fixture.guard(widest);
  CHECK(check(guard, fixture.sent(0ms)) == ReplayAnswer::accepted);
  CHECK(check(guard, fixture.sent(0ms)) == ReplayAnswer::replayed);
}
