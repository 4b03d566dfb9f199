#include "net/dump/migration.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "net/commands/node_hooks.hpp"
#include "net/dump/dumped_record.hpp"
#include "net/events/keyspace_events.hpp"
#include "net/session/tracking.hpp"
#include "net/session/watches.hpp"
#include "semel/section.hpp"
#include "semel/store.hpp"

namespace semel::net {

namespace {

using Words = std::vector<std::string>;

std::string error_reply(const std::string& text) {
  return "-" + text + "\r\n";
}
std::string io_error(const std::string& step) {
  return error_reply("IOERR error or timeout " + step);
}
std::string target_error(const Reply& reply) {
  return error_reply("ERR Target instance replied with error: " + reply.text);
}

struct Taken {
  std::string key{};
  KeyDump dump{};
};

class Moving {
 public:
  Moving(Services& services, const Migration& migration)
      : services_(services), engine_(services.engine), migration_(migration) {}

  /// The reply.
  [[nodiscard]] std::string run() {
    auto link = services_.hooks.connect_peer(migration_.target);
    if (!link) return io_error("connecting to the client");
    link_ = *std::move(link);
    if (auto refused = log_in()) return *std::move(refused);
    bool replaces = migration_.replaces;
    std::vector<std::string> keys = migration_.keys;
    for (unsigned round = 0; !keys.empty(); ++round) {
      constexpr unsigned rounds_max = 32;
      if (round == rounds_max) {
        return error_reply("ERR a key was changed each time it had been sent: it stays here");
      }
      if (auto failed = move(keys, replaces)) return *std::move(failed);
      keys = std::exchange(changed_, {});
      replaces = true;  // the target has them from us
    }
    if (!error_.empty()) return error_;
    return has_sent_ ? "+OK\r\n" : "+NOKEY\r\n";
  }

 private:
  using Failure = std::optional<std::string>;

  /// Before any value: behind a refused SELECT it would go to another database.
  [[nodiscard]] Failure log_in() {
    std::vector<Words> requests;
    if (!migration_.login.empty()) requests.push_back(migration_.login);
    requests.push_back({"SELECT", std::to_string(migration_.target_db)});
    const auto replies = link_->ask(requests);
    if (!replies) return io_error(replies.error().detail + " to target instance");
    for (const Reply& reply : *replies) {
      if (reply.is_error()) return target_error(reply);
    }
    return std::nullopt;
  }

  /// In batches, so that not all values are in memory at once.
  [[nodiscard]] Failure move(const std::vector<std::string>& keys, bool replaces) {
    constexpr std::size_t batch_bytes = std::size_t{4} << 20;
    std::vector<Taken> batch;
    std::size_t bytes = 0;
    for (const std::string& key : keys) {
      auto dump = dump_key(engine_, {migration_.db, key});
      if (!dump.ok()) {
        const Error& why = dump.error();
        return error_reply("ERR " +
                           (why.code == ErrorCode::bad_option ? why.detail : why.message()));
      }
      if (!*dump) continue;
      bytes += (*dump)->payload.size();
      batch.push_back({key, **std::move(dump)});
      if (bytes < batch_bytes) continue;
      if (auto failed = send(std::exchange(batch, {}), replaces)) return failed;
      bytes = 0;
    }
    return send(batch, replaces);
  }

  [[nodiscard]] Failure send(const std::vector<Taken>& batch, bool replaces) {
    if (batch.empty()) return std::nullopt;
    std::vector<Words> requests;
    for (const Taken& each : batch) {
      const KeyDump& dump = each.dump;
      const Millis ttl = dump.due == no_end ? Millis{0} : std::max(dump.due - dump.now, Millis{1});
      Words& words = requests.emplace_back(
          Words{"RESTORE", each.key, std::to_string(ttl.count()), dump.payload});
      if (replaces) words.emplace_back("REPLACE");
    }
    const auto replies = link_->ask(requests);
    if (!replies) return io_error(replies.error().detail + " to target instance");
    has_sent_ = true;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Reply& reply = (*replies)[i];
      if (reply.is_error()) {
        if (error_.empty()) error_ = target_error(reply);
      } else if (!migration_.copies) {
        if (const Status removed = remove(batch[i]); !removed) {
          return error_reply("ERR the target has the key, which stays here: " +
                             removed.error().message());
        }
      }
    }
    return std::nullopt;
  }

  /// Removes the key if it still holds the value that was sent.
  [[nodiscard]] Status remove(const Taken& sent) {
    const KeyRef key{migration_.db, sent.key};
    SEMEL_TRY(section, engine_.section({&key, 1}));
    SEMEL_TRY(record, engine::read_whole(engine_, key));
    if (!record) return Done{};
    if (record->version != sent.dump.version) {
      changed_.push_back(sent.key);
      return Done{};
    }
    SEMEL_TRY(removed, engine_.store(key.db).del(sent.key));
    static_cast<void>(removed);  // it is there: this thread is in its section
    const Status done = section.commit();
    if (!done) return done;
    services_.watches.touched(key.db, sent.key);
    services_.events.notify(nullptr, 'g', "del", key.db, sent.key);
    return done;
  }

  Services& services_;
  Engine& engine_;
  const Migration& migration_;
  std::unique_ptr<PeerLink> link_;
  std::vector<std::string> changed_;
  std::string error_;  // the first reply that refused a key
  bool has_sent_ = false;
};

}  // namespace

std::string migrate(Services& services, const Migration& migration) {
  std::string reply = Moving{services, migration}.run();
  services.tracking.send(true);
  return reply;
}

}  // namespace semel::net
