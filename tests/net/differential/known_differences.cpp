#include "tests/net/differential/known_differences.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>

#include "base/ascii.hpp"
#include "tests/net/node_client.hpp"

namespace semel::tests {
namespace {

using Values = std::vector<std::string>;

bool has_word(std::string_view list, std::string_view word) {
  return (" " + std::string{list} + " ").find(" " + std::string{word} + " ") != std::string::npos;
}

/// Whether a value is a list or a push that begins with `word`, behind its length and that of the
/// list.
bool is_of(const std::string& value, std::string_view word) {
  const std::size_t at = value.find(word);
  const bool is_list = value.starts_with('*') || value.starts_with('>');
  return is_list && at != std::string::npos && at <= 10;
}

bool is_message(const std::string& value) {
  return is_of(value, "message\r\n") || is_of(value, "pmessage\r\n") ||
         is_of(value, "smessage\r\n");
}

using Run = std::span<std::string>;

/// `change` gets each run of values that begin with `word`.
void each_run(Values& values, std::string_view word, void (*change)(Run)) {
  const auto belongs = [&](const std::string& value) { return is_of(value, word); };
  for (auto from = values.begin(); from != values.end();) {
    const auto to = std::find_if_not(from, values.end(), belongs);
    change({from, to});
    from = to == values.end() ? to : to + 1;
  }
}

/// Names in order; the counts behind them stay where they are.
void sort_names(Run run) {
  Values names;
  Values counts;
  for (const std::string& value : run) {
    const std::size_t count = value.rfind(':');
    names.push_back(value.substr(0, count));
    counts.push_back(value.substr(count));
  }
  std::ranges::sort(names);
  for (std::size_t i = 0; i < run.size(); ++i) run[i] = names[i] + counts[i];
}

/// Some time that is neither a counter nor far away. 0: none.
std::int64_t near_time(const std::string& value, std::int64_t far) {
  std::int64_t number = 0;
  if (!value.starts_with(':')) return 0;
  std::from_chars(value.data() + 1, value.data() + value.size(), number);
  constexpr std::int64_t counters_max = 40'000;
  return number > counters_max && number < far ? number : 0;
}

/// The times of `ours` that are near those of `theirs` become the same.
void forgive_times(Values& ours, const Values& theirs, std::int64_t far) {
  constexpr std::int64_t tolerance = 2'000;
  for (std::size_t i = 0; i < ours.size() && i < theirs.size(); ++i) {
    const std::int64_t one = near_time(ours[i], far);
    const std::int64_t other = near_time(theirs[i], far);
    if (one != 0 && other != 0 && std::llabs(one - other) <= tolerance) ours[i] = theirs[i];
  }
}

/// The items of a list or set in an order of their own, in those of its items too.
std::string in_order(const std::string& value) {
  const std::size_t head = value.find("\r\n");
  const bool is_list = value.starts_with('*') || value.starts_with('~');
  if (!is_list || head == std::string::npos) return value;
  Values items = split_values(std::string_view{value}.substr(head + 2));
  for (std::string& item : items) item = in_order(item);
  std::ranges::sort(items);
  std::string sorted = value.substr(0, head + 2);
  for (const std::string& item : items) sorted += item;
  return sorted;
}

/// The words of a request, or those that its script calls.
Words called_by(const Words& words) {
  constexpr std::size_t script = 3;
  const bool is_script = words.size() > script && base::lower_of(words[0]) == "eval";
  return is_script ? Words{words.begin() + script, words.end()} : words;
}

/// A set that SORT does not sort. Lists of the profiles have other names.
bool is_unsorted_set(const Words& words) {
  bool is_unsorted = false;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string word = base::lower_of(words[i]);
    if (word == "store") return false;
    if (word == "by" && i + 1 < words.size())
      is_unsorted = words[i + 1].find('*') == Words::value_type::npos;
  }
  return is_unsorted && !words[1].starts_with('j') && !words[1].starts_with('l');
}

struct KnownDifference {
  std::string_view commands;  ///< of which one was asked for; "*": any
  std::string_view why;
  bool is_of_time;
  void (*forgive)(const Words& words, Values& ours, Values& theirs);
};

void both(Values& ours, Values& theirs, const std::function<void(Values&)>& change) {
  change(ours);
  change(theirs);
}

/// Each number behind `mark` becomes 0.
void forget_numbers(std::string& text, std::string_view mark) {
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
    at += mark.size();
    const std::size_t end = text.find('\r', at);
    if (end == std::string::npos) return;
    text.replace(at, end - at, "0");
  }
}

/// The first of two numbers side by side, which are the idle time and the deliveries of an entry,
/// and each number that may be a time of today.
void forget_times(std::string& text) {
  constexpr std::size_t digits_of_today = 13;
  for (std::size_t at = text.find("\r\n:"); at != std::string::npos;
       at = text.find("\r\n:", at + 1)) {
    const std::size_t begin = at + 3;
    const std::size_t end = text.find('\r', begin);
    if (end == std::string::npos) return;
    const bool is_first_of_two = text.compare(end, 3, "\r\n:") == 0;
    const bool is_today = end - begin == digits_of_today && text[begin] == '1';
    if (is_first_of_two || is_today) text.replace(begin, end - begin, "0");
  }
}

void forgive_order_of_sets(const Words& request, Values& ours, Values& theirs) {
  const Words words = called_by(request);
  const std::string name = base::lower_of(words[0]);
  const auto is_of_two = [](const Values& values) {
    return values.size() == 1 && values[0].starts_with("*2");
  };
  const auto is_member = [](const Values& values) {
    return values.size() == 1 && values[0].starts_with('$') && values[0][1] != '-';
  };
  if (name == "srandmember" && words.size() == 2 && is_member(ours) && is_member(theirs)) {
    ours = theirs;
  }
  // We bring small sets as a whole, and redis-server as many as COUNT says, about.
  const bool is_part = name == "sscan" && std::ranges::find(words, "1000") == words.end();
  if (is_part && is_of_two(ours) && is_of_two(theirs)) ours = theirs;
  const bool has_no_order =
      has_word("smembers sinter sunion sdiff srandmember spop sscan", name) ||
      (has_word("sort sort_ro", name) && words.size() > 2 && is_unsorted_set(words));
  if (!has_no_order) return;
  both(ours, theirs, [](Values& values) {
    for (std::string& value : values) value = in_order(value);
  });
}

constexpr std::int64_t far_s = 4'000'000'000;
constexpr std::int64_t far_ms = 1'000 * far_s;

const KnownDifference known_differences[] = {
    {"hello", "it names the server, its version and the connection", false,
     [](const Words&, Values& ours, Values& theirs) {
       const auto is_error = [](const Values& values) {
         return !values.empty() && values[0].starts_with('-');
       };
       if (!is_error(ours) && !is_error(theirs)) ours = theirs;
     }},
    {"keys", "keys have no order", false,
     [](const Words&, Values& ours, Values& theirs) {
       both(ours, theirs, [](Values& values) { std::ranges::sort(values); });
     }},
    {"pubsub", "channels have no order", false,
     [](const Words& words, Values& ours, Values& theirs) {
       if (words.size() < 2 || !words[1].ends_with("CHANNELS")) return;
       both(ours, theirs, [](Values& values) { std::ranges::sort(values); });
     }},
    {"exec", "redis-server 7.0 puts messages into the reply of a transaction", false,
     [](const Words&, Values& ours, Values& theirs) {
       both(ours, theirs, [](Values& values) {
         std::stable_partition(values.begin(), values.end(), std::not_fn(is_message));
       });
     }},
    {"*", "which of several patterns is met first is not said", false,
     [](const Words&, Values& ours, Values& theirs) {
       both(ours, theirs, [](Values& values) {
         each_run(values, "pmessage\r\n", [](Run run) { std::ranges::sort(run); });
       });
     }},
    {"exec unsubscribe punsubscribe sunsubscribe", "nor which of several channels ends first",
     false,
     [](const Words& words, Values& ours, Values& theirs) {
       if (words.size() > 1) return;
       both(ours, theirs, [](Values& values) { each_run(values, "unsubscribe\r\n", sort_names); });
     }},
    {"object", "what was not set as a whole is raw or embstr there, whatever it looks like", false,
     [](const Words&, Values& ours, Values& theirs) {
       const bool is_text =
           theirs.size() == 1 && (theirs[0] == "$3\r\nraw\r\n" || theirs[0] == "$6\r\nembstr\r\n");
       if (is_text) ours = theirs;
     }},
    {"hrandfield", "any field, if there is one", false,
     [](const Words& words, Values& ours, Values& theirs) {
       const auto is_field = [](const Values& values) {
         return values.size() == 1 && values[0].starts_with('$') && values[0][1] != '-';
       };
       if (words.size() == 2 && is_field(ours) && is_field(theirs)) ours = theirs;
     }},
    {"smembers sinter sunion sdiff srandmember spop sscan sort sort_ro eval",
     "members of a set have no order", false, forgive_order_of_sets},
    {"append setrange", "our error says how long the value would be", false,
     [](const Words&, Values& ours, Values& theirs) {
       const std::string error = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
       const bool are_refused = ours.size() == 1 && theirs.size() == 1 &&
                                theirs[0] == error + "\r\n" && ours[0].starts_with(error + ": ");
       if (are_refused) ours = theirs;
     }},
    {"xinfo exec eval", "when a consumer was seen, and how its entries lie there", false,
     [](const Words&, Values& ours, Values& theirs) {
       both(ours, theirs, [](Values& values) {
         for (std::string& value : values) {
           for (const char* name : {"idle", "seen-time", "radix-tree-keys", "radix-tree-nodes"}) {
             forget_numbers(value, std::string{name} + "\r\n:");
           }
         }
       });
     }},
    {"xpending xinfo exec eval", "two clocks are read", true,
     [](const Words&, Values& ours, Values& theirs) {
       both(ours, theirs, [](Values& values) { std::ranges::for_each(values, forget_times); });
     }},
    {"ttl pttl pexpiretime exec eval evalsha", "two clocks are read", true,
     [](const Words&, Values& ours, Values& theirs) { forgive_times(ours, theirs, far_ms); }},
    {"expiretime", "two clocks are read", true,
     [](const Words&, Values& ours, Values& theirs) { forgive_times(ours, theirs, far_s); }},
};

}  // namespace

bool is_same(const std::vector<Words>& requests, std::string_view ours, std::string_view theirs,
             bool has_exact_times) {
  if (ours == theirs) return true;
  const bool opens =
      !requests.empty() && has_word("exec keys pubsub", base::lower_of(requests[0][0]));
  Values our_values = values_of(ours, opens);
  Values their_values = values_of(theirs, opens);
  for (const KnownDifference& known : known_differences) {
    if (known.is_of_time && has_exact_times) continue;
    const auto asked = std::ranges::find_if(requests, [&](const Words& words) {
      return has_word(known.commands, base::lower_of(words[0]));
    });
    const Words nothing{""};
    if (asked == requests.end() && known.commands != "*") continue;
    known.forgive(asked == requests.end() ? nothing : *asked, our_values, their_values);
  }
  return our_values == their_values;
}

}  // namespace semel::tests
