// The bits of strings: SETBIT, GETBIT, BITCOUNT, BITPOS, BITOP. BITFIELD has a file of its own.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/types/bits.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"
#include "net/strings/string_command.hpp"

namespace semel::net {
namespace {

using engine::BitRange;
using engine::StringEdit;

/// Which part of a string BITCOUNT and BITPOS are about, as the words say.
struct Part {
  std::int64_t start = 0;
  std::int64_t end = -1;
  bool is_of_bits = false;
  bool has_end = false;
};

/// Which of two wrong words is reported.
enum class PartOrder : std::uint8_t { end_first, unit_first };

/// Reads the words from args[`at`] on into `part`. Returns the error in them.
ArgumentError read_part(const Call& call, std::size_t at, PartOrder order, Part& part) {
  const auto words = call.args.subspan(at);
  if (words.size() > 3) return ArgumentError::syntax;
  const auto start = words.empty() ? 0 : integer_of(words[0]);
  const auto end = words.size() < 2 ? -1 : integer_of(words[1]);
  const bool is_unit = words.size() < 3 || is_word(words[2], "bit") || is_word(words[2], "byte");
  if (!start || (!end && order == PartOrder::end_first)) return ArgumentError::integer;
  if (end) part = {*start, *end, words.size() == 3 && is_word(words[2], "bit"), words.size() >= 2};
  if (!is_unit) return ArgumentError::syntax;
  return end ? ArgumentError::none : ArgumentError::integer;
}

/// The bits of the part in a string of `size` bytes; none: it is empty. Negative ends count from
/// the end of the string.
std::optional<BitRange> range_of(const Part& part, std::size_t size) noexcept {
  const auto whole = static_cast<std::int64_t>(part.is_of_bits ? size * 8 : size);
  const auto within = [&](std::int64_t at) {
    return std::max<std::int64_t>(at < 0 ? at + whole : at, 0);
  };
  const std::int64_t start = within(part.start);
  const std::int64_t end = std::min(within(part.end), whole - 1);
  if (start > end) return std::nullopt;
  const auto first = static_cast<std::uint64_t>(start);
  const auto last = static_cast<std::uint64_t>(end);
  return part.is_of_bits ? BitRange{first, last} : BitRange{first * 8, last * 8 + 7};
}

/// What BITPOS answers about a string.
std::int64_t position_in(Bytes bytes, bool is_one, const Part& part) noexcept {
  const std::optional<BitRange> range = range_of(part, bytes.size());
  if (!range) return -1;
  const auto found = engine::find_bit(bytes, is_one, *range);
  if (found) return static_cast<std::int64_t>(*found);
  // Behind the end of a string are zeros, unless the words have an end.
  return is_one || part.has_end ? -1 : static_cast<std::int64_t>(bytes.size() * 8);
}

// --- BITOP ---------------------------------------------------------------------------------------

enum class BitOperation : std::uint8_t { both, either, one, inverted };

std::optional<BitOperation> bit_operation_of(std::string_view word) noexcept {
  if (is_word(word, "and")) return BitOperation::both;
  if (is_word(word, "or")) return BitOperation::either;
  if (is_word(word, "xor")) return BitOperation::one;
  if (is_word(word, "not")) return BitOperation::inverted;
  return std::nullopt;
}

/// Takes the next operand into `result`; the shorter of both has zeros at its end.
void combine(std::string& result, BitOperation operation, Bytes operand) {
  if (operand.size() > result.size()) result.resize(operand.size(), '\0');
  const auto each = [&](auto&& change) {
    std::transform(operand.begin(), operand.end(), result.begin(), result.begin(), change);
  };
  switch (operation) {
    case BitOperation::both:
      each([](char a, char b) { return static_cast<char>(a & b); });
      std::fill(result.begin() + static_cast<std::ptrdiff_t>(operand.size()), result.end(), '\0');
      return;
    case BitOperation::either:
      return each([](char a, char b) { return static_cast<char>(a | b); });
    case BitOperation::one:
      return each([](char a, char b) { return static_cast<char>(a ^ b); });
    case BitOperation::inverted:
      return each([](char a, char) { return static_cast<char>(~a); });
  }
}

/// The result of all operands. False: the error is the reply.
bool combined(Call& call, BitOperation operation, std::string& result) {
  const auto operands = call.args.subspan(3);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    bool is_there = false;
    const bool is_read = read_string(call, operands[i], [&](Bytes operand) {
      is_there = true;
      if (i == 0 && operation != BitOperation::inverted) {
        result.assign(operand);
      } else {
        combine(result, operation, operand);
      }
    });
    if (!is_read) return false;
    if (!is_there) combine(result, operation, {});
  }
  return true;
}

}  // namespace

std::optional<std::uint64_t> bit_offset_of(const Call& call, std::string_view word, unsigned bits) {
  const bool is_counted = bits != 0 && word.starts_with('#');
  const auto number = integer_of(word.substr(is_counted ? 1 : 0));
  if (!number) return std::nullopt;
  auto offset = static_cast<std::uint64_t>(*number);
  if (is_counted) offset *= bits;  // modulo 2^64, as a redis-server multiplies
  const bool is_negative = (offset >> 63) != 0;
  constexpr std::size_t of_group = std::size_t{512} << 20;
  const std::size_t bytes_max = setting_of_writes(call, Setting::proto_max_bulk_len, of_group);
  if (is_negative || offset / 8 >= bytes_max) return std::nullopt;
  return offset;
}

namespace handlers {

void setbit(Call& call) {
  const auto offset = bit_offset_of(call, call.args[2], 0);
  if (!offset) return call.fail(bad_bit_offset);
  const auto bit = integer_of(call.args[3]);
  if (!bit || (*bit != 0 && *bit != 1)) {
    return call.fail("ERR bit is not an integer or out of range");
  }
  bool was_one = false;
  const std::size_t bytes_max = engine::value_bytes_max(call.engine);
  const auto done = change_string(call, call.key(), [&](StringEdit& edit) {
    was_one = engine::bit_at(edit.before(), *offset);
    const ErrorCode grown = grow_string(edit, static_cast<std::size_t>(*offset / 8 + 1), bytes_max);
    if (grown != ErrorCode::ok) return grown;
    if (was_one != (*bit != 0)) engine::set_bit(edit.value(), *offset, *bit != 0);
    return ErrorCode::ok;
  });
  if (!done) return;
  if (done->is_changed) call.notify('$', "setbit", call.key());
  call.reply.integer(was_one ? 1 : 0);
}

void getbit(Call& call) {
  const auto offset = bit_offset_of(call, call.args[2], 0);
  if (!offset) return call.fail(bad_bit_offset);
  bool is_one = false;
  const bool is_read =
      read_string(call, call.key(), [&](Bytes value) { is_one = engine::bit_at(value, *offset); });
  if (is_read) call.reply.integer(is_one ? 1 : 0);
}

void bitcount(Call& call) {
  Part part;
  // A string that is missing, or none, is answered before wrong words.
  ArgumentError error = call.args.size() == 3 ? ArgumentError::syntax
                                              : read_part(call, 2, PartOrder::end_first, part);
  bool is_there = false;
  std::uint64_t ones = 0;
  const bool is_read = read_string(call, call.key(), [&](Bytes value) {
    is_there = true;
    // Both ends may be in front of the string; only if they are in order is that its first byte.
    // Of ends that are not, the answer is 0, whatever follows them.
    const bool is_reversed = part.start < 0 && part.end < 0 && part.start > part.end;
    if (is_reversed) error = ArgumentError::none;
    if (is_reversed || error != ArgumentError::none) return;
    const std::optional<BitRange> range = range_of(part, value.size());
    if (range) ones = engine::count_ones(value, *range);
  });
  if (!is_read) return;
  if (is_there && error != ArgumentError::none) return call.fail(error);
  call.reply.integer(static_cast<std::int64_t>(ones));
}

void bitpos(Call& call) {
  const auto bit = integer_of(call.args[2]);
  if (!bit) return call.fail_number();
  if (*bit != 0 && *bit != 1) return call.fail("ERR The bit argument must be 1 or 0.");
  const bool is_one = *bit == 1;
  Part part;
  const ArgumentError error = read_part(call, 3, PartOrder::unit_first, part);
  bool is_there = false;
  std::int64_t position = is_one ? -1 : 0;
  const bool is_read = read_string(call, call.key(), [&](Bytes value) {
    is_there = true;
    if (error == ArgumentError::none) position = position_in(value, is_one, part);
  });
  if (!is_read) return;
  if (is_there && error != ArgumentError::none) return call.fail(error);
  call.reply.integer(position);
}

void bitop(Call& call) {
  const auto operation = bit_operation_of(call.args[1]);
  if (!operation) return call.fail_syntax();
  if (*operation == BitOperation::inverted && call.args.size() != 4) {
    return call.fail("ERR BITOP NOT must be called with a single source key.");
  }
  auto section = section_of(call, call.args.subspan(2));
  if (!section) return;
  std::string result;
  if (!combined(call, *operation, result)) return;
  const Bytes target = call.args[2];
  if (result.empty()) {
    const Result<bool> gone = call.store().del(target);
    if (!gone.ok()) return call.fail(gone.error());
    if (const Status done = section->commit(); !done) return call.fail(done.error());
    if (*gone) call.notify('g', "del", target);
    return call.reply.integer(0);
  }
  const auto put = engine::replace_string(call.engine, {call.client.db, target}, result);
  if (!put.ok()) return fail_string(call, put.error());
  if (const Status done = section->commit(); !done) return call.fail(done.error());
  if (put->is_new()) call.notify('n', "new", target);
  call.notify('$', "set", target);
  call.reply.integer(static_cast<std::int64_t>(result.size()));
}

}  // namespace handlers
}  // namespace semel::net
