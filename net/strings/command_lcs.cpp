// LCS: what two strings have in common.
#include <cstdint>
#include <string>

#include "engine/types/common_subsequence.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"
#include "net/strings/string_command.hpp"

namespace semel::net {
namespace {

struct LcsWords {
  bool only_length = false;
  bool has_runs = false;
  bool has_lengths = false;
  std::int64_t length_min = 0;  ///< of a run
};

/// False: the error is the reply.
bool read_lcs(Call& call, LcsWords& words) {
  for (std::size_t i = 3; i < call.args.size(); ++i) {
    const std::string_view word = call.args[i];
    if (is_word(word, "len")) {
      words.only_length = true;
    } else if (is_word(word, "idx")) {
      words.has_runs = true;
    } else if (is_word(word, "withmatchlen")) {
      words.has_lengths = true;
    } else if (is_word(word, "minmatchlen") && i + 1 < call.args.size()) {
      const auto length = integer_of(call.args[++i]);
      if (!length) return call.fail_number(), false;
      words.length_min = *length;
    } else {
      return call.fail_syntax(), false;
    }
  }
  if (!words.only_length || !words.has_runs) return true;
  call.fail("ERR If you want both the length and indexes, please just use IDX.");
  return false;
}

/// Both strings of one instant. False: the error is the reply.
bool read_both(Call& call, std::string& one, std::string& other) {
  auto section = section_of(call, call.args.subspan(1, 2));
  if (!section) return false;
  // Both are looked up before the kind of either is judged.
  bool is_other_kind = false;
  for (std::string* const string : {&one, &other}) {
    const Bytes key = call.args[string == &one ? 1 : 2];
    bool is_there = false;
    const Status done =
        engine::read_string(call.engine, {call.client.db, key}, [&](const Bytes* value) {
          is_there = value != nullptr;
          if (is_there) string->assign(*value);
        });
    if (done && !is_there) call.notify('m', "keymiss", key);
    if (done) continue;
    if (done.error().code != ErrorCode::wrong_type) return call.fail(done.error()), false;
    is_other_kind = true;
  }
  if (is_other_kind) return call.fail("ERR The specified keys must contain string values"), false;
  const Status done = section->commit();
  if (!done) call.fail(done.error());
  return done.ok();
}

/// A redis-server has four bytes for each cell of the table, and this limit; we have a bit.
bool fits(const Call& call, std::size_t one, std::size_t other) noexcept {
  constexpr std::uint64_t cell_bytes = 4;
  const auto bytes_max =
      static_cast<std::uint64_t>(call.services.settings.integer(Setting::proto_max_bulk_len));
  return (one + 1) <= bytes_max / cell_bytes / (other + 1);
}

void write_runs(Call& call, const LcsWords& words, const engine::CommonSubsequence& found) {
  const auto is_shown = [&](const engine::CommonRun& run) {
    return std::int64_t{run.length} >= words.length_min;
  };
  std::size_t shown = 0;
  for (const engine::CommonRun& run : found.runs) shown += is_shown(run) ? 1 : 0;
  call.reply.map(2);
  call.reply.bulk("matches");
  call.reply.array(shown);
  const auto write_ends = [&](std::uint32_t from, std::uint32_t length) {
    call.reply.array(2);
    call.reply.integer(from);
    call.reply.integer(std::int64_t{from} + length - 1);
  };
  for (const engine::CommonRun& run : found.runs) {
    if (!is_shown(run)) continue;
    call.reply.array(words.has_lengths ? 3 : 2);
    write_ends(run.one, run.length);
    write_ends(run.other, run.length);
    if (words.has_lengths) call.reply.integer(run.length);
  }
  call.reply.bulk("len");
  call.reply.integer(found.length);
}

}  // namespace

namespace handlers {

void lcs(Call& call) {
  std::string one;
  std::string other;
  if (!read_both(call, one, other)) return;
  LcsWords words;
  if (!read_lcs(call, words)) return;
  if (!fits(call, one.size(), other.size())) {
    return call.fail(
        "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
  }
  if (words.only_length) return call.reply.integer(engine::common_length(one, other));
  const engine::CommonSubsequence found = engine::common_subsequence(one, other);
  words.has_runs ? write_runs(call, words, found) : call.reply.bulk(found.bytes);
}

}  // namespace handlers
}  // namespace semel::net
