// A program on the installed package: an order is paid, the process ends, and the next one replays
// what was paid. Beside it, Redis' commands without a server, JSON and signatures.
#include <semel/local_redis.hpp>
#include <semel/patterns/json_key.hpp>
#include <semel/patterns/signed_request.hpp>
#include <semel/semel.hpp>
#include <semel/storage.hpp>

#include <cstdio>
#include <memory>
#include <string>

namespace {

/// One life of the process on the storage in `directory`: what it is answered for the order.
std::string live(const std::string& directory) {
  const semel::SystemClock clock;
  auto storage = semel::Storage::open({.directory = directory}, clock).value();
  auto engine = semel::Engine::open({.clock = &clock,
                                     .journal = storage.get(),
                                     .durability = semel::Durability::synced,
                                     .first_version = storage->first_version()})
                    .value();
  static_cast<void>(storage->recover(*engine).value());
  auto orders = engine->claims("orders", semel::Policy{}).value();

  const semel::ClaimOutcome claim = orders.claim({.key = "order-4711"});
  if (claim.answer == semel::ClaimAnswer::replay) return "replayed " + claim.result;
  if (claim.answer != semel::ClaimAnswer::granted) return "refused";
  const auto done = orders.complete({.key = "order-4711", .epoch = claim.epoch, .payload = "paid"});
  return done.answer == semel::OwnerAnswer::ok ? "worked" : "lost";
}

bool redis_answers() {
  auto redis = semel::LocalRedis::open().value();
  const bool mine = redis->call({"SET", "job:1", "mine", "NX", "PX", "60000"}).is_ok();
  const bool yours = redis->call({"SET", "job:1", "yours", "NX", "PX", "60000"}).is_ok();
  redis->advance(semel::Millis{60'000});
  const bool ended = redis->call({"GET", "job:1"}).is_null();
  // Lua, and the hash that scripts are known by.
  const auto twice = redis->call({"EVAL", "return ARGV[1] * 2", "0", "21"});
  const auto sha = redis->call({"SCRIPT", "LOAD", "return 1"});
  return mine && !yours && ended && twice.integer == 42 && sha.text.size() == 40;
}

bool fingerprints_agree() {
  const auto one = semel::fingerprint_json(R"({"order":7,"cents":1999})").value();
  const auto other = semel::fingerprint_json(R"({ "cents": 1999.0, "order": 7 })").value();
  // RFC 4231, test case 2.
  const std::string mac = semel::hmac_sha256_hex("Jefe", "what do ya want for nothing?");
  return one == other && mac ==
                             "5bdcc146bf60754e6a042426089575c7"
                             "5a003f089d2739839dec58b964ec3843";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::puts("usage: consumer DIR"), 2;
  const std::string first = live(argv[1]);
  const std::string second = live(argv[1]);
  std::printf("semel %s: %s, then %s\n", semel::version, first.c_str(), second.c_str());
  if (first != "worked" || second != "replayed paid") return 1;
  if (!fingerprints_agree()) return std::puts("other fingerprints"), 1;
  if (!redis_answers()) return std::puts("LocalRedis answers otherwise"), 1;
}
