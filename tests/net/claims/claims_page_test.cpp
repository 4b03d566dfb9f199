// The dialogues of docs/claims-on-the-wire.md and docs/patterns.md are held with a node, and it
// must say what is there.
//
// Words: a *dialogue* is a block of the page marked resp2 or resp3; `A> ` begins what client A
// says, `A<` the answer to a client that waited, `... 5 ms later` moves the clock; all else is a
// reply as redis-cli shows it. An epoch, or a Unix time, of the page stands for the one that was
// granted, or is shown.
#include <fstream>
#include <map>
#include <sstream>

#include "tests/net/claims/claims_fixture.hpp"

namespace semel::tests {
namespace {

std::string shown(const RespValue& value, const std::string& indent);

std::string shown_items(const RespValue& value, const std::string& indent) {
  const bool map = value.type == RespValue::Type::map;
  const std::size_t count = map ? value.items.size() / 2 : value.items.size();
  if (count == 0) return "(empty array)\n";
  const std::size_t width = std::to_string(count).size();
  const std::string deeper = indent + std::string(width + 2, ' ');
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i + 1);
    if (i != 0) text += indent;
    text += std::string(width - number.size(), ' ') + number + (map ? "# " : ") ");
    if (map) text += '"' + value.items[2 * i].text + "\" => ";
    text += shown(value.items[map ? 2 * i + 1 : i], deeper);
  }
  return text;
}

std::string shown(const RespValue& value, const std::string& indent) {
  switch (value.type) {
    case RespValue::Type::array:
    case RespValue::Type::map:
      return shown_items(value, indent);
    case RespValue::Type::bulk:
      return '"' + value.text + "\"\n";
    case RespValue::Type::integer:
      return "(integer) " + value.text + "\n";
    case RespValue::Type::boolean:
      return value.text == "t" ? "(true)\n" : "(false)\n";
    case RespValue::Type::null:
      return "(nil)\n";
    case RespValue::Type::error:
      return "(error) " + value.text + "\n";
    default:
      return value.text + "\n";
  }
}

/// One dialogue with a node of its own.
class Dialogue {
 public:
  explicit Dialogue(net::Resp dialect) : dialect_(dialect) {}

  void line(const std::string& text) {
    INFO(text);
    if (text.starts_with("... ")) {
      f_.pass(Millis{std::stoll(text.substr(4))});
    } else if (text.size() > 2 && text.compare(1, 2, "> ") == 0) {
      end();
      answers_.clear();
      std::vector<std::string> words = words_in(text.substr(3));
      for (std::string& word : words) {
        if (epochs_.contains(word)) word = epochs_[word];
      }
      hear(client(text[0]).raw(words));
    } else if (text.size() == 2 && text[1] == '<') {
      end();
      std::string reply;
      client(text[0]).collect(reply);
      hear(reply);
    } else {
      expect(text);
    }
  }
  /// All answers have been shown.
  void end() { CHECK(answers_ == std::vector<std::string>{}); }

 private:
  Client& client(char name) {
    auto& known = clients_[name];
    if (known == nullptr) known = std::make_unique<Client>(*f_.node, dialect_);
    return *known;
  }
  void hear(const std::string& reply) {
    if (reply.empty()) return;
    std::string_view rest{reply};
    std::istringstream lines{shown(read_reply(rest), "")};
    for (std::string one; std::getline(lines, one);) answers_.push_back(one);
  }
  void expect(const std::string& text) {
    REQUIRE_FALSE(answers_.empty());
    const std::string answer = answers_.front();
    answers_.erase(answers_.begin());
    const bool of_epoch = answer.find("epoch\" => ") != std::string::npos ||
                          answer.find("_unix_ms\" => ") != std::string::npos ||
                          answer.find("\"version\" => ") != std::string::npos ||
                          answer.find("\"token\" => ") != std::string::npos || epoch_next_;
    epoch_next_ = answer.ends_with("\"epoch\"");
    if (!of_epoch) {
      CHECK(answer == text);
      return;
    }
    const std::size_t number = answer.rfind(' ') + 1;
    CHECK(answer.substr(0, number) == text.substr(0, number));
    const auto known = epochs_.emplace(text.substr(number), answer.substr(number)).first;
    CHECK(known->second == answer.substr(number));
  }

  NodeFixture f_;
  net::Resp dialect_;
  std::map<char, std::unique_ptr<Client>> clients_;
  std::vector<std::string> answers_;
  std::map<std::string, std::string> epochs_;  // of the page -> granted
  bool epoch_next_ = false;
};

/// Plays what `path` shows; how many dialogues there were.
int play(const char* path) {
  std::ifstream page{path};
  REQUIRE(page);
  std::unique_ptr<Dialogue> dialogue;
  int dialogues = 0;
  for (std::string line; std::getline(page, line);) {
    if (line == "```resp2" || line == "```resp3") {
      dialogue = std::make_unique<Dialogue>(line.back() == '2' ? net::Resp::two : net::Resp::three);
      ++dialogues;
    } else if (line == "```" && dialogue != nullptr) {
      dialogue->end();
      dialogue.reset();
    } else if (dialogue != nullptr) {
      dialogue->line(line);
    }
  }
  CHECK(dialogue == nullptr);
  return dialogues;
}

}  // namespace

TEST_CASE("page: the dialogues of docs/claims-on-the-wire.md are what a node says",
          "[net][claims][docs]") {
  CHECK(play(SEMEL_CLAIMS_PAGE) >= 8);
}

TEST_CASE("page: the dialogues of docs/patterns.md are what a node says", "[net][claims][docs]") {
  CHECK(play(SEMEL_PATTERNS_PAGE) >= 20);
}

TEST_CASE("page: every command of the family has its heading", "[net][claims][docs]") {
  std::ifstream page{SEMEL_CLAIMS_PAGE};
  REQUIRE(page);
  std::stringstream text;
  text << page.rdbuf();
  for (const net::CommandRow& row : net::all_commands()) {
    if (!row.name.starts_with("semel.") || row.name.find('|') != std::string_view::npos) continue;
    std::string heading = "\n### ";
    for (const char c : row.name) heading += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    INFO(heading);
    CHECK(text.str().find(heading + "\n") != std::string::npos);
  }
}

}  // namespace semel::tests
