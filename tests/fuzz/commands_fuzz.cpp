// Whatever two clients send, replies are whole and the engine stays sound.
//
// Input: lines. The first letter says what is done with the rest of a line:
//   a, b   the client sends it as an inline command
//   A, B   the client sends it as it is, each `~` as an end of line
//   t      so many milliseconds pass
//   x      client a comes back as a new one
//   v      every invariant is checked
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/node/connection.hpp"
#include "semel/clock.hpp"
#include "semel/engine_host.hpp"
#include "semel/semel.hpp"
#include "tests/fuzz/check.hpp"
#include "tests/fuzz/reply_form.hpp"

namespace semel::tests {
namespace {

constexpr std::size_t lines_max = 256;
constexpr std::int64_t step_ms_max = std::int64_t{1} << 40;

class World {
 public:
  World() {
    for (auto& client : clients_) client = connect();
  }

  void run(std::string_view line) {
    const char what = line.front();
    line.remove_prefix(1);
    switch (what) {
      case 'a':
      case 'b':
        send(what - 'a', std::string{line} + "\r\n");
        break;
      case 'A':
      case 'B':
        send(what - 'A', raw(line));
        break;
      case 't':
        advance(line);
        break;
      case 'x':
        clients_[0] = connect();
        break;
      case 'v':
        verify();
        break;
      default:
        break;
    }
  }

  void verify() {
    for (const std::string& rule : engine_->host().check_invariants()) check(false, rule);
  }

 private:
  std::unique_ptr<net::Connection> connect() {
    return std::make_unique<net::Connection>(
        node_, batch_, nullptr, net::ClientHandle::Origin{.id = node_.next_client_id()});
  }

  static std::string raw(std::string_view line) {
    std::string bytes;
    for (const char sign : line) sign == '~' ? bytes += "\r\n" : bytes += sign;
    return bytes;
  }

  void send(int which, const std::string& bytes) {
    auto& client = clients_[static_cast<std::size_t>(which)];
    // A closed client reconnects.
    if (client->closes() || client->kept_bytes() > 65'536) client = connect();
    if (client->waits()) return;  // a server reads no more then
    std::string out;
    client->receive(bytes, out);
    check(is_whole_replies(out), "a reply that is not whole: " + out);
    collect();
  }

  void collect() {
    for (const auto& client : clients_) {
      std::string out;
      client->collect(out);
      check(is_whole_replies(out), "a push that is not whole: " + out);
    }
  }

  void advance(std::string_view line) {
    std::int64_t ms = 0;
    std::from_chars(line.data(), line.data() + line.size(), ms);
    clock_.advance(Millis{std::clamp<std::int64_t>(ms, 0, step_ms_max)});
    node_.tick();
    collect();
  }

  static Options options(const Clock& clock) {
    return {.clock = &clock,
            .memory_bytes = limits::memory_bytes_min,
            .value_bytes_max = 64 * 1024,
            .shard_count = 1,
            .hash_seed = 1};
  }

  ManualClock clock_;
  std::unique_ptr<Engine> engine_ = std::move(Engine::open(options(clock_)).value());
  net::Node node_{*engine_};
  net::Batch batch_;
  std::array<std::unique_ptr<net::Connection>, 2> clients_;
};

}  // namespace
}  // namespace semel::tests

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace semel::tests;
  World world;
  std::string_view input{reinterpret_cast<const char*>(data), size};
  for (std::size_t i = 0; i < lines_max && !input.empty(); ++i) {
    const std::string_view line = input.substr(0, input.find('\n'));
    input.remove_prefix(std::min(line.size() + 1, input.size()));
    if (!line.empty()) world.run(line);
  }
  world.verify();
  return 0;
}
