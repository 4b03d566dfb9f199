// What waits to be sent: its order, what it holds, and what it lets go of.
#include "net/server/output_queue.hpp"

#include <memory>
#include <random>
#include <string>
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using net::ClientMemory;
using net::LargeBytes;
using net::OutputQueue;
using net::SharedBytes;
using net::Splices;

struct Queue {
  SharedBytes large(std::size_t size, char letter) {
    return std::make_shared<const LargeBytes>(std::string(size, letter), memory);
  }
  void add(std::string text, Splices&& splices = {}, std::size_t skip = 0) {
    queue.add(text, std::move(splices), skip);
    CHECK(text.empty());
  }
  /// Takes `count` bytes, as a socket would.
  std::string take(std::size_t count) {
    std::string taken;
    iovec places[3];
    while (taken.size() < count && !queue.empty()) {
      const std::size_t pieces = queue.pieces(places);
      std::string some;
      for (std::size_t i = 0; i < pieces; ++i) {
        some.append(static_cast<const char*>(places[i].iov_base), places[i].iov_len);
      }
      some.resize(std::min(some.size(), count - taken.size()));
      queue.sent(some.size());
      taken += some;
    }
    return taken;
  }

  std::shared_ptr<ClientMemory> memory = std::make_shared<ClientMemory>();
  OutputQueue queue;
};

}  // namespace

TEST_CASE("output queue: a value that comes three times is held once, until its last is sent",
          "[net][server][memory][attack][fault-7]") {
  Queue one;
  {
    const SharedBytes value = one.large(100'000, 'v');
    one.add("<>", {{1, value}, {1, value}, {2, value}});
  }
  CHECK(one.memory->bytes() == 100'000);
  CHECK(one.queue.large_bytes() == 100'000);
  CHECK(one.queue.text_bytes() == 2);
  CHECK(one.queue.held() == 100'002);
  CHECK(one.queue.parts() == 5);
  const std::string value(100'000, 'v');
  CHECK(one.take(200'001) == "<" + value + value);
  CHECK(one.queue.held() == 100'001);
  CHECK(one.take(50'000) == ">" + value.substr(0, 49'999));
  CHECK(one.queue.held() == 100'000);
  CHECK(one.take(100'000).size() == 50'001);
  CHECK(one.queue.empty());
  CHECK(one.queue.held() == 0);
  CHECK(one.memory->bytes() == 0);
}

TEST_CASE("output queue: a large text is taken as it is, from where the socket left off",
          "[net][server][memory]") {
  Queue one;
  std::string text(100'000, 't');
  text += "end";
  const char* const at = text.data();
  one.queue.add(text, {}, 99'999 - 50'000);
  CHECK(text.empty());
  CHECK(one.queue.front().data() == at + 49'999);
  CHECK(one.queue.held() == 50'004);
  one.add("more");
  CHECK(one.take(1'000'000) == std::string(50'001, 't') + "endmore");
  CHECK(one.queue.held() == 0);
}

TEST_CASE("output queue: what comes out is what was put in, in whatever parts",
          "[net][server][memory]") {
  std::mt19937_64 random{Catch::rngSeed()};
  INFO("seed " << Catch::rngSeed());
  Queue one;
  std::string expected;
  std::string got;
  const SharedBytes again = one.large(70'000, 'r');
  for (int i = 0; i < 2'000; ++i) {
    std::string text(random() % 3 == 0 ? random() % 40'000 : random() % 50, '.');
    for (char& c : text) c = static_cast<char>('a' + random() % 26);
    Splices splices;
    std::string whole = text;
    if (random() % 4 == 0) {
      const std::size_t place = random() % (text.size() + 1);
      const SharedBytes value = random() % 2 == 0 ? again : one.large(1 + random() % 1'000, 'x');
      whole.insert(place, value->view());
      splices.push_back({place, value});
    }
    const std::size_t skip =
        splices.empty() && one.queue.empty() ? random() % (text.size() + 1) : 0;
    expected += whole.substr(skip);
    one.queue.add(text, std::move(splices), skip);
    got += one.take(random() % 30'000);
  }
  got += one.take(~std::size_t{0});
  CHECK(got == expected);
  CHECK(one.queue.held() == 0);
  CHECK(one.memory->bytes() == 70'000);
}

}  // namespace semel::tests
