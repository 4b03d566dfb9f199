// Random requests of a profile, for dialogues with a redis-server and with us.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/resp.hpp"

namespace semel::tests {

/// What clients say, how many they are, and what happens beside their requests.
struct Profile {
  std::string_view name;
  /// Requests, separated by ';'. A word of one letter stands for any word of its kind.
  std::string_view forms;
  /// By letter. A word that stands there twice comes twice as often; one in <> is drawn
  /// (random_requests.cpp).
  std::map<char, Words> kinds{};
  int steps = 20'000;
  std::size_t clients = 1;
  std::size_t first_speaker = 0;        ///< those before it only listen
  std::vector<std::string> dialects{};  ///< one run each, every client in it; empty: as it starts
  /// Before all requests: the number of a client, and what it says.
  std::vector<std::string_view> opening{};
  Words settings{};                 ///< lines that another connection says now and then
  std::uint64_t lower_one_in = 0;   ///< of so many requests one has a name in lower case; 0: none
  std::uint64_t cut_one_in = 0;     ///< .. lacks words at its end
  std::uint64_t script_one_in = 0;  ///< .. is what a script calls
  std::uint64_t renew_one_in = 0;   ///< after so many one client ends, and another comes
  bool has_bursts = false;          ///< several requests may be sent at once
  /// No time may differ, whoever's clock is read: the profile has absolute times alone.
  bool has_exact_times = false;
  /// What is not asked for, because redis-server 7.0 answers it in its own way; null: nothing.
  bool (*leaves_out)(const Words& words, std::size_t client, bool in_transaction) = nullptr;
};

// Of profile_geo.cpp and profile_zsets.cpp.
[[nodiscard]] const Profile& geo_profile();
[[nodiscard]] const Profile& zsets_profile();
[[nodiscard]] const Profile& large_zsets_profile();
[[nodiscard]] const Profile& zset_events_profile();

// Of profile_streams.cpp.
[[nodiscard]] const Profile& streams_profile();
[[nodiscard]] const Profile& large_streams_profile();
[[nodiscard]] const Profile& stream_events_profile();

// Of profile_lists.cpp.
[[nodiscard]] Profile lists_profile();
[[nodiscard]] Profile list_events_profile();

// In files of their own.
[[nodiscard]] Profile profile_of_sets();
[[nodiscard]] Profile profile_of_set_events();
[[nodiscard]] const std::vector<Profile>& all_profiles();
[[nodiscard]] const Profile& profile_named(std::string_view name);

class RandomRequests {
 public:
  /// `profile` must outlive it.
  RandomRequests(std::uint64_t seed, const Profile& profile);
  RandomRequests(const RandomRequests&) = delete;
  RandomRequests& operator=(const RandomRequests&) = delete;

  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  [[nodiscard]] const std::string& pick(const Words& words) { return words[below(words.size())]; }
  /// Never, if `count` is 0.
  [[nodiscard]] bool is_one_in(std::uint64_t count) { return count > 0 && below(count) == 0; }
  [[nodiscard]] Words next();

 private:
  [[nodiscard]] std::string filled(char letter);
  [[nodiscard]] std::string drawn(std::string_view kind);
  [[nodiscard]] static std::string id_of(std::uint64_t number);
  [[nodiscard]] std::string text_of(std::string_view letters, std::uint64_t length_max);
  [[nodiscard]] std::uint64_t unlike() { return ++drawn_ * 7'919 % 100'003 * 1'000; }

  std::mt19937_64 random_;
  const Profile& profile_;
  std::vector<Words> forms_;
  std::uint64_t drawn_ = 0;
  std::uint64_t added_ = 0;  // ids of streams
};

}  // namespace semel::tests
