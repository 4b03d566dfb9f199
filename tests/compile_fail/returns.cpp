// What a function that runs once must not return, line by line: check.py asks the compiler, and
// wants an error in each line that says `refused` and in no other.
#include <coroutine>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <ranges>
#include <system_error>
#include <tuple>
#include <variant>
#include <vector>

#include "semel/patterns/consume.hpp"
#include "semel/patterns/debounce.hpp"
#include "semel/semel.hpp"

namespace {

using namespace semel;

struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::string encode() const { return {}; }
  static std::optional<Task> decode(Bytes) { return Task{}; }
};
/// A range whose elements are not there yet.
struct Counted : std::ranges::view_base {
  std::list<int>::iterator begin() const;
  std::list<int>::iterator end() const;
};
Counted counted();
enum Code { fine = 0, broken = 5 };
std::vector<int> numbers{1, 2};
int work() {
  return 1;
}
auto later() {
  return std::async(std::launch::deferred, work);
}
Task coroutine() {
  co_return;
}

void refused(Claims& c, Steps& steps, Debounce& debounce) {
  const Message m{.id = "m"};
  std::vector<Message> batch{m};
  consume_once(c, m, [] { return -1; });                                                // refused
  consume_once(c, m, [] { return broken; });                                            // refused
  consume_once(c, m, [] { return std::make_error_code(std::errc{}); });                 // refused
  consume_once(c, m, [] { return std::optional<int>{}; });                              // refused
  consume_once(c, m, [] { return &numbers; });                                          // refused
  consume_once(c, m, [] { return 0.0; });                                               // refused
  consume_once(c, m, [] { return [] {}; });                                             // refused
  consume_once(c, m, [] { return work; });                                              // refused
  consume_once(c, m, [](Work&) { return later(); });                                    // refused
  consume_once(c, m, coroutine);                                                        // refused
  consume_batch(c, batch, [](const Message&) { return 1; });                            // refused
  consume_batch(c, batch, [](const Message&, Work&) { return later(); });               // refused
  debounce.run("k", [] { return std::make_error_code(std::errc{}); });                  // refused
  debounce.run("k", [] { return 1; });                                                  // refused
  debounce.run("k", [] { return later(); });                                            // refused
  debounce.run("k", coroutine);                                                         // refused
  once(c, "k", later);                                                                  // refused
  once(c, "k", [] { return later().share(); });                                         // refused
  once(c, "k", coroutine);                                                              // refused
  once(c, "k", counted);                                                                // refused
  once(c, "k", [] { return [] { return 1; }; });                                        // refused
  once(c, "k", [] { return std::function<int()>{work}; });                              // refused
  once(c, "k", [] { return std::function<int(int)>{}; });                               // refused
  once(c, "k", [] { return std::optional{later()}; });                                  // refused
  once(c, "k", [] { return Result<std::future<int>>{later()}; });                       // refused
  once(c, "k", [] { return std::packaged_task<int()>{work}; });                         // refused
  once(c, "k", [] { return std::make_unique<std::future<int>>(later()); });             // refused
  once(c, "k", [] { return std::vector<std::future<int>>(1); });                        // refused
  once(c, "k", [] { return std::variant<int, std::future<int>>{}; });                   // refused
  consume_once(c, m, [] { return Result<std::tuple<std::future<int>>>{Error{}}; });     // refused
  consume_once(c, m, [] { return Result<Verdict>{Verdict::retry_later}; });             // refused
  consume_once(c, m, [] { return Result<std::error_code>{std::error_code{}}; });        // refused
  consume_once(c, m, [] { return Result<std::optional<int>>{std::optional<int>{}}; });  // refused
  debounce.run("k", [] { return Result<Code>{broken}; });                               // refused
  auto copy = steps;                                                                    // refused
  static_cast<void>(steps.run("s", later));                                             // refused
  static_cast<void>(steps.run("s", coroutine));                                         // refused
}

void accepted(Claims& c, Steps& steps, Debounce& debounce) {
  const Message m{.id = "m"};
  consume_once(c, m, [] {});
  consume_once(c, m, [] { return true; });
  consume_once(c, m, [](Work&) -> Status { return Done{}; });
  consume_once(c, m, []() -> Result<int> { return 1; });
  consume_once(c, m, [] { return Rejected{"no"}; });
  consume_once(c, m, []() -> std::optional<Rejected> { return {}; });
  debounce.run("k", [] {});
  debounce.run("k", [] { return false; });
  debounce.run("k", []() -> Status { return Done{}; });
  debounce.run("k", []() -> Result<std::string> { return std::string{"done"}; });
  once(c, "k", [] { return later().get(); });
  once(c, "k", [] { return std::string{"text"}; });
  once(c, "k", [](Work&) -> Status { return Done{}; });
  static_cast<void>(steps.run("s", work));
}

}  // namespace

void use_returns(Claims& c, Steps& steps, Debounce& debounce) {
  refused(c, steps, debounce);
  accepted(c, steps, debounce);
}
