// Work on a stack of its own.
#include "net/scripts/fibre.hpp"

#include <string>
#include <vector>
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

struct Story {
  net::Fibre fibre;
  std::vector<std::string> lines;
  int turns = 0;
};

int deep(int depth) {
  volatile char room[512];
  room[0] = static_cast<char>(depth);
  return depth == 0 ? room[0] : deep(depth - 1) + (room[0] == static_cast<char>(depth) ? 1 : 0);
}

}  // namespace

TEST_CASE("fibres: work yields as often as it likes, and goes on where it was", "[net]") {
  Story story;
  const auto work = [](void* argument) {
    Story& own = *static_cast<Story*>(argument);
    std::string kept = "begun";
    for (int i = 0; i < own.turns; ++i) {
      own.lines.push_back(kept + " " + std::to_string(i));
      own.fibre.yield();
      kept = "went on";
    }
    own.lines.push_back(std::to_string(deep(200)));
  };
  for (int turns = 0; turns < 5; ++turns) {
    story.turns = turns;
    story.lines.clear();
    bool has_returned = story.fibre.run(work, &story);
    for (int i = 0; i < turns; ++i) {
      CHECK_FALSE(has_returned);
      CHECK(story.lines.size() == static_cast<std::size_t>(i) + 1);
      CHECK(story.lines.back() == (i == 0 ? "begun " : "went on ") + std::to_string(i));
      static_cast<void>(deep(100));  // our own stack is used meanwhile
      has_returned = story.fibre.resume();
    }
    CHECK(has_returned);
    CHECK(story.lines.back() == "200");
  }
}

}  // namespace semel::tests
