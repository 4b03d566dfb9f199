// Remembered answers: what a table answers is what a plain model says, and a replica carries out a
// numbered command once.
#include "replication/state/answer_table.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replication/state/entry.hpp"
#include "replication/state/fields.hpp"
#include "replication/state/state_machine.hpp"
#include "semel/claim_fields.hpp"
#include "semel/claims.hpp"
#include "semel/store.hpp"
#include "tests/proofs/random.hpp"
#include "tests/replication/state/canonical.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;
using Why = NotApplied::Why;

std::string encoded(const AnswerTable& table) {
  std::string bytes;
  table.encode(bytes);
  return bytes;
}

std::string encoded(const Answer& answer) {
  std::string bytes;
  encode(answer, bytes);
  return bytes;
}

Answer text(std::size_t size, char of = 'x') {
  return {PlainAnswer{.text = std::string(size, of)}};
}

std::optional<Why> why(const std::optional<Answer>& answer) {
  if (!answer) return std::nullopt;
  const auto* refused = std::get_if<NotApplied>(&answer->what);
  return refused == nullptr ? std::nullopt : std::optional{refused->why};
}

/// The rules again, with maps and no thought of speed.
class Model {
 public:
  std::uint64_t open(std::uint64_t node, std::uint64_t life, LogIndex index) {
    const auto found = nodes_.find(node);
    if (found != nodes_.end() && found->second.life == life) return found->second.number;
    std::uint64_t number = index;
    if (found != nodes_.end()) number = std::max(index, found->second.number + 1);
    nodes_[node] = {.life = life, .number = number};
    return number;
  }
  void keep(const std::vector<std::uint64_t>& kept) {
    std::erase_if(nodes_, [&](const auto& each) {
      return std::find(kept.begin(), kept.end(), each.first) == kept.end();
    });
  }
  /// Bytes of the answer; none: it is to be carried out.
  std::optional<std::string> find(const Origin& origin) {
    const auto refused = [](Why why) { return encoded(Answer{NotApplied{why}}); };
    const auto found = nodes_.find(origin.node);
    if (found == nodes_.end()) return refused(Why::no_life);
    Node& node = found->second;
    if (node.number != origin.life) return refused(Why::other_life);
    node.base = std::max(node.base, origin.lowest);
    node.answers.erase(node.answers.begin(), node.answers.lower_bound(node.base));
    if (origin.sequence < node.base) return refused(Why::forgotten);
    if (origin.sequence >= node.base + answers_window) return refused(Why::too_far);
    const auto known = node.answers.find(origin.sequence);
    if (known == node.answers.end()) return std::nullopt;
    return known->second ? *known->second : refused(Why::not_kept);
  }
  void remember(const Origin& origin, const Answer& answer) {
    Node& node = nodes_.at(origin.node);
    std::size_t bytes = 0;
    for (const auto& [sequence, kept] : node.answers) bytes += kept ? kept->size() : 0;
    const std::string made = encoded(answer);
    const bool fits = made.size() <= kept_answer_bytes_max && bytes + made.size() <= kept_bytes_max;
    node.answers[origin.sequence] = fits ? std::optional{made} : std::nullopt;
  }

 private:
  struct Node {
    std::uint64_t life = 0;
    std::uint64_t number = 0;
    std::uint64_t base = 1;
    std::map<std::uint64_t, std::optional<std::string>> answers{};
  };
  std::map<std::uint64_t, Node> nodes_;
};

struct Player {
  explicit Player(std::uint64_t seed) : random(seed) {}

  proofs::Random random;
  AnswerTable table;
  Model model;
  LogIndex index = 1;
  std::uint64_t carried_out = 0;
  std::uint64_t answered = 0;
  std::map<std::uint64_t, Origin> newest;  // of each node

  void begin() {
    const std::uint64_t node = random.between(1, 6);
    const std::uint64_t life = random.below(3);
    const std::uint64_t number = table.open(node, life, index);
    REQUIRE(number == model.open(node, life, index));
    if (newest[node].life != number) newest[node] = {.node = node, .life = number, .lowest = 1};
    index += random.below(3);
  }

  void keep() {
    std::vector<std::uint64_t> nodes;
    for (std::uint64_t node = 1; node <= 6; ++node) {
      if (!random.chance(1, 5)) nodes.push_back(node);
    }
    table.keep(nodes);
    model.keep(nodes);
  }

  void copy() {
    const std::string bytes = encoded(table);
    AnswerTable made;
    REQUIRE(made.restore(bytes));
    REQUIRE(encoded(made) == bytes);
    table = std::move(made);
  }

  Origin next(std::uint64_t most) {
    Origin& last = newest[random.between(1, 6)];
    Origin origin = last;
    if (random.chance(1, 30)) ++origin.life;
    if (random.chance(2, 3)) {
      origin.sequence = last.sequence += random.chance(1, 50) ? random.between(1, most) : 1;
    } else {
      const std::uint64_t from = random.chance(1, 10) ? 1 : last.lowest;
      origin.sequence = random.between(from, std::max(last.sequence + 2, from));
    }
    if (random.chance(1, 40)) origin.sequence += answers_window - random.below(3);
    if (random.chance(1, 6)) {
      last.lowest = random.between(last.lowest, std::max(last.sequence, last.lowest));
    }
    origin.lowest = std::min(last.lowest, origin.sequence);
    return origin;
  }

  void ask(std::uint64_t most) {
    const Origin origin = next(most);
    if (origin.node == 0) return;
    const std::optional<Answer> found = table.find(origin);
    const std::optional<std::string> expected = model.find(origin);
    REQUIRE(found.has_value() == expected.has_value());
    if (found) {
      ++answered;
      REQUIRE(encoded(*found) == *expected);
      return;
    }
    ++carried_out;
    std::size_t size = random.below(40);
    if (random.chance(1, 100)) size = random.below(2 * kept_answer_bytes_max);
    const Answer answer = text(size, static_cast<char>('a' + random.below(26)));
    table.remember(origin, answer);
    model.remember(origin, answer);
  }
};

}  // namespace

TEST_CASE("answers: a table answers as its rules say", "[answers]") {
  for (std::uint64_t round = 0; round < 12; ++round) {
    const std::uint64_t seed = Catch::rngSeed() + round;
    INFO("seed " << seed);
    Player player{seed};
    for (int step = 0; step < 20'000; ++step) {
      const std::uint64_t kind = player.random.below(1'000);
      if (kind < 8) {
        player.begin();
      } else if (kind < 10) {
        player.keep();
      } else if (kind < 14) {
        player.copy();
      } else {
        player.ask(round % 3 == 0 ? 20'000 : 100);
      }
    }
    CHECK(player.carried_out > 2'000);
    CHECK(player.answered > 2'000);
  }
}

TEST_CASE("answers: each bound holds at n and n + 1", "[answers]") {
  AnswerTable table;
  const std::uint64_t life = table.open(1, 5, 10);
  CHECK(life == 10);
  const auto at = [&](std::uint64_t sequence, std::uint64_t lowest = 1) {
    return Origin{.node = 1, .life = life, .sequence = sequence, .lowest = lowest};
  };
  CHECK_FALSE(table.find(at(answers_window)));
  table.remember(at(answers_window), text(1));
  CHECK(why(table.find(at(answers_window + 1))) == Why::too_far);
  CHECK_FALSE(table.find(at(answers_window + 1, 2)));
  CHECK(why(table.find(at(1))) == Why::forgotten);
  CHECK(why(table.find(at(sequence_max))) == Why::too_far);

  const std::size_t head = encoded(text(0)).size();
  std::size_t longest = kept_answer_bytes_max - head;
  while (encoded(text(longest)).size() > kept_answer_bytes_max) --longest;
  REQUIRE_FALSE(table.find(at(100'000, 100'000)));
  table.remember(at(100'000, 100'000), text(longest));
  CHECK(std::get<PlainAnswer>(table.find(at(100'000, 100'000))->what).text.size() == longest);
  REQUIRE_FALSE(table.find(at(100'001, 100'000)));
  table.remember(at(100'001, 100'000), text(longest + 1));
  CHECK(why(table.find(at(100'001, 100'000))) == Why::not_kept);

  std::uint64_t sequence = 100'002;
  for (std::size_t kept = kept_answer_bytes_max; kept < kept_bytes_max; ++sequence) {
    REQUIRE_FALSE(table.find(at(sequence, 100'000)));
    table.remember(at(sequence, 100'000), text(longest));
    kept += kept_answer_bytes_max;
    CHECK_FALSE(why(table.find(at(sequence, 100'000))));
  }
  REQUIRE_FALSE(table.find(at(sequence, 100'000)));
  table.remember(at(sequence, 100'000), text(0));
  CHECK(why(table.find(at(sequence, 100'000))) == Why::not_kept);
  AnswerTable copy;
  REQUIRE(copy.restore(encoded(table)));
  CHECK(table.bytes() >= kept_bytes_max);
  // Where nobody waits any more, nothing is kept, and little memory.
  REQUIRE_FALSE(table.find(at(200'000, 200'000)));
  CHECK(table.bytes() < 10'000'000 / 4);
  table.remember(at(200'000, 200'000), text(1));

  for (std::uint64_t node = 2; node <= lives_max; ++node) CHECK(table.open(node, 1, 20) == 20);
  CHECK(table.lives() == lives_max);
  CHECK(table.open(lives_max + 1, 1, 30) == 30);
  CHECK(table.lives() == lives_max);
  CHECK(why(table.find(at(200'000, 200'000))) == Why::no_life);  // the oldest life
}

TEST_CASE("answers: each row of a claim's fields comes back alone", "[answers]") {
  const auto check = [](const ClaimOutcome& given) {
    const std::string bytes = encoded(Answer{std::vector<ClaimOutcome>{given}});
    const Result<Answer> back = decode_answer(bytes);
    REQUIRE(back.ok());
    CHECK(encoded(*back) == bytes);
    const ClaimOutcome& got = std::get<std::vector<ClaimOutcome>>(back->what).at(0);
    CHECK(got.takeover == given.takeover);
    for (const ClaimNumber& number : claim_numbers) {
      CHECK(got.*number.answered == given.*number.answered);
    }
    for (const ClaimFlag& flag : claim_flags) CHECK(got.*flag.answered == given.*flag.answered);
    CHECK(got.result == given.result);
  };
  ClaimOutcome plain;
  plain.answer = ClaimAnswer::replay;
  plain.result = "paid";
  for (const bool takeover : {false, true}) {
    plain.takeover = takeover;
    check(plain);
    for (const ClaimNumber& number : claim_numbers) {
      ClaimOutcome outcome = plain;
      outcome.*number.answered = 0xffff'ffff;
      check(outcome);
    }
    for (const ClaimFlag& flag : claim_flags) {
      ClaimOutcome outcome = plain;
      outcome.*flag.answered = true;
      check(outcome);
    }
  }
}

TEST_CASE("answers: a mark that no row has is damage", "[answers]") {
  ClaimOutcome outcome;
  outcome.answer = ClaimAnswer::replay;
  const std::string bytes = encoded(Answer{std::vector<ClaimOutcome>{outcome}});
  constexpr std::size_t marks_at = 4;  // which variant, how many, answer, error
  std::size_t refused = 0;
  for (unsigned bit = 0; bit < 8; ++bit) {
    std::string other = bytes;
    other[marks_at] = static_cast<char>(1U << bit);
    if (!decode_answer(other).ok()) ++refused;
  }
  // `takeover` and later flags are there by their bit alone; a later number is not.
  CHECK(refused == 7 - (claim_flags.size() - 2));
}

TEST_CASE("answers: bytes that are not a table's are refused", "[answers]") {
  AnswerTable table;
  for (std::uint64_t node = 1; node < 4; ++node) {
    const std::uint64_t life = table.open(node, 5, 10 * node);
    for (std::uint64_t i = 1; i < 9; ++i) {
      const Origin origin{.node = node, .life = life, .sequence = i * i, .lowest = i};
      if (!table.find(origin)) table.remember(origin, text(i));
    }
  }
  const std::string bytes = encoded(table);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    AnswerTable cut;
    CHECK_FALSE(cut.restore(std::string_view{bytes}.substr(0, size)));
    CHECK(cut.lives() == 0);
  }
  AnswerTable longer;
  CHECK_FALSE(longer.restore(bytes + "x"));
  proofs::Random random{Catch::rngSeed()};
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = bytes;
    for (std::uint64_t n = random.between(1, 3); n > 0; --n) {
      changed[random.below(changed.size())] = static_cast<char>(random.bits());
    }
    AnswerTable read;
    if (!read.restore(changed)) continue;
    for (std::uint64_t node = 1; node < 4; ++node) {
      const Origin origin{.node = node, .life = 10 * node, .sequence = 9, .lowest = 3};
      if (!read.find(origin)) read.remember(origin, text(3));
    }
    CHECK(read.bytes() < std::size_t{8} << 20);
  }
}

// --- a replica -----------------------------------------------------------------------------------

namespace {

constexpr std::int64_t entry_ms = 1'700'000'000'000;

struct Numbered {
  Origin origin;
  Command command;
};

std::string entry_with(const std::vector<Numbered>& commands) {
  EntryBuilder builder{entry_ms, 7};
  for (const Numbered& each : commands) REQUIRE(*builder.add(each.command, each.origin));
  return builder.bytes();
}

std::unique_ptr<StateMachine> open_replica() {
  Options options;
  options.memory_bytes = std::size_t{16} << 20;
  options.background = std::nullopt;
  auto opened = StateMachine::open(options);
  REQUIRE(opened);
  return *std::move(opened);
}

Command begins(std::uint64_t node, std::uint64_t life) {
  return {SessionCommand{.what = SessionCommand::What::close_former, .node = node, .life = life}};
}

Command store(Verb verb, Bytes key, Bytes value = {}, Condition condition = Condition::always) {
  StoreCommand command;
  command.op.verb = verb;
  command.op.key = key;
  command.op.value = value;
  command.op.amount = 1;
  command.op.condition = condition;
  return {command};
}

std::vector<Answer> answers_of(StateMachine& to, const std::vector<Numbered>& commands) {
  auto answers = to.apply(to.applied() + 1, entry_with(commands));
  REQUIRE(answers);
  return *std::move(answers);
}

std::uint64_t life_of(const Answer& answer) {
  return static_cast<std::uint64_t>(std::get<PlainAnswer>(answer.what).number);
}

}  // namespace

TEST_CASE("answers: a numbered command is carried out once, and answered alike each time",
          "[answers]") {
  const auto made = open_replica();
  const std::uint64_t life = life_of(answers_of(*made, {{{}, begins(3, 77)}})[0]);
  const auto at = [&](std::uint64_t sequence) {
    return Origin{.node = 3, .life = life, .sequence = sequence, .lowest = 1};
  };
  Policy issued;
  issued.issued = true;
  SectionCommand section;
  section.commands = {store(Verb::incr_by, "s"), store(Verb::incr_by, "s")};
  const std::vector<Numbered> commands{
      {at(1), store(Verb::incr_by, "count")},
      {at(2), store(Verb::set, "mine", "me", Condition::if_absent)},
      {at(3), {NamespaceCommand{.name = "tokens", .policy = issued}}},
      {at(4),
       {OperatorCommand{.what = OperatorCommand::What::issue, .name = "tokens", .key = "t"}}},
      {at(5), {ClaimCommand{.name = "tokens", .requests = {{.key = "t"}}}}},
      {at(6), {section}},
      {at(7), store(Verb::getdel, "mine")},
      {at(8), {SessionCommand{.node = 3, .life = 77}}},
  };
  const std::vector<Answer> first = answers_of(*made, commands);
  CHECK(std::get<StoreOutcome>(first[0].what).number == 1);
  CHECK(std::get<StoreOutcome>(first[1].what).applied);
  CHECK(std::get<PlainAnswer>(first[3].what).number == 1);
  CHECK(std::get<std::vector<ClaimOutcome>>(first[4].what)[0].answer == ClaimAnswer::granted);
  const std::string state = canonical(*made).bytes();

  Options options;
  options.shard_count = 4;
  auto copy = copy_of(*made, options);
  REQUIRE(copy);
  CHECK(canonical(**copy).bytes() == state);
  for (StateMachine* const each : {made.get(), copy->get()}) {
    std::vector<Numbered> twice = commands;
    std::reverse(twice.begin(), twice.end());
    twice.insert(twice.end(), commands.begin(), commands.end());
    const std::vector<Answer> again = answers_of(*each, twice);
    for (std::size_t i = 0; i < commands.size(); ++i) {
      CHECK(encoded(again[commands.size() + i]) == encoded(first[i]));
      CHECK(encoded(again[commands.size() - 1 - i]) == encoded(first[i]));
    }
  }
  CHECK(made->engine().store().get("count").value() == "1");
  CHECK(made->engine().store().get("s").value() == "2");
  CHECK(canonical(**copy).bytes() == canonical(*made).bytes());
  // Without a number, as without the table, it counts again.
  answers_of(*made, {{{}, store(Verb::incr_by, "count")}});
  CHECK(made->engine().store().get("count").value() == "2");
}

TEST_CASE("answers: twice in one entry is once, and what is forgotten or of another life is never",
          "[answers]") {
  const auto made = open_replica();
  const std::uint64_t life = life_of(answers_of(*made, {{{}, begins(1, 7)}})[0]);
  CHECK(life_of(answers_of(*made, {{{}, begins(1, 7)}})[0]) == life);  // asked again
  const Command incr = store(Verb::incr_by, "n");
  const auto at = [&](std::uint64_t sequence, std::uint64_t lowest) {
    return Origin{.node = 1, .life = life, .sequence = sequence, .lowest = lowest};
  };
  const auto both = answers_of(*made, {{at(5, 1), incr}, {at(5, 1), incr}, {at(4, 1), incr}});
  CHECK(std::get<StoreOutcome>(both[1].what).number == 1);
  CHECK(std::get<StoreOutcome>(both[2].what).number == 2);
  CHECK(why(answers_of(*made, {{at(6, 6), incr}, {at(5, 5), incr}})[1]) == Why::forgotten);
  CHECK(why(answers_of(*made, {{at(3, 3), incr}})[0]) == Why::forgotten);
  CHECK(why(answers_of(*made, {{at(sequence_max, 6), incr}})[0]) == Why::too_far);
  CHECK(why(answers_of(*made, {{{.node = 2, .life = life, .sequence = 1, .lowest = 1},
                                incr}})[0]) == Why::no_life);
  CHECK(made->engine().store().get("n").value() == "3");

  const std::uint64_t next = life_of(answers_of(*made, {{{}, begins(1, 8)}})[0]);
  CHECK(next > life);
  CHECK(why(answers_of(*made, {{at(6, 6), incr}})[0]) == Why::other_life);
  CHECK(why(answers_of(*made, {{at(7, 6), incr}})[0]) == Why::other_life);
  // Two lives in one entry have two numbers.
  const auto two = answers_of(*made, {{{}, begins(1, 9)}, {{}, begins(1, 10)}});
  CHECK(life_of(two[0]) < life_of(two[1]));
  CHECK(made->engine().store().get("n").value() == "3");

  // A node that is no member any more is forgotten, and begins anew.
  const std::vector<std::uint64_t> others{2, 3};
  REQUIRE(made->skip(made->applied() + 1, others));
  CHECK(why(answers_of(*made, {{at(8, 6), incr}})[0]) == Why::no_life);
  CHECK(life_of(answers_of(*made, {{{}, begins(1, 10)}})[0]) > life_of(two[1]));
}

TEST_CASE("answers: numbers beyond all bounds are damage of an entry", "[answers]") {
  const auto entry = [](std::uint64_t life, std::uint64_t lowest, std::uint64_t above) {
    std::string bytes = entry_with({{{}, store(Verb::incr_by, "n")}});
    const std::string command = bytes.substr(18);  // header, and "nobody"
    bytes.resize(17);
    FieldWriter fields{bytes};
    for (const std::uint64_t each : {std::uint64_t{1}, life, lowest, above}) fields.number(each);
    return bytes + command;
  };
  CHECK(read_entry(entry(1, 1, 0)).ok());
  CHECK(read_entry(entry(1, 1, sequence_max - 1)).ok());
  constexpr std::uint64_t largest = ~std::uint64_t{0};
  CHECK_FALSE(read_entry(entry(1, 0, 1)).ok());
  CHECK_FALSE(read_entry(entry(1, 1, sequence_max)).ok());
  CHECK_FALSE(read_entry(entry(1, largest, 0)).ok());
  CHECK_FALSE(read_entry(entry(1, 1, largest)).ok());
  CHECK_FALSE(read_entry(entry(1, largest, largest)).ok());
}

}  // namespace semel::tests
