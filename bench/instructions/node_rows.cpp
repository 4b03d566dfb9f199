// The requests of a node whose instructions run.py counts, see node_bench.hpp.
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/instructions/node_bench.hpp"

namespace {

using namespace semel;
using namespace semel::bench;

/// As run(), of replies that are read afterwards.
void gather(Bench& bench, const Rounds& rounds, std::string& replies) {
  for (const Round& round : rounds) bench.connection->receive(round.requests, replies);
}

/// The epochs in the replies of SEMEL.CLAIM.
std::vector<std::string> epochs_in(std::string_view replies) {
  constexpr std::string_view name = "$5\r\nepoch\r\n$";
  std::vector<std::string> epochs;
  for (std::size_t at = replies.find(name); at != std::string_view::npos;
       at = replies.find(name, at)) {
    at = replies.find('\n', at + name.size()) + 1;
    epochs.emplace_back(replies.substr(at, replies.find('\r', at) - at));
  }
  return epochs;
}

}  // namespace

// Their names are the rows of expected.txt.
SEMEL_ROW(node_nx_get_new);
SEMEL_ROW(node_nx_get_repeat);
SEMEL_ROW(node_nx_get_p1);
SEMEL_ROW(node_get);
SEMEL_ROW(node_get_p1);
SEMEL_ROW(node_set);
SEMEL_ROW(node_incr);
SEMEL_ROW(node_complete);
SEMEL_ROW(node_complete_noted);
SEMEL_ROW(node_evalsha);
SEMEL_ROW(node_hset);
SEMEL_ROW(node_zadd);
SEMEL_ROW(node_ping);

#define SEMEL_CLAIM_ROW(name)                                                      \
  extern "C" [[gnu::noinline]] void row_##name(Bench& bench, const Rounds& rounds, \
                                               std::string& replies) {             \
    gather(bench, rounds, replies);                                                \
  }

SEMEL_CLAIM_ROW(node_claim)
SEMEL_CLAIM_ROW(node_claim_noted)

namespace {

/// Claims of all keys, and their completions. `noted`: on a node that keeps its decisions.
void claims(Bench& bench, bool noted) {
  require(bench.call({"SEMEL.NAMESPACE", "orders", "LEASE", "600000"}).front() != '-',
          "no namespace");
  const auto key = [&](std::size_t i) { return std::string_view{bench.keys[i]}; };
  std::string replies;
  replies.reserve(std::size_t{1} << 20);
  const Rounds all = bench.rounds(round_requests, {}, [&](std::size_t i) -> Words {
    return {"SEMEL.CLAIM", "orders", key(i)};
  });
  noted ? row_node_claim_noted(bench, all, replies) : row_node_claim(bench, all, replies);
  const std::vector<std::string> epochs = epochs_in(replies);
  require(epochs.size() == request_count, "a key was not free");
  const std::string extra = bench.call({"SEMEL.CLAIM", "orders", "extra"});
  const std::string done =
      bench.call({"SEMEL.COMPLETE", "orders", "extra", epochs_in(extra).at(0), "paid"});
  require(done.find("ok") != std::string::npos, "a claim was not completed");
  const Rounds ends = bench.rounds(round_requests, done, [&](std::size_t i) -> Words {
    return {"SEMEL.COMPLETE", "orders", key(i), epochs[i], "paid"};
  });
  noted ? row_node_complete_noted(bench, ends) : row_node_complete(bench, ends);
}

}  // namespace

int main() {
  const std::unique_ptr<Engine> engine = open_engine(0);
  Bench bench{*engine};
  const std::size_t many = round_requests;
  const auto key = [&](std::size_t i) { return std::string_view{bench.keys[i]}; };
  const auto once = [&](std::size_t i) -> Words {
    return {"SET", key(i), "consuming", "NX", "GET", "PX", "3600000"};
  };
  const std::string_view value = "$9\r\nconsuming\r\n";
  row_node_nx_get_new(bench, bench.rounds(many, "$-1\r\n", once));
  row_node_nx_get_repeat(bench, bench.rounds(many, value, once));
  row_node_nx_get_p1(bench, bench.rounds(1, value, once));
  const auto get = [&](std::size_t i) -> Words { return {"GET", key(i)}; };
  row_node_get(bench, bench.rounds(many, value, get));
  row_node_get_p1(bench, bench.rounds(1, value, get));
  row_node_set(bench, bench.rounds(many, "+OK\r\n", [&](std::size_t i) -> Words {
    return {"SET", key(i), "consuming"};
  }));
  const std::string sha = bench.call({"SCRIPT", "LOAD", "return #redis.call('GET', KEYS[1]) + 1"});
  row_node_evalsha(bench, bench.rounds(many, ":10\r\n", [&](std::size_t i) -> Words {
    return {"EVALSHA", std::string_view{sha}.substr(5, 40), "1", key(i)};
  }));
  row_node_ping(bench,
                bench.rounds(many, "+PONG\r\n", [](std::size_t) -> Words { return {"PING"}; }));

  for (std::string& each : bench.keys) each[0] = 'i';
  row_node_incr(bench, bench.rounds(many, ":1\r\n", [&](std::size_t i) -> Words {
    return {"INCR", key(i)};
  }));
  for (std::string& each : bench.keys) each[0] = 'h';
  row_node_hset(bench, bench.rounds(many, ":1\r\n", [&](std::size_t i) -> Words {
    return {"HSET", key(i), "field", "value"};
  }));
  for (std::string& each : bench.keys) each[0] = 'z';
  row_node_zadd(bench, bench.rounds(many, ":1\r\n", [&](std::size_t i) -> Words {
    return {"ZADD", key(i), "1732924800.25", "member"};
  }));

  // Each beside an engine of its own: without the sections of the script above.
  const std::unique_ptr<Engine> silent = open_engine(0);
  Bench plain{*silent};
  claims(plain, false);

  constexpr std::size_t default_log_bytes = std::size_t{8} << 20;  // of decision-log-size
  const std::unique_ptr<Engine> noting = open_engine(default_log_bytes);
  Bench noted{*noting};
  claims(noted, true);
}
