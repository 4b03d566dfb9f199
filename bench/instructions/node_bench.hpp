// Requests of a node whose instructions run.py counts, under callgrind: one function a row.
//
// A connection in process: bytes of requests in, bytes of replies out, without sockets, as the
// server calls it with what one read has returned. A row has `request_count` requests in rounds of
// `round_requests`, unless its name says p1, and checks every reply. What its loop costs is in its
// figure, less than 10 instructions a request.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/node/connection.hpp"
#include "semel/semel.hpp"

namespace semel::bench {

using Words = std::vector<std::string_view>;

inline constexpr std::size_t request_count = 4'000;
inline constexpr std::size_t round_requests = 16;

inline void require(bool good, const char* what) {
  if (good) [[likely]]
    return;
  std::fprintf(stderr, "instructions: %s\n", what);
  std::exit(1);
}

inline std::string request_of(const Words& words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    bytes += "$" + std::to_string(word.size()) + "\r\n";
    bytes.append(word).append("\r\n");
  }
  return bytes;
}

/// The requests of one read, and the replies that they must get. Empty replies: the caller checks
/// them.
struct Round {
  std::string requests{};
  std::string replies{};
};
using Rounds = std::vector<Round>;

struct Bench {
  explicit Bench(Engine& engine) : node(engine) {
    connection = std::make_unique<net::Connection>(
        node, batch, nullptr,
        net::ClientHandle::Origin{.id = node.next_client_id(), .address = "127.0.0.1:5000"});
    for (std::size_t i = 0; i < request_count; ++i) {
      std::string key = std::to_string(i * 2'654'435'761U);
      keys.push_back("order:" + std::string(26 - key.size(), '0') + key);
    }
  }
  /// `words_of(i)` answered by `reply`, of all keys.
  template <class WordsOf>
  Rounds rounds(std::size_t size, std::string_view reply, WordsOf&& words_of) {
    Rounds all;
    for (std::size_t i = 0; i < request_count; ++i) {
      if (i % size == 0) all.emplace_back();
      all.back().requests += request_of(words_of(i));
      all.back().replies += reply;
    }
    return all;
  }
  /// Sends one request outside of every row.
  std::string call(const Words& words) {
    std::string reply;
    connection->receive(request_of(words), reply);
    return reply;
  }

  net::Node node;
  net::Batch batch;
  std::unique_ptr<net::Connection> connection;
  std::vector<std::string> keys{};
  std::string out{};
};

inline void run(Bench& bench, const Rounds& rounds) {
  for (const Round& round : rounds) {
    bench.out.clear();
    bench.connection->receive(round.requests, bench.out);
    require(bench.out == round.replies, "a reply is another one");
  }
}

inline std::unique_ptr<Engine> open_engine(std::size_t decision_log_bytes) {
  auto opened = Engine::open({.memory_bytes = std::size_t{256} << 20,
                              .decision_log_bytes = decision_log_bytes,
                              .hash_seed = 7,
                              .background = std::nullopt});
  require(opened.has_value(), "no engine");
  return *std::move(opened);
}

}  // namespace semel::bench

// Of a row of expected.txt. To be followed by a semicolon.
#define SEMEL_ROW(name)                                                              \
  extern "C" [[gnu::noinline]] void row_##name(Bench& bench, const Rounds& rounds) { \
    run(bench, rounds);                                                              \
  }                                                                                  \
  extern "C" void row_##name(Bench& bench, const Rounds& rounds)
