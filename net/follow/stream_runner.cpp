#include "net/follow/stream_runner.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"
#include "net/commands/command.hpp"
#include "net/commands/transaction.hpp"
#include "net/resp/reply_reader.hpp"
#include "net/resp/text.hpp"
#include "net/scripts/script_host.hpp"
#include "net/time/held_clock.hpp"
#include "semel/local_redis.hpp"

namespace semel::net {

namespace {

std::string_view line_of_error(std::string_view reply) noexcept {
  return reply.starts_with('-') ? reply.substr(1, reply.find('\r') - 1) : std::string_view{};
}

/// The node, and not the command, was the reason.
bool is_of_node(std::string_view error) noexcept {
  constexpr std::array<std::string_view, 5> words{"OOM ", "BUSY ", "MISCONF ", "TRYAGAIN ",
                                                  "TIMEOUT "};
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return error.starts_with(word); });
}

/// It was run all the same.
bool was_applied(std::string_view error) noexcept {
  return error.starts_with("TRYAGAIN ");
}

}  // namespace

StreamRunner::StreamRunner(Node& node,
                           std::function<void(std::string_view, std::string_view)> refused)
    : node_(node), refused_(std::move(refused)) {}

StreamRunner::~StreamRunner() {
  if (client_.handle != nullptr) end_transaction(node_.services(), client_);
}

/// On the thread that runs the stream, which is not the one that makes this.
void StreamRunner::begin_client() {
  client_.handle =
      std::make_shared<ClientHandle>(ClientHandle::Origin{.address = "master"}, nullptr);
  client_.user = node_.acl.open_internal();
  client_.lane = &node_.stats.lane(lane_.lane);
  client_.scripts = std::make_shared<ScriptHost>(node_.scripts);
  client_.is_master = true;
}

void StreamRunner::begin(std::int64_t offset) {
  applied_ = offset;
  client_.db = 0;
  go_on();
}

void StreamRunner::go_on() {
  if (client_.handle != nullptr) end_transaction(node_.services(), client_);
  in_transaction_ = 0;
  parser_.reset();
  error_.clear();
}

StreamRunner::Step StreamRunner::run(std::string_view input) {
  using Parsed = RespParser::Step;
  consumed_ = 0;
  // A stream has no inline commands, but for an empty line where its sender wants to be heard.
  if (!input.empty() && input[0] != '*' && input[0] != '\r' && input[0] != '\n') {
    error_ = "the stream has something else than a command";
    return Step::bad;
  }
  if (node_.busy_scripts.any()) return Step::waits;
  RequestLimits limits;
  limits.arguments_max = std::size_t{1} << 27;
  limits.bulk_bytes_max = request_bytes_max;
  limits.kept_bytes_max = limits::value_bytes_max;
  const Parsed parsed = parser_.parse(input, limits);
  if (parsed == Parsed::incomplete) {
    if (input.size() < request_bytes_max) return Step::incomplete;
    error_ = "a command of the stream is too long";
    return Step::bad;
  }
  if (parsed == Parsed::bad) {
    error_ = parser_.error();
    return Step::bad;
  }
  consumed_ = parser_.consumed();
  Step step = Step::ran;
  if (parsed == Parsed::too_long) {
    refused_("", parser_.error());
  } else if (parsed == Parsed::command && !parser_.arguments().empty()) {
    step = run_request(parser_.arguments());
  }
  if (step == Step::full) {
    consumed_ = 0;
    return step;
  }
  in_transaction_ += static_cast<std::int64_t>(consumed_);
  if (client_.transaction == nullptr && parsed != Parsed::passing) {
    applied_ += std::exchange(in_transaction_, 0);
  }
  return step;
}

StreamRunner::Step StreamRunner::run_request(std::span<const std::string_view> words) {
  if (is_word(words[0], "replconf")) {
    return words.size() > 1 && is_word(words[1], "getack") ? Step::asks_for_ack : Step::ran;
  }
  const bool in_transaction = client_.transaction != nullptr;
  call(ends_.rewrite(words, node_.engine().clock().unix_ms()));
  return judge(words[0], in_transaction);
}

void StreamRunner::call(std::span<const std::string_view> words) {
  if (client_.handle == nullptr) begin_client();
  reply_.clear();
  client_.begin_round(reply_);
  static_cast<void>(client_.lane->lap(node_.ticks()));
  {
    const HeldClock::Hold nothing_ends;
    RespWriter reply{reply_, client_.dialect};
    Call called{node_.services(), node_.engine(), client_, words, reply};
    dispatch(called);
  }
  SEMEL_ASSERT(!client_.has_yielded);
  if (std::exchange(client_.waits, false)) {  // for a time, or the disk
    node_.deadlines.cancel(std::exchange(client_.deadline, 0));
    static_cast<void>(client_.handle->end_wait("+OK\r\n"));
  }
  client_.closes = false;
  client_.end_round();
  if (client_.held != nullptr) node_.pubsub.release(client_);
  node_.tracking.send(false);
}

StreamRunner::Step StreamRunner::judge(std::string_view name, bool in_transaction) {
  if (reply_.starts_with('-')) {
    const std::string_view error = line_of_error(reply_);
    if (is_word(name, "select")) {  // the next commands would change another database
      error_ = "the master uses a database that is beyond the setting databases";
      return Step::lost;
    }
    if (is_of_node(error) && !was_applied(error)) {
      error_ = error;
      // The queued commands are gone as well.
      return in_transaction ? Step::lost : Step::full;
    }
    refused_(name, error);
    return Step::ran;
  }
  if (!in_transaction || !is_word(name, "exec")) return Step::ran;
  std::string_view rest = reply_;
  const auto replies = take_reply(rest);
  if (!replies) return Step::ran;
  for (const Reply& each : replies->items) {
    if (each.type != Reply::Type::error) continue;
    if (is_of_node(each.text) && !was_applied(each.text)) {
      error_ = each.text;
      return Step::lost;
    }
    refused_(name, each.text);
  }
  return Step::ran;
}

void StreamRunner::rest() {
  node_.events.drain();
  node_.tracking.send(true);
  parser_.rest();
  constexpr std::size_t kept_bytes = std::size_t{64} << 10;
  if (reply_.capacity() > kept_bytes) reply_ = {};
}

std::string StreamRunner::run_words(std::span<const std::string_view> words) {
  call(words);
  return std::string{line_of_error(reply_)};
}

}  // namespace semel::net
