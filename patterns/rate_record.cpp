// See rate_record.hpp.
#include "patterns/rate_record.hpp"

#include <charconv>
#include <iterator>
#include <string_view>

namespace semel::detail::rate {
namespace {

// Between two hits of a record: the newest may end a slice after the call that the record was
// written by, and the other leaves the window then.
constexpr Millis gap_max = limits::rate_period_max + limits::rate_period_max / slices + late_max;
constexpr std::string_view head = "rate/1";
constexpr Bytes names[] = {"fixed", "slide", "bucket"};  // by RateKind

class Words {
 public:
  explicit Words(Bytes text) noexcept : rest_(text) {}

  [[nodiscard]] bool word(Bytes expected) noexcept { return next() == expected; }
  [[nodiscard]] bool number(Number least, Number most, Number& number) noexcept {
    const Bytes text = next();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() && number >= least &&
           number <= most;
  }
  [[nodiscard]] bool ended() const noexcept { return ended_; }

 private:
  Bytes next() noexcept {
    const std::size_t blank = rest_.find(' ');
    const Bytes word = rest_.substr(0, blank);
    ended_ = blank == Bytes::npos;
    rest_ = ended_ ? Bytes{} : rest_.substr(blank + 1);
    return word;
  }
  Bytes rest_;
  bool ended_ = false;  // the last word was the last one
};

bool read_hits(Words& words, std::vector<Hit>& hits) {
  Hit hit;
  for (;;) {
    if (!words.number(1, limits::rate_max, hit.taken) || hits.size() == hits_max) return false;
    hits.push_back(hit);
    if (words.ended()) return true;
    Number gap = 0;
    if (!words.number(1, count_of(gap_max), gap)) return false;
    hit.age += millis_of(gap);
  }
}

}  // namespace

std::optional<State> read_state(Bytes value) {
  Words words{value};
  if (!words.word(head)) return std::nullopt;
  State state;
  RateTerms& terms = state.terms;
  const Bytes rest = value.substr(std::min(value.size(), head.size() + 1));
  const auto* const name = std::find_if(std::begin(names), std::end(names),
                                        [&](Bytes each) { return rest.starts_with(each); });
  if (name == std::end(names) || !words.word(*name)) return std::nullopt;
  terms.kind = static_cast<RateKind>(name - std::begin(names));
  Number period = 0;
  if (!words.number(1, limits::rate_max, terms.limit)) return std::nullopt;
  if (!words.number(1, count_of(limits::rate_period_max), period)) return std::nullopt;
  terms.period = millis_of(period);
  bool is_read = false;
  switch (terms.kind) {
    case RateKind::fixed_window:
      is_read = words.number(0, limits::rate_max, state.amount);
      break;
    case RateKind::sliding_window:
      is_read = read_hits(words, state.hits);
      break;
    case RateKind::token_bucket:
      is_read = words.number(1, limits::rate_max, terms.refill) && fill_time(terms) <= fill_max &&
                words.number(0, terms.refill - 1, state.amount);
      break;
  }
  if (!is_read || !words.ended()) return std::nullopt;
  return state;
}

std::string begin_value(const RateTerms& terms) {
  std::string value{head};
  value.append(" ").append(names[static_cast<std::size_t>(terms.kind)]);
  value.append(" ").append(std::to_string(terms.limit));
  return value.append(" ").append(std::to_string(terms.period.count()));
}
void append_number(std::string& value, Number number) {
  value.append(" ").append(std::to_string(number));
}

}  // namespace semel::detail::rate
