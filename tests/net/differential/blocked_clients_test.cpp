// Clients that wait, of a redis-server and of us: the same ones are served, by the same elements,
// at the same moment.
//
// No client that waits is asked for anything. What a client of ours hears is read from theirs, and
// after each step both have the same number of clients that wait. Without SWAPDB: which of several
// keys it makes ready first is chance there.
#include <string>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

#include "tests/net/dialogue.hpp"
#include "tests/net/differential/random_requests.hpp"
#include "tests/net/node_client.hpp"
#include "tests/support/redis_or_skip.hpp"

namespace semel::tests {
namespace {

const Profile waits{.name = "waits",
                    .forms = R"(
BLPOP K 0; BRPOP K K 0; BLPOP K K K 0; BLMOVE K K E E 0; BLMOVE K K E E 0; BRPOPLPUSH K K 0;
BLMPOP 0 1 K E; BLMPOP 0 2 K K E COUNT N; BLPOP K K 0; BRPOP K 0;
RPUSH K V; LPUSH K V V; RPUSH K V V V; LMOVE K K E E; RPOPLPUSH K K; LPOP K; RPOP K N; RENAME K K;
COPY K K; DEL K; SET K V; LINSERT K BEFORE V V; LPUSHX K V; LRANGE K 0 -1; MOVE K 1;
EVAL push 3 K K K V)",
                    .kinds = {{'K', {"a", "b", "c", "d"}},
                              {'V', {"1", "2", "3", "4", "5"}},
                              {'E', {"LEFT", "RIGHT"}},
                              {'N', {"1", "2", "9"}}}};

class Both {
 public:
  Both(LocalNode& local, const std::string& path, std::uint64_t id)
      : ours_(local.node, local.batch, id), theirs_(path) {}

  /// Not of one that waits.
  void ask(const std::vector<Words>& requests) {
    std::string bytes;
    for (const Words& words : requests) bytes += request_bytes(words);
    const std::string ours = ours_.send(bytes);
    theirs_.send(bytes);
    compare(ours);
    waits_ = ours_.connection().waits();
  }
  /// Of one that waits.
  void listen() {
    const std::string ours = ours_.heard();
    compare(ours);
    waits_ = ours_.connection().waits();
  }
  [[nodiscard]] bool waits() const { return waits_; }
  [[nodiscard]] std::pair<std::string, std::string> ids() {
    const std::string bytes = request_bytes({"CLIENT", "ID"});
    const std::string ours = ours_.send(bytes);
    theirs_.send(bytes);
    const std::string theirs = theirs_.read_until("\r\n").value();
    return {ours.substr(1, ours.size() - 3), theirs.substr(1, theirs.size() - 3)};
  }
  /// Each side with its own words.
  void ask_apart(const Words& ours, const Words& theirs) {
    const std::string reply = ours_.send(request_bytes(ours));
    theirs_.send(request_bytes(theirs));
    compare(reply);
  }
  [[nodiscard]] std::string ask_theirs(const Words& words, std::string_view end) {
    theirs_.send(request_bytes(words));
    return theirs_.read_until(end).value();
  }

 private:
  void compare(const std::string& ours) {
    const std::string theirs = theirs_.read(ours.size());
    CHECK(theirs == ours);
    REQUIRE(theirs.size() == ours.size());
  }

  NodeClient ours_;
  Socket theirs_;
  bool waits_ = false;
};

class Waits {
 public:
  Waits(const RedisServer& server, std::uint64_t seed)
      : requests_(seed, waits), local_(Options{}), operator_(local_, server.socket_path(), 100) {
    operator_.ask({{"FLUSHALL"}});
    for (std::size_t i = 0; i < clients_max; ++i) {
      clients_.push_back(std::make_unique<Both>(local_, server.socket_path(), i + 1));
      ids_.push_back(clients_.back()->ids());
    }
  }

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      one_step(step);
      INFO("step " << step << ", last said:" << said_);
      for (const auto& each : clients_) {
        if (each->waits()) each->listen();
      }
      compare_waiting();
      if (step % 50 == 0) {
        for (const char* key : {"a", "b", "c", "d"}) operator_.ask({{"TYPE", key}});
      }
    }
  }

 private:
  static constexpr std::size_t clients_max = 6;

  void one_step(int step) {
    const std::size_t who = requests_.below(clients_max);
    INFO("step " << step << ", client " << who);
    if (clients_[who]->waits()) {
      if (requests_.below(4) != 0) return;
      const char* how = requests_.below(2) == 0 ? "TIMEOUT" : "ERROR";
      return operator_.ask_apart({"CLIENT", "UNBLOCK", ids_[who].first, how},
                                 {"CLIENT", "UNBLOCK", ids_[who].second, how});
    }
    std::vector<Words> some;
    if (requests_.below(4) == 0) {
      some.push_back({"MULTI"});
      for (std::uint64_t i = 1 + requests_.below(4); i > 0; --i) some.push_back(request());
      some.push_back({"EXEC"});
    } else {
      some.push_back(request());
    }
    said_ += "\n  " + std::to_string(who) + ": ";
    for (const Words& words : some) {
      for (const std::string& word : words) said_ += word + " ";
      said_ += "; ";
    }
    constexpr std::size_t said_max = 2'000;
    if (said_.size() > said_max) said_.erase(0, said_.size() - said_max);
    INFO(said_);
    clients_[who]->ask(some);
  }

  Words request() {
    Words words = requests_.next();
    if (words[1] == "push") {
      words[1] = "for i = 1, 3 do redis.call('rpush', KEYS[i], ARGV[1] .. i) end return 1";
    }
    return words;
  }

  /// A server that has answered one client may not have read what another sent before.
  void compare_waiting() {
    std::size_t ours = 0;
    for (const auto& each : clients_) ours += each->waits() ? 1 : 0;
    const std::string wanted = "blocked_clients:" + std::to_string(ours) + "\r\n";
    std::string info;
    for (int tries = 0; tries < 1'000; ++tries) {
      info = operator_.ask_theirs({"INFO", "clients"}, "clients_in_timeout_table:0\r\n\r\n");
      if (info.find(wanted) != std::string::npos) return;
    }
    INFO(info);
    FAIL("ours: " << wanted);
  }

  RandomRequests requests_;
  std::string said_;
  LocalNode local_;
  Both operator_;
  std::vector<std::unique_ptr<Both>> clients_;
  std::vector<std::pair<std::string, std::string>> ids_;
};

}  // namespace

TEST_CASE("dialogues: clients that wait are served as a redis-server serves them",
          "[net][redis][lists][waits]") {
  const auto server = redis_or_skip();
  if (!server) return;
  const std::uint64_t seed = Catch::rngSeed();
  INFO("seed " << seed);
  Waits{*server, seed}.run(4'000);
}

}  // namespace semel::tests
