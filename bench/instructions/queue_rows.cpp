// Job queues whose instructions run.py counts, see node_bench.hpp. Of queue_*, a part of the jobs
// is in the queue before the first one leaves, as with many clients.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/instructions/node_bench.hpp"

using namespace semel::bench;

// Their names are the rows of expected.txt.
SEMEL_ROW(node_lmove);
SEMEL_ROW(node_blmove);
SEMEL_ROW(queue_lpush);
SEMEL_ROW(queue_blmove);
SEMEL_ROW(queue_lrem);
SEMEL_ROW(queue_zadd);
SEMEL_ROW(queue_bzpopmin);
SEMEL_ROW(queue_xadd);
SEMEL_ROW(queue_xreadgroup);
SEMEL_ROW(queue_xack);
SEMEL_ROW(queue_xdel);

namespace {

/// Jobs that go through a queue. So many are in it before the first one leaves, as if some clients
/// had sent theirs.
class Queues {
 public:
  Queues(Bench& bench, std::size_t jobs_at_once) : bench_(bench), at_once_(jobs_at_once) {
    for (std::size_t i = 0; i < request_count; ++i) {
      jobs_.push_back("j" + std::to_string(i));
      ids_.push_back("1732924800" + std::to_string(100 + i / 16) + "-" + std::to_string(i % 16));
    }
  }

  /// `step(part)` for each part of the jobs in turn.
  template <class Step>
  void in_turn(Step&& step) {
    for (first_ = 0; first_ < request_count; first_ += at_once_) step();
  }
  /// Of the jobs of this part: `words_of(job, id)`, answered by `reply_of(job, id)`.
  template <class WordsOf, class ReplyOf>
  Rounds rounds(WordsOf&& words_of, ReplyOf&& reply_of) {
    Rounds all;
    for (std::size_t i = first_; i < std::min(first_ + at_once_, request_count); ++i) {
      if (i % round_requests == 0) all.emplace_back();
      all.back().requests += request_of(words_of(i));
      all.back().replies += reply_of(i);
    }
    return all;
  }
  template <class WordsOf>
  Rounds rounds_of_one(WordsOf&& words_of) {
    return rounds(words_of, [](std::size_t) { return ":1\r\n"; });
  }

  void lists(bool blocks, bool is_short) {
    const std::string_view from = "key:000000000000";
    std::size_t length = 0;
    in_turn([&] {
      const Rounds pushes = rounds(
          [&](std::size_t i) -> Words {
            return {"LPUSH", from, jobs_[i]};
          },
          [&](std::size_t) { return ":" + std::to_string(++length) + "\r\n"; });
      const Rounds moves = rounds(
          [&](std::size_t i) -> Words {
            static_cast<void>(i);
            if (!blocks) return {"LMOVE", from, "busy", "RIGHT", "LEFT"};
            return {"BLMOVE", from, "busy", "RIGHT", "LEFT", "5"};
          },
          [&](std::size_t i) { return bulk(jobs_[i]); });
      const Rounds ends = rounds_of_one([&](std::size_t i) -> Words {
        return {"LREM", "busy", "-1", jobs_[i]};
      });
      length = 0;
      is_short ? run(bench_, pushes) : row_queue_lpush(bench_, pushes);
      if (is_short) {
        blocks ? row_node_blmove(bench_, moves) : row_node_lmove(bench_, moves);
      } else {
        row_queue_blmove(bench_, moves);
      }
      is_short ? run(bench_, ends) : row_queue_lrem(bench_, ends);
    });
  }

  void sorted_sets() {
    const std::string_view key = "key:000000000000";
    in_turn([&] {
      row_queue_zadd(bench_, rounds_of_one([&](std::size_t i) -> Words {
                       return {"ZADD", key, std::string_view{jobs_[i]}.substr(1), jobs_[i]};
                     }));
      row_queue_bzpopmin(bench_, rounds(
                                     [&](std::size_t) -> Words {
                                       return {"BZPOPMIN", key, "5"};
                                     },
                                     [&](std::size_t i) {
                                       return "*3\r\n" + bulk(key) + bulk(jobs_[i]) +
                                              bulk(jobs_[i].substr(1));
                                     }));
    });
  }

  void streams() {
    const std::string_view key = "key:000000000000";
    require(bench_.call({"XGROUP", "CREATE", key, "g", "0", "MKSTREAM"}) == "+OK\r\n", "no group");
    in_turn([&] {
      row_queue_xadd(bench_, rounds(
                                 [&](std::size_t i) -> Words {
                                   return {"XADD", key, ids_[i], "f", jobs_[i]};
                                 },
                                 [&](std::size_t i) { return bulk(ids_[i]); }));
      row_queue_xreadgroup(
          bench_, rounds(
                      [&](std::size_t) -> Words {
                        return {"XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", key, ">"};
                      },
                      [&](std::size_t i) {
                        return "*1\r\n*2\r\n" + bulk(key) + "*1\r\n*2\r\n" + bulk(ids_[i]) +
                               "*2\r\n" + bulk("f") + bulk(jobs_[i]);
                      }));
      row_queue_xack(bench_, rounds_of_one([&](std::size_t i) -> Words {
                       return {"XACK", key, "g", ids_[i]};
                     }));
      row_queue_xdel(bench_, rounds_of_one([&](std::size_t i) -> Words {
                       return {"XDEL", key, ids_[i]};
                     }));
    });
  }

 private:
  static std::string bulk(std::string_view word) {
    return "$" + std::to_string(word.size()) + "\r\n" + std::string{word} + "\r\n";
  }

  Bench& bench_;
  const std::size_t at_once_;
  std::size_t first_ = 0;
  std::vector<std::string> jobs_;
  std::vector<std::string> ids_;
};

void queues(Bench& bench) {
  constexpr std::size_t few = round_requests;
  constexpr std::size_t as_in_the_bench = 400;  // of 50 clients with 16 each, half on either side
  for (const bool blocks : {false, true}) Queues{bench, few}.lists(blocks, true);
  Queues{bench, as_in_the_bench}.lists(true, false);
  Queues{bench, as_in_the_bench}.sorted_sets();
  Queues{bench, as_in_the_bench}.streams();
}

}  // namespace

int main() {
  const std::unique_ptr<semel::Engine> engine = open_engine(0);
  Bench bench{*engine};
  queues(bench);
}
