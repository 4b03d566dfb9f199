// Sorted sets: unions, intersections and differences, of sets as well.
#include <algorithm>
#include <vector>

#include "engine/types/score_algebra.hpp"
#include "net/commands/handlers.hpp"
#include "net/objects/key_section.hpp"
#include "net/objects/object_command.hpp"
#include "net/objects/sorted_set_reply.hpp"
#include "net/resp/text.hpp"

namespace semel::net::handlers {

using engine::Aggregate;
using engine::ObjectEdit;
using engine::ObjectReader;
using engine::ScoreTable;

namespace {

enum class Operation : std::uint8_t { unite, intersect, subtract };
enum class Answer : std::uint8_t { members, store, count };

struct Input {
  Bytes key;
  std::optional<Kind> kind{};  ///< none: there is no such key
  std::size_t size = 0;
  double weight = 1;
};

struct Algebra {
  Operation operation;
  Answer answer;
  std::vector<Input> inputs{};
  Aggregate aggregate = Aggregate::sum;
  bool with_scores = false;
  std::size_t limit = 0;  ///< of a count; 0: none
};

/// Words that follow the number of keys, which stands at `at`. None: an error has been written.
std::optional<std::span<const std::string_view>> read_keys(Call& call, std::size_t at,
                                                           Algebra& algebra) {
  const auto count = integer_of(call.args[at]);
  if (!count) {
    call.fail_number();
    return std::nullopt;
  }
  if (*count < 1) {
    call.fail("ERR at least 1 input key is needed for '" + std::string{call.row->name} +
              "' command");
    return std::nullopt;
  }
  const std::span<const std::string_view> words = call.args.subspan(at + 1);
  if (static_cast<std::uint64_t>(*count) > words.size()) {
    call.fail_syntax();
    return std::nullopt;
  }
  const auto keys = static_cast<std::size_t>(*count);
  for (const Bytes key : words.first(keys)) algebra.inputs.push_back({.key = key});
  return words.subspan(keys);
}

/// False: an error has been written.
bool read_inputs(Call& call, Algebra& algebra) {
  for (Input& input : algebra.inputs) {
    notify_miss(call, input.key);
    const auto kind = call.store().type(input.key);
    if (!kind.ok()) return call.fail(kind.error()), false;
    input.kind = *kind;
    if (!input.kind) continue;
    if (input.kind != Kind::set && input.kind != Kind::sorted_set) {
      return call.fail(ErrorCode::wrong_type), false;
    }
    const Status read =
        engine::read_object(call.engine, {call.client.db, input.key}, *input.kind,
                            [&](const ObjectReader& object) { input.size = object.size(); });
    if (!read) return call.fail(read.error()), false;
  }
  return true;
}

bool read_weights(Call& call, std::span<const std::string_view> words, Algebra& algebra) {
  for (std::size_t i = 0; i < algebra.inputs.size(); ++i) {
    const auto weight = score_of(words[i]);
    if (!weight) return call.fail("ERR weight value is not a float"), false;
    algebra.inputs[i].weight = *weight;
  }
  return true;
}

bool read_aggregate(Call& call, std::string_view word, Algebra& algebra) {
  if (is_word(word, "sum")) {
    algebra.aggregate = Aggregate::sum;
  } else if (is_word(word, "min")) {
    algebra.aggregate = Aggregate::min;
  } else if (is_word(word, "max")) {
    algebra.aggregate = Aggregate::max;
  } else {
    return call.fail_syntax(), false;
  }
  return true;
}

/// False: an error has been written.
bool read_options(Call& call, std::span<const std::string_view> rest, Algebra& algebra) {
  const bool has_scores =
      algebra.operation != Operation::subtract && algebra.answer != Answer::count;
  const std::size_t keys = algebra.inputs.size();
  while (!rest.empty()) {
    std::size_t used = 2;
    if (has_scores && rest.size() > keys && is_word(rest[0], "weights")) {
      used = 1 + keys;
      if (!read_weights(call, rest.subspan(1), algebra)) return false;
    } else if (has_scores && rest.size() >= 2 && is_word(rest[0], "aggregate")) {
      if (!read_aggregate(call, rest[1], algebra)) return false;
    } else if (algebra.answer == Answer::members && is_word(rest[0], "withscores")) {
      used = 1;
      algebra.with_scores = true;
    } else if (algebra.answer == Answer::count && rest.size() >= 2 && is_word(rest[0], "limit")) {
      const auto limit = integer_of(rest[1]);
      if (!limit || *limit < 0) return call.fail("ERR LIMIT can't be negative"), false;
      algebra.limit = static_cast<std::size_t>(*limit);
    } else {
      return call.fail_syntax(), false;
    }
    rest = rest.subspan(used);
  }
  return true;
}

/// The places of the inputs in the order in which they are taken.
std::vector<std::size_t> order_of(const Algebra& algebra) {
  std::vector<std::size_t> sizes;
  for (const Input& input : algebra.inputs) sizes.push_back(input.size);
  // Of a difference the first input comes first, and the order of the others does not matter.
  if (algebra.operation == Operation::subtract) std::fill(sizes.begin(), sizes.end(), 0);
  return engine::by_size(sizes);
}

/// A result to be stored may take so much memory while it is computed. The same for every node of a
/// group, whatever its settings are.
constexpr std::size_t stored_bytes_max = std::size_t{256} << 20;

/// False: an error has been written, or the reply is cut.
bool take_input(Call& call, const Algebra& algebra, const Input& input, bool is_first,
                ScoreTable& table) {
  bool has_room = true;
  const Kind kind = input.kind.value_or(Kind::sorted_set);
  const double weight = algebra.operation == Operation::subtract ? 1 : input.weight;
  const Status read = engine::read_object(call.engine, {call.client.db, input.key}, kind,
                                          [&](const ObjectReader& object) {
                                            const engine::WeightedSet taken{object, kind, weight};
                                            if (is_first || algebra.operation == Operation::unite) {
                                              has_room = table.unite(taken, algebra.aggregate);
                                            } else if (algebra.operation == Operation::intersect) {
                                              table.intersect(taken, algebra.aggregate);
                                            } else {
                                              table.subtract(taken);
                                            }
                                          });
  if (!read) return call.fail(read.error()), false;
  if (has_room) return true;
  if (algebra.answer == Answer::store) return call.fail(ErrorCode::value_too_long), false;
  call.reply.cut();
  return false;
}

bool compute(Call& call, const Algebra& algebra, ScoreTable& table) {
  bool is_first = true;
  for (const std::size_t i : order_of(algebra)) {
    const bool is_done = !is_first && table.empty() && algebra.operation != Operation::unite;
    if (is_done) break;
    if (!take_input(call, algebra, algebra.inputs[i], is_first, table)) return false;
    is_first = false;
  }
  return true;
}

void store(Call& call, const std::vector<engine::Scored>& members, Section& section,
           std::string_view event) {
  const Bytes target = call.args[1];
  const auto stored = engine::replace_object(
      call.engine, {call.client.db, target}, Kind::sorted_set, [&](ObjectEdit& set) {
        for (const engine::Scored& each : members) {
          set.put(engine::scored_key(each.score, each.member));
        }
        return ErrorCode::ok;
      });
  if (!stored.ok()) return call.fail(stored.error());
  if (!commit(call, section)) return;
  reply_stored(call, target, *stored, members.size(), event);
}

void run_algebra(Call& call, Algebra algebra) {
  const bool stores = algebra.answer == Answer::store;
  const auto rest = read_keys(call, stores ? 2 : 1, algebra);
  if (!rest) return;
  std::vector<Bytes> keys;
  for (const Input& input : algebra.inputs) keys.push_back(input.key);
  if (stores) keys.push_back(call.args[1]);
  auto section = hold_keys(call, keys);
  if (!section || !read_inputs(call, algebra) || !read_options(call, *rest, algebra)) return;
  // The table is held beside the reply.
  ScoreTable table{stores ? stored_bytes_max : call.reply.room() / 2};
  if (!compute(call, algebra, table)) return;
  if (algebra.answer == Answer::count) {
    const std::size_t count = table.size();
    const std::size_t most = algebra.limit == 0 ? count : algebra.limit;
    return call.reply.integer(static_cast<std::int64_t>(std::min(count, most)));
  }
  const std::vector<engine::Scored> members = table.sorted();
  if (stores) return store(call, members, *section, call.row->name);
  write_scored_head(call.reply, members.size(), algebra.with_scores);
  for (const engine::Scored& each : members) {
    write_scored(call.reply, each, algebra.with_scores);
    if (call.reply.is_cut()) return;
  }
}

}  // namespace

void zunion(Call& call) {
  run_algebra(call, {Operation::unite, Answer::members});
}
void zunionstore(Call& call) {
  run_algebra(call, {Operation::unite, Answer::store});
}
void zinter(Call& call) {
  run_algebra(call, {Operation::intersect, Answer::members});
}
void zinterstore(Call& call) {
  run_algebra(call, {Operation::intersect, Answer::store});
}
void zintercard(Call& call) {
  run_algebra(call, {Operation::intersect, Answer::count});
}
void zdiff(Call& call) {
  run_algebra(call, {Operation::subtract, Answer::members});
}
void zdiffstore(Call& call) {
  run_algebra(call, {Operation::subtract, Answer::store});
}

}  // namespace semel::net::handlers
