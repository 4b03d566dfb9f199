// Lists whose elements go from one to another, and pops from the first of several lists that has
// elements.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/commands/handlers.hpp"
#include "net/objects/list_changes.hpp"
#include "net/resp/pop_words.hpp"
#include "net/resp/text.hpp"

namespace semel::net::handlers {
namespace {

using engine::ListEnd;

void move(Call& call, const ListMove& move) {
  const auto moved = move_element(call.engine, call.client.db, move);
  if (!moved.ok()) return call.fail(moved.error());
  if (!moved->element) return call.reply.null();
  notify_pushed(ChangeSite::of(call), move.to, move.to_end, moved->pushed);
  call.reply.bulk(*moved->element);
  notify_popped(ChangeSite::of(call), move.from, move.from_end, moved->popped);
}

struct FoundList {
  Bytes key{};
  PoppedElements popped{};  ///< without elements: there was none in any list
};

/// From the first of the lists that has elements, in one atomic step.
Status pop_first(Call& call, const PopWords& words, ListEnd end, FoundList& found) {
  std::vector<KeyRef> refs;
  refs.reserve(words.keys.size());
  for (const Bytes key : words.keys) refs.push_back({call.client.db, key});
  SEMEL_TRY(section, call.engine.section(refs));
  for (const KeyRef& ref : refs) {
    SEMEL_TRY(popped, pop_elements(call.engine, ref, end, words.count));
    if (popped.elements.empty()) continue;
    found = {ref.key, std::move(popped)};
    break;
  }
  return section.commit();
}

}  // namespace

void lmove(Call& call) {
  const auto from_end = list_end_of(call.args[3]);
  const auto to_end = list_end_of(call.args[4]);
  if (!from_end || !to_end) return call.fail_syntax();
  move(call, {.from = call.args[1], .to = call.args[2], .from_end = *from_end, .to_end = *to_end});
}

void rpoplpush(Call& call) {
  move(call, {.from = call.args[1],
              .to = call.args[2],
              .from_end = ListEnd::tail,
              .to_end = ListEnd::head});
}

void lmpop(Call& call) {
  PopWords words;
  if (const auto error = read_pop_keys(call.args, 1, words); !error.empty()) {
    return call.fail(error);
  }
  const auto end = list_end_of(words.end);
  if (!end) return call.fail_syntax();
  if (const auto error = read_pop_count(words); !error.empty()) return call.fail(error);
  FoundList found;
  if (const Status done = pop_first(call, words, *end, found); !done) {
    return call.fail(done.error());
  }
  if (found.popped.elements.empty()) return call.reply.null_array();
  call.reply.array(2);
  call.reply.bulk(found.key);
  call.reply.array(found.popped.elements.size());
  for (const std::string& element : found.popped.elements) call.reply.bulk(element);
  notify_popped(ChangeSite::of(call), found.key, *end, found.popped.change);
}

}  // namespace semel::net::handlers
