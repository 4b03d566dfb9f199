// Random requests for dialogues with a redis-server.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/ascii.hpp"
#include "tests/support/resp.hpp"

namespace semel::tests {

/// Requests of one profile: forms, in which a word of one letter stands for any word of its kind.
class RandomRequests {
 public:
  struct Profile {
    std::vector<Words> forms{};
    std::map<char, Words> kinds{};   ///< a word that stands there twice comes twice as often
    std::uint64_t lower_one_in = 0;  ///< of so many requests one has a name in lower case; 0: none
    std::uint64_t cut_one_in = 0;    ///< of so many requests one lacks words at its end; 0: none
  };

  /// `profile` must outlive it.
  RandomRequests(std::uint64_t seed, const Profile& profile) : random_(seed), profile_(profile) {}
  virtual ~RandomRequests() = default;
  RandomRequests(const RandomRequests&) = delete;
  RandomRequests& operator=(const RandomRequests&) = delete;

  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  [[nodiscard]] const std::string& pick(const Words& words) { return words[below(words.size())]; }

  [[nodiscard]] Words next() {
    Words words = profile_.forms[below(profile_.forms.size())];
    if (is_one_in(profile_.cut_one_in)) words.resize(1 + below(words.size()));
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i].size() == 1) words[i] = filled(words[i][0]);
    }
    if (is_one_in(profile_.lower_one_in)) words[0] = base::lower_of(words[0]);
    return words;
  }

 protected:
  /// A word of the kind; the letter itself if it stands for none.
  [[nodiscard]] virtual std::string filled(char letter) {
    const auto kind = profile_.kinds.find(letter);
    return kind == profile_.kinds.end() ? std::string{letter} : pick(kind->second);
  }
  [[nodiscard]] std::uint64_t draw() { return random_(); }

 private:
  [[nodiscard]] bool is_one_in(std::uint64_t count) { return count > 0 && below(count) == 0; }

  std::mt19937_64 random_;
  const Profile& profile_;
};

}  // namespace semel::tests
