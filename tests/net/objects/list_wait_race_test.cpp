// Hundreds of clients that wait, on several threads: each element is got once and by one, also if
// clients leave while they are served.
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/local_redis.hpp"
#include "tests/net/node_client.hpp"

namespace semel::tests {
namespace {

constexpr int pushers = 2;
constexpr int elements_each = 3'000;
constexpr int elements = pushers * elements_each;
constexpr std::size_t servers = 3;
constexpr std::size_t clients_each = 100;

struct Shared {
  ManualClock clock;
  std::unique_ptr<Engine> engine = std::move(Engine::open({.clock = &clock})).value();
  net::Node node{*engine};
  std::atomic<int> popped{0};
  std::atomic<bool> is_over{false};
};

std::string queue_of(std::uint64_t number) {
  return "q" + std::to_string(number % 4);
}

/// A thread with its connections.
class Server {
 public:
  Server(Shared& shared, std::uint64_t seed) : shared_(shared), random_(seed) {}

  void run() {
    for (std::size_t i = 0; i < clients_each; ++i) renew(i);
    // mo: relaxed: a later turn sees it
    while (!shared_.is_over.load(std::memory_order_relaxed)) {
      for (std::size_t i = 0; i < clients_each; ++i) {
        Waiting& each = clients_[i];
        note(each, each.client->heard());
        if (random_() % 512 == 0) {
          renew(i);  // also one that waits, or that has been answered and has not read it
        } else if (!each.client->connection().waits()) {
          ask(each);
        }
      }
      std::this_thread::yield();
    }
    clients_.clear();
  }

  std::map<std::string, int> got;

 private:
  struct Waiting {
    std::unique_ptr<NodeClient> client;
    bool moves = false;
  };

  void renew(std::size_t i) {
    clients_.resize(clients_each);
    clients_[i] = {
        std::make_unique<NodeClient>(shared_.node, batch_, shared_.node.next_client_id())};
    ask(clients_[i]);
  }
  void ask(Waiting& each) {
    const std::string one = queue_of(random_());
    const std::string two = queue_of(random_());
    each.moves = false;
    switch (random_() % 4) {
      case 0:
        each.moves = true;
        return note(each, each.client->say({"BLMOVE", one, "done", "RIGHT", "LEFT", "0"}));
      case 1:
        return note(each, each.client->say({"BLMPOP", "0", "2", one, two, "LEFT", "COUNT", "3"}));
      case 2:
        each.moves = true;
        return note(each, each.client->say({"BLMOVE", one, "done", "LEFT", "RIGHT", "0"}));
      default:
        return note(each, each.client->say({"BRPOP", one, two, "0"}));
    }
  }
  /// Elements begin with "e"; nothing else in a reply does.
  void note(const Waiting& each, const std::string& reply) {
    if (reply.empty() || each.moves) return;
    for (std::size_t at = reply.find("\ne"); at != std::string::npos;
         at = reply.find("\ne", at + 1)) {
      ++got[reply.substr(at + 1, reply.find('\r', at) - at - 1)];
      shared_.popped.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a count
    }
  }

  Shared& shared_;
  std::mt19937_64 random_;
  net::Batch batch_;
  std::vector<Waiting> clients_;
};

int number_in(const std::string& reply) {
  return std::stoi(reply.substr(1));
}

}  // namespace

TEST_CASE("waits: of many pushers and hundreds of clients each element is got once",
          "[net][objects][lists][waits][race]") {
  const std::uint64_t seed = Catch::rngSeed();
  INFO("seed " << seed);
  Shared shared;
  std::vector<std::unique_ptr<Server>> all;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < servers; ++i) {
    all.push_back(std::make_unique<Server>(shared, seed + i));
    threads.emplace_back([&server = *all.back()] { server.run(); });
  }
  std::vector<std::thread> pushing;
  for (int pusher = 0; pusher < pushers; ++pusher) {
    pushing.emplace_back([&shared, pusher] {
      net::Batch batch;
      NodeClient client{shared.node, batch, shared.node.next_client_id()};
      for (int i = 0; i < elements_each; ++i) {
        const std::string element = "e" + std::to_string(pusher * elements_each + i);
        const auto to = static_cast<std::uint64_t>(i);
        if (i % 7 == 0) {
          static_cast<void>(client.say("MULTI"));
          static_cast<void>(client.say({"LPUSH", queue_of(to), element}));
          static_cast<void>(client.say("EXEC"));
        } else {
          static_cast<void>(client.say({"RPUSH", queue_of(to), element}));
        }
      }
    });
  }
  for (std::thread& each : pushing) each.join();
  net::Batch batch;
  NodeClient control{shared.node, batch, shared.node.next_client_id()};
  // mo: relaxed: a count; all waiting clients are served in the end, or this does not
  while (shared.popped.load(std::memory_order_relaxed) + number_in(control.say("LLEN done")) <
         elements) {
    std::this_thread::yield();
  }
  shared.is_over.store(true, std::memory_order_relaxed);  // mo: relaxed: threads are joined
  for (std::thread& each : threads) each.join();

  std::map<std::string, int> got;
  for (const auto& server : all) {
    for (const auto& [element, times] : server->got) got[element] += times;
  }
  const std::string done = control.say("LRANGE done 0 -1");
  for (std::size_t at = done.find("\ne"); at != std::string::npos; at = done.find("\ne", at + 1)) {
    ++got[done.substr(at + 1, done.find('\r', at) - at - 1)];
  }
  for (int queue = 0; queue < 4; ++queue) {
    CHECK(control.say({"LLEN", queue_of(static_cast<std::uint64_t>(queue))}) == ":0\r\n");
  }
  CHECK(got.size() == elements);
  for (const auto& [element, times] : got) {
    INFO(element);
    REQUIRE(times == 1);
  }
  CHECK(shared.engine->stats().waiters == 0);
}

TEST_CASE("waits: a timeout of LocalRedis ends when its clock is advanced",
          "[net][objects][lists][waits]") {
  const auto redis = std::move(LocalRedis::open()).value();
  LocalRedis::Client client = redis->connect();
  Reply reply;
  std::atomic<bool> has_ended{false};
  std::thread waits{[&] {
    reply = client.call({"BLPOP", "q", "5"});
    has_ended.store(true, std::memory_order_relaxed);  // mo: relaxed: looked at for a hint
  }};
  const auto blocked = [&] {
    return redis->call({"INFO", "clients"}).text.find("blocked_clients:1\r\n") != std::string::npos;
  };
  while (!blocked()) std::this_thread::yield();
  redis->advance(Millis{4'999});
  CHECK(blocked());
  CHECK_FALSE(has_ended.load(std::memory_order_relaxed));  // mo: relaxed: as above
  redis->advance(Millis{1});
  waits.join();
  CHECK(reply.is_null());
}

}  // namespace semel::tests
