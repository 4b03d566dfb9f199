// Chapter 1: payment messages from a broker that delivers at least once, and four consumers that
// make each payment exactly once.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "semel/claims.hpp"
#include "tools/semel/demo/demo.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {
namespace {

constexpr std::uint32_t message_count = 400'000;
constexpr std::uint32_t consumer_count = 4;
constexpr unsigned repeat_percent = 30;
constexpr std::uint32_t redelivery_distance = 5'000;  ///< a repeat comes at most so much later
constexpr std::uint32_t failing_one_in = 100;         ///< payments whose first attempt fails
constexpr std::uint32_t attempts_max = 5;             ///< set, so that attempts are remembered
constexpr Millis chapter_max{8'000};  ///< a wrong engine must end the demo, not hang it

struct Stream {
  std::vector<std::uint32_t> messages;  ///< payment number of each message, in delivery order
  std::vector<std::uint32_t> cents;     ///< by payment number
  std::vector<bool> fails_first;        ///< by payment number
};

Stream make_stream(std::uint64_t seed) {
  std::mt19937_64 random{seed};
  Stream stream;
  stream.messages.reserve(message_count);
  while (stream.messages.size() < message_count) {
    const bool repeat = !stream.messages.empty() && random() % 100 < repeat_percent;
    if (repeat) {
      const std::uint64_t distance =
          1 + random() % std::min<std::uint64_t>(redelivery_distance, stream.messages.size());
      stream.messages.push_back(stream.messages[stream.messages.size() - distance]);
    } else {
      stream.messages.push_back(static_cast<std::uint32_t>(stream.cents.size()));
      stream.cents.push_back(static_cast<std::uint32_t>(100 + random() % 100'000));
      stream.fails_first.push_back(random() % failing_one_in == 0);
    }
  }
  return stream;
}

std::string receipt_of(std::uint32_t payment) {
  return fmt::format("receipt R-{:08}", payment);
}

/// One consumer's share of the stream and its own books: nothing here is shared between threads.
class Consumer {
 public:
  Consumer(const Stream& stream, Claims claims, std::uint32_t index)
      : stream_(stream), claims_(std::move(claims)) {
    // Neighbours go to different consumers, so a repeat often meets its original at work.
    for (std::size_t i = index; i < stream.messages.size(); i += consumer_count) {
      queue_.push_back(stream.messages[i]);
    }
  }

  /// Runs until all messages are acknowledged, or until `deadline`: the rest is never paid, and the
  /// books show it.
  void run(const Clock& clock, Timestamp deadline) {
    while (!queue_.empty() && clock.now() < deadline) {
      const std::uint32_t payment = queue_.front();
      queue_.pop_front();
      if (consume(payment)) continue;
      queue_.push_back(payment);  // what a broker does with a message that was not acknowledged
      if (queue_.size() < consumer_count) std::this_thread::yield();
    }
  }

  std::vector<std::uint32_t> paid;  ///< payments made by this consumer: the effect
  std::uint64_t claims_asked = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t busy_elsewhere = 0;
  std::uint64_t failed = 0;
  std::uint64_t surprises = 0;  ///< answers that have no place in this story

 private:
  /// True: acknowledged. False: deliver again later.
  bool consume(std::uint32_t payment) {
    const std::string id = fmt::format("pay-{:08}", payment);
    ++claims_asked;
    const ClaimOutcome claim = claims_.claim({.key = id});
    switch (claim.answer) {
      case ClaimAnswer::granted:
        return make_payment(payment, id, claim);
      case ClaimAnswer::replay:
        ++duplicates;
        if (claim.result != receipt_of(payment)) ++surprises;
        return true;
      case ClaimAnswer::in_flight:
        ++busy_elsewhere;
        return false;
      default:
        ++surprises;
        return true;
    }
  }

  bool make_payment(std::uint32_t payment, const std::string& id, const ClaimOutcome& claim) {
    OwnerCall call;
    call.key = id;
    call.epoch = claim.epoch;
    if (claim.attempt == 1 && stream_.fails_first[payment]) {
      ++failed;
      call.payload = "bank did not answer";
      if (claims_.fail(call).answer != OwnerAnswer::ok) ++surprises;
      return false;
    }
    paid.push_back(payment);
    const std::string receipt = receipt_of(payment);
    call.payload = receipt;
    if (claims_.complete(call).answer != OwnerAnswer::ok) ++surprises;
    return true;
  }

  const Stream& stream_;
  Claims claims_;
  std::deque<std::uint32_t> queue_;
};

struct Books {
  std::uint64_t claims_asked = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t busy_elsewhere = 0;
  std::uint64_t failed = 0;
  std::uint64_t surprises = 0;
  std::uint64_t effects = 0;
  std::uint64_t cents = 0;
  std::uint64_t paid_twice = 0;
  std::uint64_t never_paid = 0;
};

Books add_up(const Stream& stream, const std::vector<Consumer>& consumers) {
  Books books;
  std::vector<unsigned> times_paid(stream.cents.size());
  for (const Consumer& consumer : consumers) {
    books.claims_asked += consumer.claims_asked;
    books.duplicates += consumer.duplicates;
    books.busy_elsewhere += consumer.busy_elsewhere;
    books.failed += consumer.failed;
    books.surprises += consumer.surprises;
    books.effects += consumer.paid.size();
    for (const std::uint32_t payment : consumer.paid) {
      ++times_paid[payment];
      books.cents += stream.cents[payment];
    }
  }
  for (const unsigned times : times_paid) {
    if (times == 0) ++books.never_paid;
    if (times > 1) ++books.paid_twice;
  }
  return books;
}

std::string money(std::uint64_t cents) {
  return fmt::format("{}.{:02}", format_count(cents / 100), cents % 100);
}

void show_books(Story& story, const Stream& stream, const Books& books, const Stats& stats) {
  const std::uint64_t distinct = stream.cents.size();
  const std::uint64_t repeats = stream.messages.size() - distinct;
  std::uint64_t owed_cents = 0;
  for (const std::uint32_t cents : stream.cents) owed_cents += cents;
  const auto failing = static_cast<std::uint64_t>(
      std::count(stream.fails_first.begin(), stream.fails_first.end(), true));
  story.print_line(
      fmt::format("{} times a repeat met its original still at work and came back later",
                  format_count(books.busy_elsewhere)));
  story.expect(books.effects == distinct && books.never_paid == 0 && books.paid_twice == 0,
               fmt::format("{} payments made: {} missing, {} made twice",
                           format_count(books.effects), books.never_paid, books.paid_twice));
  story.expect(books.duplicates == repeats,
               fmt::format("{} repeats answered with the receipt of the first run",
                           format_count(books.duplicates)));
  story.expect(books.failed == failing,
               fmt::format("{} payments failed at first, and were made by the second attempt",
                           format_count(books.failed)));
  story.expect(books.cents == owed_cents,
               fmt::format("{} paid out, {} owed", money(books.cents), money(owed_cents)));
  story.expect(books.surprises == 0, fmt::format("{} answers out of place", books.surprises));
  story.expect(stats.claims_granted == distinct + failing && stats.records == distinct,
               fmt::format("the engine's own count: {} claims granted, {} records",
                           format_count(stats.claims_granted), format_count(stats.records)));
}

}  // namespace

ConsumeResult show_consume_once(Story& story, Engine& engine, std::uint64_t seed) {
  const Stream stream = make_stream(seed);
  const std::uint64_t distinct = stream.cents.size();
  story.chapter("Consume once");
  story.print_line(
      fmt::format("{} messages from a broker that delivers at least once: {} payments, {} "
                  "repeats; {} consumers",
                  format_count(stream.messages.size()), format_count(distinct),
                  format_count(stream.messages.size() - distinct), consumer_count));
  Policy policy;
  policy.attempts_max = attempts_max;
  Result<Claims> claims = engine.claims("payments", policy);
  if (!claims) {
    story.expect(false, claims.error().message());
    return {0, 1};
  }
  std::vector<Consumer> consumers;
  consumers.reserve(consumer_count);
  for (std::uint32_t i = 0; i < consumer_count; ++i) consumers.emplace_back(stream, *claims, i);

  const SystemClock clock;
  const Timestamp start = clock.now();
  std::vector<std::thread> threads;
  for (Consumer& consumer : consumers) {
    threads.emplace_back([&] { consumer.run(clock, start + chapter_max); });
  }
  for (std::thread& thread : threads) thread.join();
  const Millis elapsed = std::max(clock.now() - start, Millis{1});

  const Books books = add_up(stream, consumers);
  const double seconds = static_cast<double>(elapsed.count()) / 1000;
  story.print_line(fmt::format("claim, pay, complete: {:.2f} s, {} messages/s", seconds,
                               format_rate(static_cast<double>(stream.messages.size()) / seconds)));
  show_books(story, stream, books, engine.stats());
  return {books.claims_asked, seconds};
}

}  // namespace semel::tool
