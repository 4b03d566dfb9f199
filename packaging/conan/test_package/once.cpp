// A function runs once for a key; beside it one call into each other part that the package has.
#include <semel/patterns/json_key.hpp>
#include <semel/patterns/once.hpp>
#include <semel/patterns/signed_request.hpp>
#include <semel/semel.hpp>
#ifdef SEMEL_HAS_storage
#include <semel/storage.hpp>
#endif
#ifdef SEMEL_HAS_net
#include <semel/local_redis.hpp>
#endif
#ifdef SEMEL_HAS_replication
#include <semel/replication.hpp>
#endif
#ifdef SEMEL_HAS_group
#include <semel/group_node.hpp>
#endif

#include <cstdio>
#include <string>

namespace {

bool runs_once() {
  auto engine = semel::Engine::open().value();
  auto orders = engine->claims("orders", semel::policies::call).value();
  int charges = 0;
  const auto charge = [&] { return "receipt " + std::to_string(++charges); };
  const auto first = semel::once(orders, "order-4711", charge);
  const auto again = semel::once(orders, "order-4711", charge);
  return charges == 1 && first.value == "receipt 1" && again.value == first.value;
}

bool signs_and_reads_json() {
  return semel::hmac_sha256_hex("Jefe", "what do ya want for nothing?").starts_with("5bdcc146") &&
         semel::fingerprint_json("[1, 2]").value() == semel::fingerprint_json("[1,2]").value();
}

// What is refused, since the folder is not there, is answered by code of the part all the same.
bool storage_answers() {
#ifdef SEMEL_HAS_storage
  const semel::SystemClock clock;
  return !semel::Storage::open({.directory = "/proc/semel"}, clock);
#else
  return true;
#endif
}

bool replication_answers() {
#ifdef SEMEL_HAS_replication
  return !semel::Replication::found({.directory = "/proc/semel"});
#else
  return true;
#endif
}

bool group_answers() {
#ifdef SEMEL_HAS_group
  return !semel::GroupNode::open({.directory = "/proc/semel"});
#else
  return true;
#endif
}

bool redis_answers() {
#ifdef SEMEL_HAS_net
  auto redis = semel::LocalRedis::open().value();
  return redis->call({"EVAL", "return ARGV[1] * 2", "0", "21"}).integer == 42;
#else
  return true;
#endif
}

}  // namespace

int main() {
  const bool works = runs_once() && signs_and_reads_json() && storage_answers() &&
                     replication_answers() && group_answers() && redis_answers();
  std::printf("semel %s: once %s\n", semel::version, works ? "works" : "FAILED");
  return works ? 0 : 1;
}
