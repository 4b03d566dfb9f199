#include "tests/net/differential/beside.hpp"

#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include "tests/support/catch.hpp"

#include "tests/net/conversation.hpp"
#include "tests/net/dialogue.hpp"
#include "tests/net/differential/known_differences.hpp"
#include "tests/net/differential/random_requests.hpp"
#include "tests/net/node_client.hpp"
#include "tests/support/redis_or_skip.hpp"

namespace semel::tests {
namespace {

/// `tools/prove differential --long` asks for more than `usual`.
int steps_wanted(int usual) {
  const char* const wanted = std::getenv("SEMEL_DIALOGUE_COMMANDS");
  return wanted == nullptr ? usual : std::atoi(wanted);
}

std::string shown(const Words& words) {
  std::string line;
  for (const std::string& word : words) line += printable(word.substr(0, 200)) + " ";
  return line;
}

/// One client of ours and one of theirs, who are told the same.
class ClientPair {
 public:
  ClientPair(LocalNode& local, const std::string& socket_path, std::uint64_t id)
      : ours_(local.node, local.batch, id), theirs_(socket_path) {}

  [[nodiscard]] bool in_transaction() const { return ours_.in_transaction(); }
  /// Returns what ours was sent.
  std::string compare(const std::vector<Words>& requests, bool has_exact_times) {
    std::string bytes;
    for (const Words& words : requests) bytes += request_bytes(words);
    const std::string ours = requests.empty() ? ours_.heard() : ours_.send(bytes);
    const std::string theirs = theirs_.send(bytes, in_transaction());
    INFO("ours   " << printable(ours) << "\ntheirs " << printable(theirs));
    REQUIRE(is_same(requests, ours, theirs, has_exact_times));
    return ours;
  }
  /// What it is sent without asking.
  void compare_heard() { static_cast<void>(compare({}, true)); }
  /// A server sees the end of another client when it has answered this one twice.
  void ask_twice() {
    if (in_transaction()) return;
    static_cast<void>(theirs_.heard(false));
    static_cast<void>(theirs_.heard(false));
  }

 private:
  NodeClient ours_;
  RedisClient theirs_;
};

class Dialogue {
 public:
  Dialogue(const RedisServer& server, const Profile& profile, std::uint64_t seed,
           const Options& options)
      : path_(server.socket_path()),
        profile_(profile),
        requests_(seed, profile),
        local_(options),
        operator_(std::make_unique<ClientPair>(local_, path_, 1'000)) {
    for (std::size_t i = 0; i < profile.clients; ++i) renew(i);
  }

  void run(const std::string& dialect) {
    say_as_operator({"FLUSHALL"});
    for (std::size_t i = 0; i < clients_.size() && !dialect.empty(); ++i) {
      static_cast<void>(clients_[i]->compare({{"HELLO", dialect}}, true));
    }
    for (const std::string_view line : profile_.opening) {
      ClientPair& client = *clients_[static_cast<std::size_t>(line[0] - '0')];
      static_cast<void>(client.compare({words_in(line.substr(2))}, true));
    }
    const int steps = steps_wanted(profile_.steps);
    for (step_ = 0; step_ < steps; ++step_) {
      one_step(dialect);
      if (step_ % 1'000 == 0) compare_keys();
    }
    compare_keys();
  }

 private:
  void renew(std::size_t who) {
    clients_.resize(profile_.clients);
    clients_[who] = std::make_unique<ClientPair>(local_, path_, who + 1);
  }

  /// Several at once if the profile has bursts; MULTI and EXEC come alone.
  std::vector<Words> some_requests(bool in_transaction) {
    const auto is_apart = [](const Words& words) {
      return words[0] == "MULTI" || words[0] == "EXEC";
    };
    std::vector<Words> some{requests_.next()};
    while (profile_.has_bursts && !is_apart(some.back()) && !in_transaction &&
           requests_.below(3) != 0) {
      some.push_back(requests_.next());
    }
    if (is_apart(some.back())) some = {some.back()};
    return some;
  }

  void one_step(const std::string& dialect) {
    if (!profile_.settings.empty() && requests_.is_one_in(200)) {
      say_as_operator(words_in(requests_.pick(profile_.settings)));
    }
    const std::size_t who =
        profile_.first_speaker + requests_.below(clients_.size() - profile_.first_speaker);
    ClientPair& client = *clients_[who];
    std::vector<Words> some = some_requests(client.in_transaction());
    std::erase_if(some, [&](const Words& words) {
      return profile_.leaves_out != nullptr &&
             profile_.leaves_out(words, who, client.in_transaction());
    });
    if (some.empty()) return;
    remember(who, some);
    INFO(profile_.name << ", RESP" << dialect << ", step " << step_ << ", last said:" << story());
    static_cast<void>(client.compare(some, profile_.has_exact_times));
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      if (i != who) clients_[i]->compare_heard();
    }
    if (!client.in_transaction() && requests_.is_one_in(profile_.renew_one_in)) {
      renew(who);
      clients_[who]->ask_twice();
    }
  }

  /// Names, kinds, values and ends, by a connection that says nothing else.
  void compare_keys() {
    INFO(profile_.name << ", step " << step_ << ", all keys");
    const std::string keys = operator_->compare({{"KEYS", "*"}}, true);
    std::string_view rest = keys;
    const RespValue list = take_value(rest).value();
    for (const RespValue& key : list.items) {
      for (const char* about : {"TYPE", "GET", "HLEN", "SMEMBERS", "PEXPIRETIME"}) {
        say_as_operator({about, key.text});
      }
      say_as_operator({"ZRANGE", key.text, "0", "-1", "WITHSCORES"});
    }
  }

  void say_as_operator(const Words& words) {
    static_cast<void>(operator_->compare({words}, profile_.has_exact_times));
    for (const auto& client : clients_) client->compare_heard();
  }

  void remember(std::size_t who, const std::vector<Words>& some) {
    for (const Words& words : some) story_.push_back(std::to_string(who) + ": " + shown(words));
    constexpr std::size_t story_max = 12;
    while (story_.size() > story_max) story_.pop_front();
  }
  [[nodiscard]] std::string story() const {
    std::string lines;
    for (const std::string& line : story_) lines += "\n  " + line;
    return lines;
  }

  const std::string path_;
  const Profile& profile_;
  RandomRequests requests_;
  LocalNode local_;
  std::unique_ptr<ClientPair> operator_;
  std::vector<std::unique_ptr<ClientPair>> clients_;
  std::deque<std::string> story_;
  int step_ = 0;
};

}  // namespace

void play_beside(const RedisServer& server, const Profile& profile, std::uint64_t seed,
                 const Options& options) {
  INFO("seed " << seed);
  const std::vector<std::string> as_it_starts{""};
  for (const std::string& dialect : profile.dialects.empty() ? as_it_starts : profile.dialects) {
    Dialogue{server, profile, seed, options}.run(dialect);
  }
}

void play_beside(const std::vector<Words>& requests) {
  const auto server = redis_or_skip();
  if (!server) return;
  for (const char* dialect : {"2", "3"}) {
    RedisClient theirs{server->socket_path()};
    for (const Words& words :
         {Words{"FLUSHALL"}, {"SCRIPT", "FLUSH"}, {"FUNCTION", "FLUSH"}, {"HELLO", dialect}}) {
      static_cast<void>(theirs.say(words, false));
    }
    Conversation ours;
    static_cast<void>(ours.call({"HELLO", dialect}));
    for (const Words& words : requests) {
      INFO("RESP" << dialect << ": " << shown(words));
      const std::string reply = ours.call(words);
      CHECK(reply == theirs.say(words, ours.connections[0]->client().transaction != nullptr));
    }
  }
}

}  // namespace semel::tests
