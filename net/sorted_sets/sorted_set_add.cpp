#include "net/sorted_sets/sorted_set_add.hpp"

#include "net/objects/object_command.hpp"
#include "net/objects/score_text.hpp"
#include "net/resp/text.hpp"

namespace semel::net {

using engine::Added;

bool read_add_flag(std::string_view word, AddCommand& command) noexcept {
  if (is_word(word, "nx")) {
    command.rule.only_new = true;
  } else if (is_word(word, "xx")) {
    command.rule.only_present = true;
  } else if (is_word(word, "ch")) {
    command.counts_moved = true;
  } else {
    return false;
  }
  return true;
}

void add_members(Call& call, const AddCommand& command) {
  std::int64_t inserted = 0;
  std::int64_t moved = 0;
  engine::AddOutcome last;
  const auto done = change_object(call, call.key(), Kind::sorted_set, [&](engine::ObjectEdit& set) {
    inserted = moved = 0;
    for (const Addition& each : command.additions) {
      last = engine::add_member(set, each.score, each.member, command.rule);
      inserted += last.what == Added::inserted ? 1 : 0;
      moved += last.what == Added::moved ? 1 : 0;
    }
    return ErrorCode::ok;
  });
  if (!done) return;
  if (last.what == Added::not_score) return call.fail("ERR resulting score is not a number (NaN)");
  if (!command.rule.adds) {
    call.reply.integer(command.counts_moved ? inserted + moved : inserted);
  } else if (last.what == Added::refused) {
    call.reply.null();
  } else {
    write_score(call.reply, last.score);
  }
  if (inserted + moved != 0) {
    call.notify('z', command.rule.adds ? "zincr" : "zadd", call.key());
  }
}

}  // namespace semel::net
