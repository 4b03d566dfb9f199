#include "tests/net/differential/random_requests.hpp"

#include <algorithm>

#include "base/ascii.hpp"

namespace semel::tests {
namespace {

constexpr std::uint64_t far_ms = 4'000'000'000'000;  // the year 2096

std::vector<Words> forms_in(std::string_view forms_text) {
  std::string lines{forms_text};
  std::ranges::replace(lines, '\n', ' ');
  std::string_view text = lines;
  std::vector<Words> forms;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    if (Words words = words_in(text.substr(0, end)); !words.empty()) {
      forms.push_back(std::move(words));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return forms;
}

}  // namespace

RandomRequests::RandomRequests(std::uint64_t seed, const Profile& profile)
    : random_(seed), profile_(profile), forms_(forms_in(profile.forms)) {}

Words RandomRequests::next() {
  Words words = forms_[below(forms_.size())];
  if (is_one_in(profile_.cut_one_in)) words.resize(1 + below(words.size()));
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].size() == 1) words[i] = filled(words[i][0]);
  }
  if (is_one_in(profile_.lower_one_in)) words[0] = base::lower_of(words[0]);
  if (!is_one_in(profile_.script_one_in)) return words;
  words.insert(words.begin(), {"EVAL", "return redis.call(unpack(ARGV))", "0"});
  return words;
}

std::string RandomRequests::id_of(std::uint64_t number) {
  constexpr std::uint64_t of_one_ms = 3;
  return std::to_string(1 + number / of_one_ms) + "-" + std::to_string(number % of_one_ms);
}

/// A word of the kind; the letter itself if it stands for none.
std::string RandomRequests::filled(char letter) {
  const auto kind = profile_.kinds.find(letter);
  if (kind == profile_.kinds.end()) return std::string{letter};
  const std::string& word = pick(kind->second);
  return word.size() > 2 && word.front() == '<' && word.back() == '>'
             ? drawn(std::string_view{word}.substr(1, word.size() - 2))
             : word;
}

/// Two times that are relative to a clock never come close: which is later would depend on whose
/// clock is read when. Absolute ones are often equal.
std::string RandomRequests::drawn(std::string_view kind) {
  // Ids of a stream grow slowly, so that those that are asked for are often there.
  if (kind == "id") return id_of(added_ += below(3));
  if (kind == "near id") return id_of(added_ - std::min(added_, below(12)) + below(3));
  if (kind == "any id") return id_of(below(added_ + 3));
  if (kind == "later id") {  // and 121 ms are of the same stretch
    constexpr std::uint64_t stretch = 3 * 123;
    return id_of((added_ += stretch) - stretch + 3);
  }
  if (kind == "open id") return "(" + drawn("near id");
  if (kind == "ttl") return std::to_string(1'000'000 + unlike());
  if (kind == "end") return std::to_string(far_ms + unlike());
  if (kind == "far ms") return std::to_string(far_ms + below(8) * 1'000 + below(2) * below(1'000));
  if (kind == "far s") return std::to_string(far_ms / 1'000 + below(8));
  if (kind == "past") return std::to_string(1 + below(1'000'000));
  if (kind == "offset") return std::to_string(below(40));
  if (kind == "near 0") return std::to_string(static_cast<std::int64_t>(below(80)) - 40);
  if (kind == "integer") return std::to_string(static_cast<std::int64_t>(below(2'000)) - 1'000);
  if (kind == "word") return std::to_string(random_());
  if (kind == "like a number") return text_of("0123456789012345+-.eExXinfa ", 8);
  if (kind == "glob") return text_of("aabc**?[[]]^-\\", 9);
  if (kind == "key of globs") return "k" + text_of("aabbc-]^[\\*?", 5);
  std::string bytes(below(40), '\0');  // "bytes"
  for (char& c : bytes) c = static_cast<char>(below(256));
  return bytes;
}

std::string RandomRequests::text_of(std::string_view letters, std::uint64_t length_max) {
  std::string text;
  for (std::uint64_t i = below(length_max + 1); i > 0; --i) text += letters[below(letters.size())];
  return text;
}

}  // namespace semel::tests
