#include "net/cluster/awaited_stream.hpp"

#include <charconv>
#include <utility>

#include "net/resp/text.hpp"

namespace semel::net {
namespace {

/// "ms-seq" or "ms", as the log has accepted it. Another text is 0-0: what it means is answered by
/// the log.
engine::StreamId accepted_id(std::string_view text) noexcept {
  engine::StreamId id{};
  const char* const end = text.data() + text.size();
  const auto ms = std::from_chars(text.data(), end, id.ms);
  if (ms.ptr != end && *ms.ptr == '-') static_cast<void>(std::from_chars(ms.ptr + 1, end, id.seq));
  return id;
}

}  // namespace

Timestamp AwaitedStream::deadline(Timestamp now) const noexcept {
  return words_.timeout == Millis{0} ? no_end : deadline_after(now, words_.timeout);
}

ReplyMeaning AwaitedStream::meaning_of(std::string_view bytes) const {
  return {.is_pending = bytes == "*-1\r\n" || bytes == "_\r\n"};
}

std::string AwaitedStream::timeout_reply(Resp dialect) const {
  return dialect == Resp::three ? "_\r\n" : "*-1\r\n";
}

void AwaitedStream::fix_words(Group& group, std::vector<std::string>& request) {
  if (words_.group) return;
  behind_.clear();
  for (std::size_t i = 0; i < words_.keys.size(); ++i) {
    std::string& id = request[words_.ids_at + i];
    if (id == "$") {
      if (const auto last = group.last_id_of({db_, words_.keys[i]})) {
        id = std::to_string(last->ms) + "-" + std::to_string(last->seq);
      }
    }
    behind_.push_back(accepted_id(id));  // of `$`: 0-0, so that the log is soon asked again
  }
}

bool AwaitedStream::wait_for_change(Group& group, Parking parking, WaitTicket& ticket,
                                    ClaimOutcome& outcome) const {
  std::vector<KeyRef> refs;
  refs.reserve(words_.keys.size());
  for (const std::string& key : words_.keys) refs.push_back({db_, key});
  Group::ObjectWait wait{.keys = refs,
                         .kind = Kind::stream,
                         .deadline = parking.deadline,
                         .arrival = parking.arrival,
                         .behind = behind_};
  if (words_.group) wait.group_name = *words_.group;
  outcome.error = group.wait_for_object(
      wait,
      [done = std::move(parking.done)](ErrorCode ended) {
        ClaimOutcome seen;
        seen.error = ended;
        done(std::move(seen));
      },
      ticket);
  return outcome.error == ErrorCode::ok;
}

std::unique_ptr<BlockingCommand> read_stream_wait(std::span<const std::string_view> words) {
  AwaitedStream::Words read;
  bool waits = false;
  for (std::size_t i = 1; i < words.size();) {
    const std::size_t behind = words.size() - i - 1;
    if (is_word(words[i], "noack")) {
      ++i;
    } else if (is_word(words[i], "count") && behind >= 1) {
      i += 2;
    } else if (is_word(words[i], "block") && behind >= 1) {
      const auto ms = integer_of(words[i + 1]);
      if (!ms || *ms < 0) return nullptr;
      waits = true;
      read.timeout = Millis{*ms};
      i += 2;
    } else if (is_word(words[i], "group") && behind >= 2) {
      read.group.emplace(words[i + 1]);
      i += 3;
    } else if (is_word(words[i], "streams") && waits && behind >= 2 && behind % 2 == 0) {
      const auto keys = words.subspan(i + 1, behind / 2);
      read.keys.assign(keys.begin(), keys.end());
      read.ids_at = i + 1 + behind / 2;
      return std::make_unique<AwaitedStream>(std::move(read));
    } else {
      return nullptr;
    }
  }
  return nullptr;
}

}  // namespace semel::net
