// A Redis in this process: two workers that share jobs, tested without a server and without sleep.
#include <semel/local_redis.hpp>

#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

/// A field of what a SEMEL command answered: names and values take turns, in both dialects.
semel::Reply field(const semel::Reply& reply, std::string_view name) {
  for (std::size_t i = 0; i + 1 < reply.items.size(); i += 2) {
    if (reply.items[i].text == name) return reply.items[i + 1];
  }
  return {};
}

/// A key that expires without anyone waiting for it.
std::string end_of_a_lock() {
  auto redis = semel::LocalRedis::open().value();
  const auto mine = redis->call({"SET", "job:1", "mine", "NX", "PX", "60000"});    // OK
  const auto yours = redis->call({"SET", "job:1", "yours", "NX", "PX", "60000"});  // (nil)
  redis->advance(semel::Millis{60'000});             // a minute has passed, without sleeping
  const auto ended = redis->call({"GET", "job:1"});  // (nil)
  return to_text(mine) + " " + to_text(yours) + " " + to_text(ended);
}

/// Each client has a transaction of its own, which is not carried out if what it watches changes.
std::string transaction() {
  auto redis = semel::LocalRedis::open().value();
  auto other = redis->connect();
  redis->call({"WATCH", "stock"});
  redis->call({"MULTI"});
  redis->call({"INCR", "stock"});
  other.call({"SET", "stock", "7"});
  const auto answers = redis->call({"EXEC"});  // (nil): nothing of it was carried out
  return to_text(answers) + " " + to_text(redis->call({"GET", "stock"}));
}

/// What is pushed lies ready until it is asked for.
std::string message() {
  auto redis = semel::LocalRedis::open().value();
  auto listener = redis->connect();
  listener.call({"SUBSCRIBE", "news"});
  redis->call({"PUBLISH", "news", "job:1 is done"});
  const std::vector<semel::Reply> heard = listener.pushed();
  return heard.size() == 1 ? to_text(heard.front()) : std::to_string(heard.size()) + " messages";
}

/// A command that waits holds its thread until another client ends the wait.
std::string answer_for_who_waits() {
  auto redis = semel::LocalRedis::open().value();
  const semel::Reply claim = redis->call({"SEMEL.CLAIM", "orders", "order-4711"});
  const std::string epoch = field(claim, "epoch").text;
  semel::Reply waited;
  std::thread duplicate{[&waited, client = redis->connect()]() mutable {
    waited = client.call({"SEMEL.WAIT", "5000", "orders", "order-4711"});
  }};
  redis->call({"SEMEL.COMPLETE", "orders", "order-4711", epoch, "paid"});
  duplicate.join();
  return field(claim, "outcome").text + " " + field(waited, "outcome").text + " " +
         field(waited, "result").text;
}

bool is(const std::string& actual, std::string_view expected) {
  std::printf("%s\n", actual.c_str());
  return actual == expected;
}

}  // namespace

int main() {
  const bool right[] = {is(end_of_a_lock(), "OK (nil) (nil)"), is(transaction(), "(nil) \"7\""),
                        is(message(), "[\"message\", \"news\", \"job:1 is done\"]"),
                        is(answer_for_who_waits(), "granted replay paid")};
  for (const bool each : right) {
    if (!each) return 1;
  }
  return 0;
}
