#include "gateway/store/node_caller.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "base/random.hpp"
#include "gateway/store/node_words.hpp"

namespace semel::gateway {
namespace {

constexpr Millis retry_pause_min{10};
constexpr Millis retry_pause_max{200};

/// Spreads the retries of requests that were refused together.
Millis spread(Millis pause) noexcept {
  const auto half = static_cast<std::uint64_t>(pause.count() / 2);
  return Millis{static_cast<std::int64_t>(half + base::random_number() % (half + 1))};
}

}  // namespace

asio::awaitable<NodeCall> call_node(asio::io_context& io, const std::shared_ptr<NodeLink>& link,
                                    Counters& counters, const NodeCommand& command, Millis within) {
  NodeCall call;
  const base::Stopwatch since;
  Millis pause = retry_pause_min;
  asio::steady_timer timer{io};
  for (;;) {
    const Millis left = std::max(within - since.passed(), Millis{1});
    NodeAnswer answer = co_await link->ask(command, left);
    if (answer.how == NodeAnswer::How::replied) {
      const Advice advice = advice_of(answer.reply);
      if (advice == Advice::final_answer) {
        call.is_answered = true;
        call.reply = std::move(answer.reply);
        call.sent = answer.sent;
        co_return call;
      }
      call.may_be_done = call.may_be_done || advice == Advice::unknown;
      call.why = std::move(answer.reply.text);
    } else {
      call.may_be_done = call.may_be_done || answer.how == NodeAnswer::How::unknown;
      call.why = std::move(answer.why);
    }
    if (since.passed() + pause >= within) break;
    timer.expires_after(spread(pause));
    co_await timer.async_wait(no_throw);
    pause = std::min(pause * 2, retry_pause_max);
    counters.store_repeated.add();
  }
  counters.store_unanswered.add();
  co_return call;
}

}  // namespace semel::gateway
