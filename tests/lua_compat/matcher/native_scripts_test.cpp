// Known scripts without Lua, beside a redis-server that runs them: the same replies, byte for byte,
// and the same keys afterwards. Times may differ by what passes between the two.
#include "net/scripts/native_scripts.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <random>
#include "tests/support/catch.hpp"

#include "net/node/connection.hpp"
#include "semel/engine_host.hpp"
#include "semel/semel.hpp"
#include "tests/lua_compat/script_replies.hpp"
#include "tests/support/raw_client.hpp"
#include "tests/support/redis_or_skip.hpp"
#include "tests/support/resp_client.hpp"

namespace semel::tests {
namespace {

constexpr std::int64_t tolerance = 20'000;  // ms; what is compared is far from it

/// A node as the host of scripts.
class Fixture : public lua::Host {
 public:
  Fixture() : engine(std::move(Engine::open({}).value())), node(*engine) {}

  std::string request(const Words& words) {
    std::string reply;
    connection.receive(request_bytes(words), reply);
    return reply;
  }
  void call(std::span<const std::string_view> words, net::Resp, std::string& reply) override {
    const std::string answer = request({words.begin(), words.end()});
    reply += reply_for_scripts(answer);
  }
  std::optional<bool> may_call(std::span<const std::string_view>) override { return true; }
  void log(lua::LogLevel, std::string_view) override {}
  lua::Stop pause() override { return lua::Stop::none; }

  std::unique_ptr<Engine> engine;
  net::Node node;
  net::Batch batch;
  net::Connection connection{node, batch, nullptr, net::ClientHandle::Origin{.id = 1}};
  net::ClientState client;
};

/// Integers as "#", with a list of them, so that those that are times can differ a little.
std::string without_numbers(std::string_view reply, std::vector<std::int64_t>& numbers) {
  std::string text;
  while (!reply.empty()) {
    const std::size_t end = std::min(reply.find("\r\n"), reply.size() - 2);
    const std::string_view line = reply.substr(0, end);
    std::int64_t number = 0;
    const auto read = std::from_chars(line.data() + 1, line.data() + line.size(), number);
    const bool is_integer = line.starts_with(':') && read.ptr == line.data() + line.size();
    if (is_integer) numbers.push_back(number);
    text.append(is_integer ? "#" : line).append("\r\n");
    reply.remove_prefix(end + 2);
  }
  return text;
}

bool is_close(const std::string& left, const std::string& right) {
  if (left == right) return true;
  std::vector<std::int64_t> left_numbers;
  std::vector<std::int64_t> right_numbers;
  if (without_numbers(left, left_numbers) != without_numbers(right, right_numbers)) return false;
  return std::ranges::equal(left_numbers, right_numbers, [](std::int64_t a, std::int64_t b) {
    // Counters are nowhere near these.
    const auto is_ms = [](std::int64_t n) { return n > 2 * tolerance && n < 1'000'000'000'000; };
    const auto is_s = [](std::int64_t n) { return n > 250 && n <= 500; };
    if (is_ms(a) && is_ms(b)) return std::abs(a - b) < tolerance;
    return a == b || (is_s(a) && is_s(b) && std::abs(a - b) < tolerance / 1000);
  });
}

/// The text over several lines, which must not change more than the lines of errors.
std::string respelled(std::string_view text, std::mt19937_64& random) {
  std::string made;
  char quote = '\0';
  for (const char c : text) {
    if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = '\0';
    }
    const bool breaks = quote == '\0' && c == ' ' && random() % 3 == 0;
    made += breaks ? (random() % 2 == 0 ? "\n" : " -- a remark\r\n") : std::string(1, c);
  }
  return made;
}

template <class List>
const auto& pick(const List& list, std::mt19937_64& random) {
  return list[random() % std::size(list)];
}

const std::vector<std::string> key_names{"a", "b", "c"};
// No time that could end meanwhile.
const std::vector<std::string> plain_words{"owner", "owner", "v", "100000", "200000", "90000"};
const std::vector<std::string> unusual_words{"",      "0",       "-1",      "-5",       "abc",
                                             "1.5",   " 7",      "007",     "0x10",     "1e3",
                                             "k\r\n", "publish", "PUBLISH", "spublish", "get"};
const std::vector<std::string> stored_values{"owner",
                                             "owner",
                                             "v",
                                             "1",
                                             "0",
                                             "-1",
                                             "41",
                                             "abc",
                                             "",
                                             " 3",
                                             "9007199254740992",
                                             "9223372036854775807",
                                             "owner "};

Words state_command(std::mt19937_64& random) {
  const std::string& key = pick(key_names, random);
  const std::string& value = pick(stored_values, random);
  switch (random() % 8) {
    case 0:
      return {"DEL", key};
    case 1:
      return {"SET", key, value};
    case 2:
      return {"HSET", key, pick(plain_words, random), value};
    case 3:
      return {"EXPIRE", key, "500"};
    case 4:
      return {"PERSIST", key};
    default:
      return {"SET", key, value, "PX", "300000"};
  }
}

Words request_of(const std::string& text, std::size_t keys, std::size_t args,
                 std::mt19937_64& random) {
  const auto about = [&](std::size_t wanted) {
    const std::uint64_t dice = random() % 16;
    return dice == 0 && wanted > 0 ? wanted - 1 : dice == 1 ? wanted + 1 : wanted;
  };
  const std::size_t key_count = about(keys == 0 ? random() % 4 : keys);
  Words words{"EVAL", text, std::to_string(key_count)};
  for (std::size_t i = 0; i < key_count; ++i) words.push_back(pick(key_names, random));
  for (std::size_t i = about(keys == 0 ? std::max(args, key_count + 1) : args); i > 0; --i) {
    words.push_back(random() % 6 == 0 ? pick(unusual_words, random) : pick(plain_words, random));
  }
  return words;
}

std::string show(const Words& words) {
  std::string line;
  for (const std::string& word : words) line.append(printable(word)).append(" ");
  return line;
}

/// The texts of the catalogue with constants for their wildcards, and some single commands.
struct Text {
  std::string text;
  std::size_t keys;
  std::size_t args;
};
std::vector<Text> texts() {
  std::vector<Text> all;
  for (const lua::KnownEntry& entry : lua::known_catalogue()) {
    std::string text{entry.text};
    const std::size_t hole = text.find("'?1'");
    if (hole != std::string::npos) {
      all.push_back({std::string{text}.replace(hole, 4, "100000"), entry.keys, entry.arguments});
      text.replace(hole, 4, "'0200'");
    }
    all.push_back({text, entry.keys, entry.arguments});
  }
  for (const char* one : {
           "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'GET', 'PX', ARGV[2])",
           "local k = KEYS[1] local v, ttl = ARGV[1], ARGV[2] "
           "return redis.call('set', k, v, 'NX', 'GET', 'PX', ttl)",
           "local r = redis.call('set', KEYS[1], 'CONSUMING', 'NX', 'GET', 'PX', 100000) return r",
           "return redis.call('set', KEYS[1], ARGV[1], 'EX', ARGV[2], 'XX')",
           "return redis.call('get', KEYS[1])",
           "return redis.call('incr', KEYS[1])",
           "return redis.call('incrby', KEYS[1], ARGV[1])",
           "return redis.call('getdel', KEYS[1])",
           "return redis.call('del', KEYS[1])",
           "return redis.call('del', KEYS[1], KEYS[2])",
           "return redis.call('pexpire', KEYS[1], ARGV[1])",
           "return redis.call('expire', KEYS[1], ARGV[1], 'NX')",
           "return redis.call('pttl', KEYS[1])",
           "return redis.call('type', KEYS[1])",
           "return redis.call('append', KEYS[1], ARGV[1])",
           "return redis.call('hget', KEYS[1], ARGV[1])",
           "return redis.call('hmget', KEYS[1], ARGV[1], ARGV[2])",
           "return redis.call('mget', KEYS[1], KEYS[2])",
           "return redis.call('getex', KEYS[1], 'EX', ARGV[1])",
           "return redis.call('setnx', KEYS[1], ARGV[1])",
           "return redis.call('incrbyfloat', KEYS[1], ARGV[1])",
       }) {
    all.push_back({one, 2, 2});
  }
  return all;
}

/// One redis-server and one node in the same state.
class Comparison {
 public:
  Comparison(const std::string& socket_path, std::uint64_t seed)
      : theirs_(socket_path), theirs_in_three_(socket_path), random_(seed) {
    static_cast<void>(theirs_in_three_.call({"HELLO", "3"}));
  }

  void run(const Text& text) {
    prepare();
    const std::string spelled = respelled(text.text, random_);
    const std::string sha = theirs_.call({"SCRIPT", "LOAD", spelled}).substr(5, 40);
    const lua::ScriptShape shape = lua::shape_of(spelled, net::key_positions);
    INFO(spelled);
    REQUIRE(shape.known != lua::KnownScript::unknown);
    for (int i = 0; i < 6; ++i) {
      change();
      const Words words = request_of(spelled, text.keys, text.args, random_);
      compare(shape, sha, words);
    }
  }

  std::size_t planned = 0;
  std::size_t ran = 0;
  std::size_t refused = 0;

 private:
  void prepare() {
    both({"FLUSHALL"});
    for (int i = 0; i < 4; ++i) both(state_command(random_));
  }
  void change() {
    for (std::uint64_t i = random_() % 3; i > 0; --i) both(state_command(random_));
  }
  void both(const Words& words) {
    static_cast<void>(theirs_.call(words));
    static_cast<void>(ours_.request(words));
  }
  std::vector<std::string> view(bool of_theirs) {
    std::vector<std::string> seen;
    const auto ask = [&](const Words& words) {
      seen.push_back(of_theirs ? theirs_.call(words) : ours_.request(words));
    };
    for (const std::string& key : key_names) {
      ask({"TYPE", key});
      ask({"GET", key});
      for (const std::string& field : plain_words) ask({"HGET", key, field});
      ask({"HLEN", key});
      ask({"PTTL", key});
    }
    return seen;
  }

  void compare(const lua::ScriptShape& shape, const std::string& sha, const Words& words) {
    INFO(show(words) << "\n seed " << Catch::rngSeed());
    std::vector<std::string_view> views{words.begin(), words.end()};
    const auto key_count = static_cast<std::size_t>(std::stoul(words[2]));
    const std::span<const std::string_view> all{views};
    const net::Resp dialect = random_() % 2 == 0 ? net::Resp::two : net::Resp::three;
    const lua::Invocation invocation{
        .keys = all.subspan(3, key_count), .args = all.subspan(3 + key_count), .dialect = dialect};
    const std::vector<std::string> before = view(false);
    std::string reply;
    if (!answer(shape, sha, views, invocation, reply)) {
      ++refused;
      CHECK(reply.empty());
      const std::vector<std::string> after = view(false);
      for (std::size_t i = 0; i < before.size(); ++i) CHECK(is_close(after[i], before[i]));
      return;
    }
    const std::string expected =
        (dialect == net::Resp::two ? theirs_ : theirs_in_three_).call(words);
    INFO("theirs " << printable(expected) << "\n ours  " << printable(reply));
    REQUIRE(is_close(reply, expected));
    const std::vector<std::string> their_view = view(true);
    const std::vector<std::string> our_view = view(false);
    for (std::size_t i = 0; i < our_view.size(); ++i) {
      INFO(printable(their_view[i]) << " " << printable(our_view[i]));
      REQUIRE(is_close(our_view[i], their_view[i]));
    }
  }

  bool answer(const lua::ScriptShape& shape, const std::string& sha,
              std::span<const std::string_view> words, const lua::Invocation& invocation,
              std::string& reply) {
    net::RespWriter writer{reply, invocation.dialect};
    ours_.client.dialect = invocation.dialect;
    net::Call call{.services = ours_.node.services(),
                   .engine = *ours_.engine,
                   .client = ours_.client,
                   .args = words,
                   .reply = writer};
    StoreOp op;
    net::NativePlan plan;
    if (random_() % 2 == 0 &&
        net::plan_native(call, shape, sha, op, plan) == net::ArgumentError::none) {
      ++planned;
      StoreOutcome outcome;
      ours_.engine->host().apply(op, outcome);
      net::answer_native(call, plan, op, outcome);
      return true;
    }
    const net::NativeCall native{
        .shape = shape, .sha = sha, .invocation = invocation, .host = ours_, .reply = reply};
    if (!net::run_native(native)) return false;
    ++ran;
    return true;
  }

  RawClient theirs_;
  RawClient theirs_in_three_;
  Fixture ours_;
  std::mt19937_64 random_;
};

}  // namespace

TEST_CASE("known scripts: without Lua they do what a redis-server does by them", "[lua][redis]") {
  const auto server = redis_or_skip();
  if (!server) return;
  Comparison beside{server->socket_path(), Catch::rngSeed()};
  for (int round = 0; round < 12; ++round) {
    for (const Text& text : texts()) beside.run(text);
  }
  CHECK(beside.planned > 500);
  CHECK(beside.ran > 1000);
  CHECK(beside.refused > 100);
}

}  // namespace semel::tests
