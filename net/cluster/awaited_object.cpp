#include "net/cluster/awaited_object.hpp"

#include <charconv>
#include <optional>
#include <utility>

#include "net/resp/pop_words.hpp"
#include "net/resp/reply_reader.hpp"
#include "net/resp/text.hpp"

namespace semel::net {
namespace {

using Words = std::span<const std::string_view>;

bool is_null(std::string_view bytes) noexcept {
  return bytes == "*-1\r\n" || bytes == "$-1\r\n" || bytes == "_\r\n";
}

/// RESP3 has scores as numbers.
std::string score_text(const Reply& reply) {
  return reply.type == Reply::Type::number ? text_of(reply.number) : reply.text;
}

/// LPUSH or RPUSH that lays elements back as they lay; they are in the order of their pops.
std::vector<std::string> push_back(const char* command, const Reply& reply) {
  std::vector<std::string> words{command, reply.items[0].text};
  const Reply& taken = reply.items[1];
  if (taken.type != Reply::Type::array) words.push_back(taken.text);
  for (auto each = taken.items.rbegin(); each != taken.items.rend(); ++each) {
    words.push_back(each->text);
  }
  return words;
}

std::vector<std::string> add_back(const Reply& reply, bool is_list) {
  std::vector<std::string> words{"ZADD", reply.items[0].text, "NX"};
  if (!is_list) {
    words.push_back(score_text(reply.items[2]));
    words.push_back(reply.items[1].text);
    return words;
  }
  for (const Reply& pair : reply.items[1].items) {
    words.push_back(score_text(pair.items.back()));
    words.push_back(pair.items.front().text);
  }
  return words;
}

}  // namespace

Timestamp AwaitedObject::deadline(Timestamp now) const noexcept {
  return end_of_wait(now, timeout_);
}

ReplyMeaning AwaitedObject::meaning_of(std::string_view bytes) const {
  if (is_null(bytes)) return {.is_pending = true};
  if (bytes.starts_with('-') || form_ == Form::move) return {};
  const std::optional<Reply> reply = take_reply(bytes);
  if (!reply || reply->items.size() < 2) return {};
  switch (form_) {
    case Form::left:
    case Form::left_list:
      return {.undo = push_back("LPUSH", *reply)};
    case Form::right:
    case Form::right_list:
      return {.undo = push_back("RPUSH", *reply)};
    case Form::sorted:
    case Form::sorted_list:
      return {.undo = add_back(*reply, form_ == Form::sorted_list)};
    case Form::move:
      break;
  }
  return {};
}

std::string AwaitedObject::timeout_reply(Resp dialect) const {
  return dialect == Resp::three ? "_\r\n" : "*-1\r\n";
}

bool AwaitedObject::wait_for_change(Group& group, Parking parking, WaitTicket& ticket,
                                    ClaimOutcome& outcome) const {
  std::vector<KeyRef> refs;
  refs.reserve(keys_.size());
  for (const std::string& key : keys_) refs.push_back({db_, key});
  const ErrorCode why = group.wait_for_object(
      {.keys = refs,
       .kind = is_sorted() ? Kind::sorted_set : Kind::list,
       .deadline = parking.deadline,
       .arrival = parking.arrival},
      [done = std::move(parking.done)](ErrorCode ended) {
        ClaimOutcome seen;
        seen.error = ended;
        done(std::move(seen));
      },
      ticket);
  outcome.error = why;
  return why == ErrorCode::ok;
}

std::unique_ptr<BlockingCommand> read_pop_words(Words words, AwaitedObject::Form form) {
  Millis timeout{0};
  if (words.size() < 3 || !read_timeout(words.back(), timeout).empty()) return nullptr;
  return std::make_unique<AwaitedObject>(form, words.subspan(1, words.size() - 2), timeout);
}

std::unique_ptr<BlockingCommand> read_list_pop(Words words) {
  PopWords pop;
  Millis timeout{0};
  if (!read_pop_keys(words, 2, pop).empty() || !read_pop_count(pop).empty() ||
      !read_timeout(words[1], timeout).empty()) {
    return nullptr;
  }
  const auto form =
      is_word(pop.end, "left") ? AwaitedObject::Form::left_list : AwaitedObject::Form::right_list;
  return std::make_unique<AwaitedObject>(form, pop.keys, timeout);
}

std::unique_ptr<BlockingCommand> read_sorted_pop(Words words) {
  PopWords pop;
  Millis timeout{0};
  if (!read_pop_keys(words, 2, pop).empty() || !read_pop_count(pop).empty() ||
      !read_timeout(words[1], timeout).empty()) {
    return nullptr;
  }
  return std::make_unique<AwaitedObject>(AwaitedObject::Form::sorted_list, pop.keys, timeout);
}

std::unique_ptr<BlockingCommand> read_move(Words words) {
  Millis timeout{0};
  if (!read_timeout(words.back(), timeout).empty()) return nullptr;
  return std::make_unique<AwaitedObject>(AwaitedObject::Form::move, words.subspan(1, 1), timeout);
}

}  // namespace semel::net
