#include "net/streams/stream_wait.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "engine/object_api/object_calls.hpp"
#include "engine/object_api/object_waits.hpp"
#include "net/cluster/group.hpp"
#include "net/events/keyspace_events.hpp"
#include "net/resp/client_memory.hpp"
#include "net/session/blocking.hpp"
#include "net/session/watches.hpp"
#include "net/streams/stream_reply.hpp"

namespace semel::net {
namespace {

using engine::ObjectEdit;
using engine::ObjectReader;
using engine::StreamId;
using engine::StreamReader;

/// Of one key that is waited for.
struct AwaitedStream {
  std::string key;
  StreamId behind{};                ///< of XREAD
  std::uint64_t entries_added = 0;  ///< when it was looked at last
};

/// A wait: its command, and its client.
struct StreamWait {
  Services& services;
  std::shared_ptr<ClientHandle> handle;
  std::uint64_t wait = 0;
  Resp dialect = Resp::two;
  std::uint8_t db = 0;
  std::uint64_t count = 0;
  bool has_group = false;
  bool no_ack = false;
  std::string group{};
  std::string consumer{};
};

/// In a group the replica's own clock stands still between entries.
Timestamp now_of(const Services& services) {
  const Timestamp now = services.engine.now();
  return services.group == nullptr ? now : std::max(now, services.group->now());
}

std::string error_text_of(ErrorCode code) {
  return std::string{resp_prefix_of(code)}.append(" ").append(sentence_of(code));
}

class StreamAttempt final : public engine::Attempt {
 public:
  StreamAttempt(StreamWait wait, std::vector<AwaitedStream> streams)
      : wait_(std::move(wait)), streams_(std::move(streams)) {}

  [[nodiscard]] engine::WaitKind kind() const noexcept override { return engine::WaitKind::stream; }
  [[nodiscard]] engine::Verdict try_for(std::size_t key, engine::Seen& seen) override {
    seen.now = now_of(wait_.services);
    reply_.clear();
    error_ = wait_.has_group ? try_group(streams_[key]) : try_plain(streams_[key]);
    if (error_ == ErrorCode::section_held) {
      constexpr Millis try_again{10};  // a long script has it, and this thread serves others
      seen.held_until = seen.now + try_again;
      return engine::Verdict::passes;
    }
    if (error_ != ErrorCode::ok) return engine::Verdict::answered;
    if (reply_.empty() && wait_.has_group) seen.held_until = end_of(streams_[key].key);
    return reply_.empty() ? engine::Verdict::passes : engine::Verdict::answered;
  }
  void give_up(ErrorCode why, Timestamp, const engine::Seen&) noexcept override { error_ = why; }
  void give_back() override {}
  [[nodiscard]] std::size_t bytes() const noexcept override {
    std::size_t bytes = sizeof *this + wait_.group.size() + wait_.consumer.size();
    for (const AwaitedStream& stream : streams_) bytes += sizeof stream + stream.key.size();
    return bytes;
  }

  void answer() {
    RespWriter reply{reply_, wait_.dialect};
    if (error_ == ErrorCode::timed_out) {
      reply_.clear();
      reply.null_array();
    } else if (error_ != ErrorCode::ok) {
      reply_.clear();
      reply.error(error_text_of(error_));
    }
    wait_.handle->reply(wait_.wait, std::move(reply_));
  }

 private:
  /// The reply as far as it may be; one that would be larger is an error.
  [[nodiscard]] std::size_t room() const { return wait_.services.client_memory->reply_bytes_max(); }
  void end_reply(RespWriter& reply) {
    if (!reply.is_cut()) return;
    reply.take_back(0);
    reply.set_bound(~std::size_t{0});
    reply.error("ERR the reply is larger than " + std::to_string(room()) +
                " bytes, half of maxmemory-clients");
  }
  /// The list or map of one stream.
  void begin_reply(RespWriter& reply, Bytes key) const {
    if (wait_.dialect == Resp::two) {
      reply.array(1);
      reply.array(2);
    } else {
      reply.map(1);
    }
    reply.bulk(key);
  }

  /// When the key ends by itself, which ends the wait of a group.
  [[nodiscard]] Timestamp end_of(Bytes key) const {
    const auto ttl = wait_.services.engine.store(wait_.db).ttl(key);
    return ttl.ok() && ttl->has_ttl ? ttl->due : no_end;
  }
  /// An error, or ok, with or without a reply.
  ErrorCode try_plain(AwaitedStream& awaited) {
    std::uint64_t added = awaited.entries_added;
    // Not read_object(): in a group that would ask the log, and this may be the thread that applies
    // it.
    const auto done = engine::change_object(
        wait_.services.engine, {wait_.db, awaited.key}, Kind::stream, [&](ObjectEdit& object) {
          reply_.clear();
          const StreamReader stream{object};
          const bool has_grown = stream.head().entries_added != awaited.entries_added;
          added = stream.head().entries_added;
          const engine::Ranks ranks = stream.behind(awaited.behind, wait_.count);
          // An entry that was added and is gone already is answered with none.
          if (ranks.empty() && (!has_grown || stream.head().last <= awaited.behind)) {
            return ErrorCode::ok;
          }
          RespWriter reply{reply_, wait_.dialect};
          reply.set_bound(room());
          begin_reply(reply, awaited.key);
          write_entries(reply, object, ranks, wait_.count);
          end_reply(reply);
          return ErrorCode::ok;
        });
    awaited.entries_added = added;
    if (done.ok() || done.error().code == ErrorCode::wrong_type) return ErrorCode::ok;
    return done.error().code;
  }

  ErrorCode try_group(AwaitedStream& awaited) {
    const engine::ConsumerName to{wait_.group, wait_.consumer};
    const std::int64_t now = engine::unix_ms_of_call(wait_.services.engine);
    bool is_new = false;
    std::uint64_t added = awaited.entries_added;
    const auto done = engine::change_object(
        wait_.services.engine, {wait_.db, awaited.key}, Kind::stream, [&](ObjectEdit& object) {
          is_new = false;
          reply_.clear();
          RespWriter reply{reply_, wait_.dialect};
          if (object.empty()) return reply.error(gone_text), ErrorCode::ok;
          const auto group = engine::find_group(object, {to.group});
          if (!group) return reply.error(no_group_text), ErrorCode::ok;
          const StreamReader stream{object};
          const bool has_grown = stream.head().entries_added != awaited.entries_added;
          added = stream.head().entries_added;
          const engine::Ranks fresh = stream.behind(group->last, wait_.count);
          if (fresh.empty() && (!has_grown || stream.head().last <= group->last)) {
            return ErrorCode::ok;
          }
          reply.set_bound(room());
          begin_reply(reply, awaited.key);
          is_new = deliver(
              reply, object, stream,
              {.to = to, .group = *group, .entries = fresh, .no_ack = wait_.no_ack, .now = now});
          end_reply(reply);
          return ErrorCode::ok;
        });
    awaited.entries_added = added;
    if (!done.ok()) {
      if (done.error().code != ErrorCode::wrong_type) return done.error().code;
      reply_.clear();
      RespWriter{reply_, wait_.dialect}.error(gone_text);
      return ErrorCode::ok;
    }
    if (is_new) {
      wait_.services.events.notify(nullptr, 't', "xgroup-createconsumer", wait_.db, awaited.key);
    }
    if (done->is_changed) wait_.services.watches.touched(wait_.db, awaited.key);
    return ErrorCode::ok;
  }

  static constexpr std::string_view gone_text = "UNBLOCKED the stream key no longer exists";
  static constexpr std::string_view no_group_text =
      "NOGROUP the consumer group this client was blocked on no longer exists";

  const StreamWait wait_;
  std::vector<AwaitedStream> streams_;
  std::string reply_;
  ErrorCode error_ = ErrorCode::ok;
};

class StreamReceiver final : public engine::Receiver {
 public:
  explicit StreamReceiver(StreamAttempt& attempt) noexcept : attempt_(attempt) {}
  void answered() override { attempt_.answer(); }

 private:
  StreamAttempt& attempt_;
};

/// Each key, as it is now.
std::vector<AwaitedStream> awaited_streams(Call& call, const ReadWords& words,
                                           const std::vector<StreamId>& behind) {
  std::vector<AwaitedStream> streams;
  for (std::size_t i = 0; i < words.keys.size(); ++i) {
    AwaitedStream stream{.key = std::string{words.keys[i]}, .behind = behind[i]};
    // An error will be found by the first try.
    static_cast<void>(engine::read_object(
        call.engine, {call.client.db, stream.key}, Kind::stream, [&](const ObjectReader& object) {
          stream.entries_added = StreamReader{object}.head().entries_added;
        }));
    streams.push_back(std::move(stream));
  }
  return streams;
}

}  // namespace

bool deliver(RespWriter& reply, ObjectEdit& object, const StreamReader& stream,
             const Delivery& delivery) {
  const engine::ConsumerName to = delivery.to;
  engine::GroupState group = delivery.group;
  const engine::Ranks ranks = delivery.entries;
  reply.array(ranks.count());
  // The elements of groups are behind the entries, whose ranks stay.
  for (std::size_t rank = ranks.from; rank < ranks.to && !reply.is_cut(); ++rank) {
    const engine::Element entry = object.at(rank);
    const StreamId id = engine::id_of(entry.key);
    write_entry(reply, entry);
    group = engine::read_on(stream, group, id);
    if (!delivery.no_ack) engine::give(object, to, id, delivery.now, 1);
  }
  engine::set_group(object, {to.group}, group);
  return engine::note_active(object, to, delivery.now);
}

void wait_for_entries(Call& call, const ReadWords& words, const std::vector<StreamId>& behind) {
  // So that a low id does not bring a whole stream, as in redis-server.
  constexpr std::uint64_t count_without_option = 1'000;
  std::vector<KeyRef> keys;
  std::vector<AwaitedStream> streams = awaited_streams(call, words, behind);
  std::string nothing;
  RespWriter{nothing, call.client.dialect}.null_array();
  StreamWait wait{.services = call.services,
                  .handle = call.client.handle,
                  .dialect = call.client.dialect,
                  .db = call.client.db,
                  .count = words.count == 0 ? count_without_option : words.count,
                  .has_group = words.has_group,
                  .no_ack = words.no_ack,
                  .group = std::string{words.group},
                  .consumer = std::string{words.consumer}};
  const Millis timeout{*words.block_ms};
  const Timestamp deadline =
      timeout == Millis{0} ? no_end : deadline_after(now_of(call.services), timeout);
  wait.wait = begin_blocking(call.client, call.row, call.args, std::move(nothing));
  const auto handle = wait.handle;
  const std::uint64_t number = wait.wait;
  for (const std::string_view key : words.keys) keys.push_back({call.client.db, key});
  auto made = std::make_unique<StreamAttempt>(std::move(wait), std::move(streams));
  std::unique_ptr<engine::Receiver> receiver = std::make_unique<StreamReceiver>(*made);
  std::unique_ptr<engine::Attempt> attempt = std::move(made);
  WaitTicket ticket = 0;
  const ErrorCode why = engine::begin_wait(call.engine, attempt, receiver, keys, deadline, ticket);
  if (why != ErrorCode::ok) {
    std::string bytes;
    RespWriter{bytes, call.client.dialect}.error(error_text_of(why));
    return handle->reply(number, std::move(bytes));
  }
  handle->if_abandoned(number, [&engine = call.engine, ticket] {
    static_cast<void>(engine::cancel_wait(engine, ticket));
  });
}

}  // namespace semel::net
