// Writes a stream of event lines with a known share of repeats, fast enough to feed a comparison of
// 20 million lines: generate_stream LINES REPEAT_PERCENT SEED. The true counts go to stderr.
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/random.hpp"

namespace {

/// Mixes 64 bits one to one: different events never share a line.
std::uint64_t mix(std::uint64_t value) {
  return semel::base::next_random(value);
}

bool parse(const char* text, std::uint64_t& number) {
  const char* const end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, number);
  return parsed.ec == std::errc{} && parsed.ptr == end;
}

void append_digits(std::vector<char>& out, std::uint64_t number, std::uint64_t base, int digits) {
  std::array<char, 16> text{};
  for (int i = digits - 1; i >= 0; --i) {
    text[static_cast<std::size_t>(i)] = "0123456789abcdef"[number % base];
    number /= base;
  }
  out.insert(out.end(), text.begin(), text.begin() + digits);
}

/// "evt-90f3a1b2c4d5e6f7 acct-004211 18250"
void append_line(std::vector<char>& out, std::uint64_t event, std::uint64_t seed) {
  const std::uint64_t random = mix(event ^ (seed << 40));
  constexpr char head[] = "evt-";
  constexpr char middle[] = " acct-";
  out.insert(out.end(), head, head + 4);
  append_digits(out, random, 16, 16);
  out.insert(out.end(), middle, middle + 6);
  append_digits(out, random >> 20, 10, 6);
  out.push_back(' ');
  append_digits(out, random >> 40, 10, 5);
  out.push_back('\n');
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t lines = 0;
  std::uint64_t percent = 0;
  std::uint64_t seed = 0;
  if (argc != 4 || !parse(argv[1], lines) || !parse(argv[2], percent) || !parse(argv[3], seed) ||
      lines == 0 || percent > 99) {
    std::fputs("usage: generate_stream LINES REPEAT_PERCENT(0-99) SEED\n", stderr);
    return 1;
  }
  // Exactly so many repeats, spread evenly by chance: each line is one with the probability that
  // uses up what is left. The first line cannot be.
  std::uint64_t repeats_left = lines * percent / 100;
  const std::uint64_t repeats = repeats_left;
  std::uint64_t distinct = 0;
  std::uint64_t state = seed;
  std::vector<char> out;
  constexpr std::size_t flush_bytes = std::size_t{1} << 20;
  out.reserve(flush_bytes + 128);
  for (std::uint64_t i = 0; i < lines; ++i) {
    const std::uint64_t chance = mix(++state);
    const bool is_repeat = distinct > 0 && chance % (lines - i) < repeats_left;
    if (is_repeat) --repeats_left;
    append_line(out, is_repeat ? mix(++state) % distinct : distinct++, seed);
    if (out.size() < flush_bytes) continue;
    if (std::fwrite(out.data(), 1, out.size(), stdout) != out.size()) return 2;
    out.clear();
  }
  if (std::fwrite(out.data(), 1, out.size(), stdout) != out.size()) return 2;
  std::fprintf(stderr, "lines %ju distinct %ju repeats %ju seed %ju\n",
               static_cast<std::uintmax_t>(lines), static_cast<std::uintmax_t>(distinct),
               static_cast<std::uintmax_t>(repeats), static_cast<std::uintmax_t>(seed));
  return std::fflush(stdout) == 0 ? 0 : 2;
}
