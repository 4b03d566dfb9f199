// A consumer of RabbitMQ that books each message once. The broker delivers at least once: messages
// not acknowledged when a process died are redelivered, and a publisher sends again what was not
// confirmed. The claim says whether a message was handled.
//
//   example_mq_consumer DIRECTORY PORT QUEUE [--naive]   consumes until SIGTERM
//   example_mq_consumer DIRECTORY                        prints the bookings: ID OWNER CENTS
//
// A message's id is its property message_id, its body "CENTS [FAILS]": the bank refuses the first
// FAILS attempts. The broker's operator declares the queue, with a dead-letter queue. One
// process at a time uses a directory; to run several, give each a queue (and a share of the ids) of
// its own. tests/broker/run.py kills this program again and again and counts the bookings.
#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <semel/patterns/consume.hpp>
#include <semel/patterns/keys.hpp>
#include <semel/rocksdb.hpp>
#include <semel/semel.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

namespace {

constexpr int consumers = 2;  // threads, each with a connection of its own
constexpr int prefetch = 16;  // deliveries that the broker lets us hold
constexpr int acks_max = 8;   // so many are said at once
constexpr int wait_ms = 200;  // for a message, then look whether to end
volatile std::sig_atomic_t ends = 0;

/// What cannot go on ends the process: nothing that was not acknowledged is lost by that.
[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "mq_consumer: %s\n", why.c_str());
  std::_Exit(1);
}

std::string text(amqp_bytes_t bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

// --- the work -----------------------------------------------------------------------------------

class Bank {
 public:
  Bank(semel::Storage& storage, semel::Engine& engine)
      : storage_(storage), claims_(engine.claims("bookings", semel::policies::message).value()) {}

  semel::Consumed handle(const std::string& id, const std::string& body) {
    const semel::Message message{.id = id, .fingerprint = semel::fingerprint_of(body)};
    std::istringstream words{body};
    unsigned cents = 0;
    unsigned fails = 0;
    if (!(words >> cents)) {  // no other try will help
      return consume_once(claims_, message, [] { return semel::Rejected{"not an amount"}; });
    }
    words >> fails;
    return consume_once(claims_, message, [&](semel::Work& work) -> semel::Status {
      if (work.attempt() <= fails) {
        return semel::Error{semel::ErrorCode::refused, "the bank is closed"};
      }
      return book(work, cents);
    });
  }

  /// As it is often done: the effect, then the ack. Whatever comes twice is booked twice.
  void handle_naively(const std::string& id, const std::string& body, std::uint64_t tag) {
    rocksdb::WriteOptions options;
    options.sync = true;
    const std::string row = id + " " + std::to_string(getpid()) + "." + std::to_string(tag);
    const auto put = semel::database(storage_).Put(options, rows(), row, body);
    if (!put.ok()) die(put.ToString());
  }

 private:
  /// The booking and the claim's "done" in one write, so that no kill parts them. A booking that
  /// is written first, by a plain write to a file, say, is there twice if the process is killed
  /// before the claim is done: the next delivery finds the claim open and books again.
  semel::Status book(semel::Work& work, unsigned cents) {
    rocksdb::WriteBatch effects;
    const std::string row = std::string{work.key()} + " " + std::to_string(work.epoch());
    const auto put = effects.Put(rows(), row, std::to_string(cents));
    if (!put.ok()) return semel::Error{semel::ErrorCode::storage_failed, put.ToString()};
    const auto done = semel::complete_joined(storage_, claims_,
                                             {.key = work.key(), .epoch = work.epoch()}, effects);
    // Not known whether it is there: only the next open of the storage can tell.
    if (!done && done.error().code != semel::ErrorCode::refused) die(done.error().message());
    if (!done) return done.error();
    if (!done->written) return semel::Error{semel::ErrorCode::not_owner, "another has taken over"};
    return semel::Done{};  // consume_once completes again, which is the same answer once more
  }

  rocksdb::ColumnFamilyHandle* rows() { return semel::family(storage_, "bookings"); }

  semel::Storage& storage_;
  semel::Claims claims_;
};

// --- the broker ---------------------------------------------------------------------------------

class Broker {
 public:
  Broker(int port, const char* queue) {
    amqp_socket_t* socket = amqp_tcp_socket_new(connection_);
    if (socket == nullptr || amqp_socket_open(socket, "127.0.0.1", port) != AMQP_STATUS_OK) {
      die("no broker at port " + std::to_string(port));
    }
    check(amqp_login(connection_, "/", 0, AMQP_DEFAULT_FRAME_SIZE, 60, AMQP_SASL_METHOD_PLAIN,
                     "guest", "guest"));
    amqp_channel_open(connection_, 1);
    amqp_basic_qos(connection_, 1, 0, prefetch, 0);
    amqp_basic_consume(connection_, 1, amqp_cstring_bytes(queue), amqp_empty_bytes, 0, 0, 0,
                       amqp_empty_table);
    check(amqp_get_rpc_reply(connection_));
  }
  Broker(const Broker&) = delete;
  /// What was not acknowledged goes back to the queue.
  ~Broker() {
    acknowledge();
    amqp_connection_close(connection_, AMQP_REPLY_SUCCESS);
    amqp_destroy_connection(connection_);
  }

  /// False: none came within the time. Acks wait only while there is something to do.
  bool next(amqp_envelope_t& envelope) {
    amqp_maybe_release_buffers(connection_);
    timeval wait{0, gathered_ == 0 ? wait_ms * 1'000 : 0};
    const amqp_rpc_reply_t reply = amqp_consume_message(connection_, &envelope, &wait, 0);
    if (reply.reply_type == AMQP_RESPONSE_NORMAL) return true;
    if (reply.library_error != AMQP_STATUS_TIMEOUT) check(reply);
    acknowledge();
    return false;
  }

  void settle(std::uint64_t tag, semel::Verdict verdict) {
    switch (verdict) {
      case semel::Verdict::ack:
      case semel::Verdict::ack_duplicate:
        newest_ = tag;
        if (++gathered_ == acks_max) acknowledge();
        return;
      case semel::Verdict::unanswered:   // never of a call
      case semel::Verdict::retry_later:  // at once; for a pause, a queue with a time to live
        return check(amqp_basic_nack(connection_, 1, tag, /*multiple*/ 0, /*requeue*/ 1));
      case semel::Verdict::dead_letter:
        return check(amqp_basic_reject(connection_, 1, tag, /*requeue*/ 0));
    }
  }

 private:
  /// All up to the newest: what was refused between them is settled already.
  void acknowledge() {
    if (gathered_ != 0) check(amqp_basic_ack(connection_, 1, newest_, /*multiple*/ 1));
    gathered_ = 0;
  }
  static void check(int status) {
    if (status != AMQP_STATUS_OK) die(amqp_error_string2(status));
  }
  static void check(const amqp_rpc_reply_t& reply) {
    if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION) check(reply.library_error);
    if (reply.reply_type != AMQP_RESPONSE_NORMAL) die("the broker has closed the connection");
  }

  amqp_connection_state_t connection_ = amqp_new_connection();
  std::uint64_t newest_ = 0;
  int gathered_ = 0;
};

void consume(Bank& bank, int port, const char* queue, bool naive) {
  static constexpr const char* verdicts[] = {"none", "ack", "retry", "duplicate", "dead"};
  Broker broker{port, queue};
  std::printf("ready\n");
  while (ends == 0) {
    amqp_envelope_t envelope;
    if (!broker.next(envelope)) continue;
    const std::string id = text(envelope.message.properties.message_id);
    const std::string body = text(envelope.message.body);
    semel::Consumed consumed;
    if (naive) {
      bank.handle_naively(id, body, envelope.delivery_tag);
      consumed.verdict = semel::Verdict::ack;
    } else {
      consumed = bank.handle(id, body);
    }
    std::printf("%s %s %s %u\n", verdicts[static_cast<int>(consumed.verdict)], id.c_str(),
                envelope.redelivered != 0 ? "redelivered" : "first", consumed.attempts);
    broker.settle(envelope.delivery_tag, consumed.verdict);
    amqp_destroy_envelope(&envelope);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2 && count != 4 && count != 5) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  std::signal(SIGTERM, [](int) { ends = 1; });
  const semel::SystemClock clock;
  auto storage =
      semel::open_storage({.directory = arguments[1], .log_bytes = std::size_t{16} << 20}, clock,
                          {{"bookings", rocksdb::ColumnFamilyOptions{}}});
  if (!storage) die(storage.error().message());
  if (count == 2) {
    const std::unique_ptr<rocksdb::Iterator> row{
        semel::database(**storage).NewIterator({}, semel::family(**storage, "bookings"))};
    for (row->SeekToFirst(); row->Valid(); row->Next()) {
      std::printf("%s %s\n", row->key().ToString().c_str(), row->value().ToString().c_str());
    }
    return row->status().ok() ? 0 : 1;
  }
  auto engine = semel::Engine::open({.clock = &clock,
                                     .journal = storage->get(),
                                     .durability = semel::Durability::synced,
                                     .background = semel::Millis{100},
                                     .first_version = (*storage)->first_version()});
  if (!engine) die(engine.error().message());
  if (auto report = (*storage)->recover(**engine); !report) die(report.error().message());
  Bank bank{**storage, **engine};
  std::thread threads[consumers];
  for (std::thread& thread : threads) {
    thread = std::thread{[&] { consume(bank, std::atoi(arguments[2]), arguments[3], count == 5); }};
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}
