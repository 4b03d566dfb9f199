// Recorded replies of redis-server and ours in process, byte for byte: tests/transcripts.
//
// Words: a *transcript* is one file of tests/transcripts/golden; a *step* is one of its lines; a
// *client* has a letter.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/node/connection.hpp"
#include "semel/clock.hpp"
#include "semel/semel.hpp"
#include "tests/support/resp.hpp"

namespace semel::tests {
namespace {

struct Step {
  std::string line;
  char client;
  std::optional<std::vector<std::string>> words;  ///< none: it receives
  std::string reply{};
};

struct Transcript {
  std::string dialect;
  std::vector<Step> steps;
};

/// The byte that an escape at `at`, behind its backslash, stands for; `at` is then behind it.
char unescaped(std::string_view text, std::size_t& at) {
  const char sign = text[at++];
  if (sign == 'r') return '\r';
  if (sign == 'n') return '\n';
  if (sign != 'x') return sign;
  const std::string digits{text.substr(at, 2)};
  at += 2;
  return static_cast<char>(std::strtol(digits.c_str(), nullptr, 16));
}

std::string bytes_of(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const char sign = text[at++];
    bytes += sign == '\\' ? unescaped(text, at) : sign;
  }
  return bytes;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string word;
    const bool is_quoted = text[at] == '"';
    if (is_quoted) ++at;
    while (at < text.size() && text[at] != (is_quoted ? '"' : ' ')) {
      const char sign = text[at++];
      word += sign == '\\' && is_quoted ? unescaped(text, at) : sign;
    }
    if (is_quoted) ++at;
    words.push_back(std::move(word));
  }
  return words;
}

Transcript read(const std::filesystem::path& path) {
  Transcript transcript;
  std::ifstream file{path};
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("dialect ")) transcript.dialect = line.substr(8);
    if (line.size() < 3 || line[2] != ' ' || (line[1] != '>' && line[1] != '<')) continue;
    const auto rest = std::string_view{line}.substr(3);
    if (line[1] == '>') {
      transcript.steps.push_back({line, line[0], words_of(rest)});
    } else {
      transcript.steps.push_back({line, line[0], std::nullopt, bytes_of(rest)});
    }
  }
  return transcript;
}

/// A command we do not have and redis-server had; empty: none.
std::string missing_command(const Transcript& transcript) {
  constexpr std::string_view unknown = "-ERR unknown command";
  for (std::size_t i = 0; i < transcript.steps.size(); ++i) {
    const Step& step = transcript.steps[i];
    if (!step.words || net::find_command(step.words->front()) != nullptr) continue;
    if (i + 1 < transcript.steps.size() && transcript.steps[i + 1].reply.starts_with(unknown)) {
      continue;
    }
    return step.words->front();
  }
  return {};
}

/// What each client has received and not been asked for.
class Playback {
 public:
  explicit Playback(std::string dialect) : dialect_(std::move(dialect)) {}

  void say(char client, const std::vector<std::string>& words) {
    of(client).connection->receive(request_bytes(words), of(client).heard);
    for (auto& [name, each] : clients_) each.connection->collect(each.heard);
  }
  /// The next bytes, at most so many as are expected.
  std::string hear(char client, std::size_t bytes) {
    std::string& heard = of(client).heard;
    std::string part = heard.substr(0, bytes);
    heard.erase(0, part.size());
    return part;
  }
  std::string rest() {
    std::string all;
    for (const auto& [name, each] : clients_) all += each.heard;
    return all;
  }

 private:
  struct Client {
    std::unique_ptr<net::Connection> connection;
    std::string heard{};
  };

  Client& of(char name) {
    const auto found = clients_.find(name);
    if (found != clients_.end()) return found->second;
    Client& client = clients_[name];
    client.connection = std::make_unique<net::Connection>(
        node_, batch_, nullptr, net::ClientHandle::Origin{.id = node_.next_client_id()});
    std::string greeting;
    client.connection->receive(request_bytes({"HELLO", dialect_}), greeting);
    return client;
  }

  std::string dialect_;
  ManualClock clock_;
  std::unique_ptr<Engine> engine_ = std::move(Engine::open({.clock = &clock_}).value());
  net::Node node_{*engine_};
  net::Batch batch_;
  std::map<char, Client> clients_;
};

}  // namespace

TEST_CASE("transcripts: replies equal the recorded ones of redis-server", "[net][transcripts]") {
  int replies = 0;
  int skipped = 0;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator{SEMEL_TRANSCRIPTS}) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  REQUIRE(!paths.empty());
  for (const auto& path : paths) {
    const Transcript transcript = read(path);
    REQUIRE(!transcript.steps.empty());
    if (const std::string missing = missing_command(transcript); !missing.empty()) {
      WARN("skipped " << path.filename().string() << ": no command " << missing);
      ++skipped;
      continue;
    }
    Playback conversation{transcript.dialect};
    std::string asked;
    for (const Step& step : transcript.steps) {
      if (step.words) {
        asked = step.line;
        conversation.say(step.client, *step.words);
        continue;
      }
      INFO(path.filename().string() << ", after " << asked);
      const std::string heard = conversation.hear(step.client, step.reply.size());
      CHECK(heard == step.reply);
      if (heard != step.reply) break;  // what follows is not where it was
      ++replies;
    }
    INFO(path.filename().string() << ", at its end");
    CHECK(conversation.rest().empty());
  }
  WARN("transcripts: " << replies << " replies in " << paths.size() << " transcripts, " << skipped
                       << " skipped");
  CHECK(replies > 0);
}

}  // namespace semel::tests
