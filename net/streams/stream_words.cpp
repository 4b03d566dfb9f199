#include "net/streams/stream_words.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "net/resp/text.hpp"
#include "net/settings/settings.hpp"
#include "semel/engine_host.hpp"

namespace semel::net {
namespace {

using engine::StreamId;
using engine::StreamTrim;
using engine::WantedId;

constexpr std::size_t id_bytes_max = 127;

/// A number as strtoull reads it where it is no plain one: blanks and a sign in front, zeros.
std::optional<std::uint64_t> unsigned_of(std::string_view text) {
  if (const auto number = integer_of(text)) {
    if (*number < 0) return std::nullopt;
    return static_cast<std::uint64_t>(*number);
  }
  if (text.empty()) return std::nullopt;
  const std::string copy{text};
  char* end = nullptr;
  errno = 0;
  const std::uint64_t number = std::strtoull(copy.c_str(), &end, 10);
  if (errno != 0 || end == copy.c_str() || end != copy.c_str() + copy.size()) return std::nullopt;
  return number;
}

/// `star`: set if the seq is "*". Null: it may not be.
std::optional<StreamId> id_of(std::string_view word, std::uint64_t missing_seq, bool* star) {
  if (word.size() > id_bytes_max) return std::nullopt;
  word = c_string_in(word);
  const std::size_t dash = word.find('-');
  const auto ms = unsigned_of(word.substr(0, dash));
  if (!ms) return std::nullopt;
  if (dash == std::string_view::npos) return StreamId{*ms, missing_seq};
  const std::string_view rest = word.substr(dash + 1);
  if (star != nullptr && rest == "*") {
    *star = true;
    return StreamId{*ms, 0};
  }
  const auto seq = unsigned_of(rest);
  if (!seq) return std::nullopt;
  return StreamId{*ms, *seq};
}

bool is_open(std::string_view word) noexcept {
  return word.size() > 1 && word.front() == '(';
}

/// Of an interval.
std::optional<StreamId> read_end(Call& call, std::string_view word, std::uint64_t missing_seq) {
  const auto id =
      is_open(word) ? stream_id_of(word.substr(1), missing_seq) : stream_end_of(word, missing_seq);
  if (!id) call.fail(bad_id_text);
  return id;
}

/// The options of XADD and XTRIM, up to the id.
class TrimReader {
 public:
  TrimReader(Call& call, AddWords& words, bool adds) noexcept
      : call_(call), words_(words), adds_(adds) {}

  [[nodiscard]] bool read() {
    while (at_ < call_.args.size() && !has_id_) {
      if (!read_option()) return false;
    }
    return is_consistent();
  }

 private:
  [[nodiscard]] bool fail(std::string_view text) {
    call_.fail(text);
    return false;
  }
  [[nodiscard]] std::size_t more() const noexcept { return call_.args.size() - 1 - at_; }

  [[nodiscard]] bool read_option() {
    const std::string_view option = call_.args[at_];
    if (adds_ && c_string_in(option) == "*") return take_id({});
    if (is_word(option, "maxlen") && more() > 0) return read_strategy(StreamTrim::By::length);
    if (is_word(option, "minid") && more() > 0) return read_strategy(StreamTrim::By::id);
    if (is_word(option, "limit") && more() > 0) return read_limit();
    if (!adds_) return call_.fail_syntax(), false;
    if (is_word(option, "nomkstream")) {
      words_.only_if_there = true;
      ++at_;
      return true;
    }
    const auto wanted = wanted_id_of(option);
    return wanted ? take_id(*wanted) : fail(bad_id_text);
  }
  [[nodiscard]] bool take_id(const WantedId& wanted) noexcept {
    words_.wanted = wanted;
    has_id_ = true;
    ++at_;
    words_.fields_at = at_;
    return true;
  }
  [[nodiscard]] bool read_strategy(StreamTrim::By by) {
    StreamTrim& trim = words_.trim;
    if (trim.by != StreamTrim::By::nothing) {
      return fail("ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
    }
    const std::string_view next = c_string_in(call_.args[at_ + 1]);
    const bool has_mark = more() > 1 && (next == "~" || next == "=");
    trim.is_about = has_mark && next == "~";
    at_ += has_mark ? 2 : 1;
    const std::string_view bound = call_.args[at_++];
    trim.by = by;
    if (by == StreamTrim::By::id) {
      const auto id = read_stream_id(call_, bound);
      if (!id) return false;
      trim.id = *id;
      return true;
    }
    std::int64_t length = 0;
    if (!read_number(call_, bound, length)) return false;
    if (length < 0) return fail("ERR The MAXLEN argument must be >= 0.");
    trim.length = static_cast<std::uint64_t>(length);
    return true;
  }
  [[nodiscard]] bool read_limit() {
    std::int64_t limit = 0;
    if (!read_number(call_, call_.args[at_ + 1], limit)) return false;
    if (limit < 0) return fail("ERR The LIMIT argument must be >= 0.");
    words_.trim.limit = static_cast<std::uint64_t>(limit);
    has_limit_ = true;
    at_ += 2;
    return true;
  }
  [[nodiscard]] bool is_consistent() {
    StreamTrim& trim = words_.trim;
    if (trim.limit != 0 && trim.by == StreamTrim::By::nothing) {
      return fail("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
    }
    if (!adds_ && trim.by == StreamTrim::By::nothing) {
      return fail("ERR syntax error, XTRIM must be called with a trimming strategy");
    }
    if (has_limit_ && !trim.is_about) {
      return fail("ERR syntax error, LIMIT cannot be used without the special ~ option");
    }
    const Settings& settings = call_.services.settings;
    const auto setting = [&](Setting which) {
      return static_cast<std::uint64_t>(settings.integer(which));
    };
    trim.node_entries = setting(Setting::stream_node_max_entries);
    trim.node_bytes = setting(Setting::stream_node_max_bytes);
    if (!has_limit_ && trim.is_about) trim.limit = usual_limit(trim.node_entries);
    return true;
  }
  /// A hundred nodes.
  [[nodiscard]] static std::uint64_t usual_limit(std::uint64_t node_entries) noexcept {
    constexpr std::uint64_t nodes = 100;
    constexpr std::uint64_t of_unbounded_nodes = 10'000;
    constexpr std::uint64_t most = 1'000'000;
    return node_entries == 0 ? of_unbounded_nodes : std::min(node_entries, most / nodes) * nodes;
  }

  Call& call_;
  AddWords& words_;
  const bool adds_;
  bool has_limit_ = false;
  bool has_id_ = false;
  std::size_t at_ = 2;
};

/// The options of XREAD and XREADGROUP.
class ReadReader {
 public:
  ReadReader(Call& call, bool of_group, ReadWords& words) noexcept
      : call_(call), of_group_(of_group), words_(words) {}

  [[nodiscard]] bool read() {
    while (at_ < call_.args.size() && !has_streams_) {
      if (!read_option()) return false;
    }
    if (!has_streams_) return call_.fail_syntax(), false;
    if (of_group_ && !words_.has_group) return fail("ERR Missing GROUP option for XREADGROUP");
    return true;
  }

 private:
  [[nodiscard]] bool fail(std::string_view text) {
    call_.fail(text);
    return false;
  }
  [[nodiscard]] bool read_option() {
    const std::string_view option = call_.args[at_];
    const std::size_t more = call_.args.size() - 1 - at_;
    if (is_word(option, "block") && more > 0) return read_block();
    if (is_word(option, "count") && more > 0) return read_count();
    if (is_word(option, "streams") && more > 0) return read_streams();
    if (is_word(option, "group") && more > 1) return read_group();
    if (is_word(option, "noack")) {
      if (!of_group_) {
        return fail(
            "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.");
      }
      words_.no_ack = true;
      ++at_;
      return true;
    }
    return call_.fail_syntax(), false;
  }
  [[nodiscard]] bool read_block() {
    if (call_.context().is_script()) {
      return fail("ERR " + std::string{call_.args[0]} +
                  " command is not allowed with BLOCK option from scripts");
    }
    const auto ms = integer_of(call_.args[at_ + 1]);
    if (!ms) return fail("ERR timeout is not an integer or out of range");
    if (*ms < 0) return fail("ERR timeout is negative");
    const std::int64_t now = call_.engine.clock().unix_ms();
    if (*ms > std::numeric_limits<std::int64_t>::max() - std::max<std::int64_t>(now, 0)) {
      return fail("ERR timeout is out of range");
    }
    words_.block_ms = *ms;
    at_ += 2;
    return true;
  }
  [[nodiscard]] bool read_count() {
    std::int64_t count = 0;
    if (!read_number(call_, call_.args[at_ + 1], count)) return false;
    words_.count = static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
    at_ += 2;
    return true;
  }
  [[nodiscard]] bool read_streams() {
    const auto rest = call_.args.subspan(at_ + 1);
    if (rest.size() % 2 != 0) {
      return fail(
          "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be "
          "specified.");
    }
    words_.keys = rest.first(rest.size() / 2);
    words_.ids = rest.subspan(rest.size() / 2);
    has_streams_ = true;
    return true;
  }
  [[nodiscard]] bool read_group() {
    if (!of_group_) {
      return fail(
          "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.");
    }
    words_.has_group = true;
    words_.group = call_.args[at_ + 1];
    words_.consumer = call_.args[at_ + 2];
    at_ += 3;
    return true;
  }

  Call& call_;
  const bool of_group_;
  ReadWords& words_;
  bool has_streams_ = false;
  std::size_t at_ = 1;
};

}  // namespace

std::optional<StreamId> stream_id_of(std::string_view word, std::uint64_t missing_seq) {
  return id_of(word, missing_seq, nullptr);
}

std::optional<StreamId> stream_end_of(std::string_view word, std::uint64_t missing_seq) {
  const std::string_view text = word.size() > id_bytes_max ? word : c_string_in(word);
  if (text == "-") return StreamId{};
  if (text == "+") return engine::stream_id_max;
  return id_of(word, missing_seq, nullptr);
}

std::optional<WantedId> wanted_id_of(std::string_view word) {
  bool star = false;
  const auto id = id_of(word, 0, &star);
  if (!id) return std::nullopt;
  return WantedId{*id, true, !star};
}

std::optional<StreamId> read_stream_id(Call& call, std::string_view word) {
  const auto id = stream_id_of(word);
  if (!id) call.fail(bad_id_text);
  return id;
}

std::optional<StreamId> read_interval_begin(Call& call, std::string_view word) {
  const auto id = read_end(call, word, 0);
  if (!id || !is_open(word)) return id;
  const auto behind = engine::id_behind(*id);
  if (!behind) call.fail("ERR invalid start ID for the interval");
  return behind;
}

std::optional<StreamId> read_interval_end(Call& call, std::string_view word) {
  const auto id = read_end(call, word, engine::stream_id_max.seq);
  if (!id || !is_open(word)) return id;
  const auto before = engine::id_before(*id);
  if (!before) call.fail("ERR invalid end ID for the interval");
  return before;
}

bool read_number(Call& call, std::string_view word, std::int64_t& number) {
  const auto read = integer_of(word);
  if (!read) return call.fail_number(), false;
  number = *read;
  return true;
}

bool read_add(Call& call, AddWords& words) {
  words.fields_at = call.args.size() + 1;  // no id: then there are too few words
  return TrimReader{call, words, true}.read();
}

bool read_trim(Call& call, AddWords& words) {
  return TrimReader{call, words, false}.read();
}

bool read_read(Call& call, bool of_group, ReadWords& words) {
  return ReadReader{call, of_group, words}.read();
}

}  // namespace semel::net
