#include "gateway/store/node_reply.hpp"

#include <charconv>
#include <utility>

namespace semel::gateway {
namespace {

using State = ParsedReply::State;

/// Reads pieces from the front. Once `state` is not complete, it reads nothing more.
class Pieces {
 public:
  explicit Pieces(std::string_view bytes) noexcept : bytes_(bytes) {}

  /// A line without its end.
  [[nodiscard]] std::string_view line() noexcept {
    if (state_ != State::complete) return {};
    const std::string_view rest = bytes_.substr(at_, limits::reply_line_max + 2);
    const std::size_t end = rest.find("\r\n");
    if (end != std::string_view::npos) {
      at_ += end + 2;
      return rest.substr(0, end);
    }
    state_ = rest.size() < limits::reply_line_max + 2 ? State::incomplete : State::invalid;
    needed_ = bytes_.size() + 1;
    return {};
  }
  /// `count` bytes and the line's end behind them.
  [[nodiscard]] std::string_view block(std::size_t count) noexcept {
    if (state_ != State::complete) return {};
    const std::size_t end = at_ + count + 2;
    if (end > limits::reply_bytes_max) {
      state_ = State::invalid;
    } else if (bytes_.size() < end) {
      state_ = State::incomplete;
      needed_ = end;
    } else if (bytes_.substr(end - 2, 2) != "\r\n") {
      state_ = State::invalid;
    } else {
      const std::string_view found = bytes_.substr(at_, count);
      at_ = end;
      return found;
    }
    return {};
  }
  void refuse() noexcept {
    if (state_ == State::complete) state_ = State::invalid;
  }
  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] std::size_t taken() const noexcept { return at_; }
  [[nodiscard]] std::size_t needed() const noexcept { return needed_; }

 private:
  const std::string_view bytes_;
  std::size_t at_ = 0;
  std::size_t needed_ = 0;
  State state_ = State::complete;
};

/// A number from -1 on; none: it is not one.
std::optional<std::int64_t> count_of(std::string_view digits) noexcept {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc{} || end != digits.data() + digits.size() || count < -1) {
    return std::nullopt;
  }
  return count;
}

/// A text, or null. Arrays are refused here.
std::optional<std::string> take_text(Pieces& pieces, std::string_view line) {
  if (line.empty()) {
    pieces.refuse();
    return std::nullopt;
  }
  const std::string_view rest = line.substr(1);
  const auto count = count_of(rest);
  switch (line.front()) {
    case '+':
      return std::string{rest};
    case ':': {
      std::int64_t number = 0;
      const char* const end = rest.data() + rest.size();
      const auto [read, error] = std::from_chars(rest.data(), end, number);
      if (error != std::errc{} || read != end) pieces.refuse();
      return std::string{rest};
    }
    case '$':
      if (count == -1) return std::nullopt;
      if (!count || static_cast<std::size_t>(*count) > limits::reply_bytes_max) {
        pieces.refuse();
        return std::nullopt;
      }
      return std::string{pieces.block(static_cast<std::size_t>(*count))};
    default:
      pieces.refuse();
      return std::nullopt;
  }
}

void take_items(Pieces& pieces, std::string_view digits, NodeReply& reply) {
  const auto count = count_of(digits);
  if (!count || *count > static_cast<std::int64_t>(limits::reply_items_max)) {
    pieces.refuse();
    return;
  }
  if (*count < 0) return;
  reply.kind = NodeReply::Kind::array;
  for (std::int64_t i = 0; i < *count && pieces.state() == State::complete; ++i) {
    const std::string_view line = pieces.line();
    if (pieces.state() == State::complete) reply.items.push_back(take_text(pieces, line));
  }
}

}  // namespace

std::optional<std::string_view> NodeReply::field(std::string_view name) const noexcept {
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i] != name) continue;
    if (!items[i + 1]) return std::nullopt;
    return std::string_view{*items[i + 1]};
  }
  return std::nullopt;
}

ParsedReply parse_reply(std::string_view bytes) {
  ParsedReply parsed;
  Pieces pieces{bytes};
  const std::string_view line = pieces.line();
  if (pieces.state() == State::complete) {
    if (line.starts_with('*')) {
      take_items(pieces, line.substr(1), parsed.reply);
    } else if (line.starts_with('-')) {
      parsed.reply.kind = NodeReply::Kind::error;
      parsed.reply.text = line.substr(1);
    } else if (auto text = take_text(pieces, line)) {
      parsed.reply.kind = NodeReply::Kind::text;
      parsed.reply.text = *std::move(text);
    }
  }
  parsed.state = pieces.state();
  parsed.bytes = parsed.state == State::complete ? pieces.taken() : pieces.needed();
  return parsed;
}

}  // namespace semel::gateway
