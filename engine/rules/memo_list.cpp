#include "engine/rules/memo_list.hpp"

#include <cstdint>
#include <cstring>

#include "base/assert.hpp"

namespace semel::engine {
namespace {

constexpr std::size_t memo_name_field = 2;
constexpr std::size_t memo_bytes_field = 4;
static_assert(limits::step_name_max <= 0xffff);
static_assert(limits::memos_bytes_max <= 0xffffffff);

template <class Number>
[[nodiscard]] bool take_memo_number(Bytes& from, Number& number) noexcept {
  if (from.size() < sizeof number) return false;
  std::memcpy(&number, from.data(), sizeof number);
  from.remove_prefix(sizeof number);
  return true;
}

[[nodiscard]] bool take_memo_bytes(Bytes& from, std::size_t count, Bytes& taken) noexcept {
  if (count > from.size()) return false;
  taken = from.substr(0, count);
  from.remove_prefix(count);
  return true;
}

[[nodiscard]] std::size_t packed_size(const MemoView& memo) noexcept {
  const std::size_t digest = memo.payload.algorithm != 0 ? memo.payload.digest.size() : 0;
  return 1 + digest + memo_name_field + memo_bytes_field + memo.step.size() + memo.bytes.size();
}

template <class Number>
void put_memo_number(Number number, std::string& to) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void put_memo(const MemoView& memo, std::string& to) {
  to.push_back(static_cast<char>(memo.payload.algorithm));
  if (memo.payload.algorithm != 0) {
    to.append(reinterpret_cast<const char*>(memo.payload.digest.data()),
              memo.payload.digest.size());
  }
  put_memo_number(static_cast<std::uint16_t>(memo.step.size()), to);
  put_memo_number(static_cast<std::uint32_t>(memo.bytes.size()), to);
  to.append(memo.step).append(memo.bytes);
}

[[nodiscard]] bool are_same(const MemoView& memo, const Fingerprint& payload, Bytes step) noexcept {
  return memo.step == step && memo.payload == payload;
}

}  // namespace

bool MemoReader::next(MemoView& memo) noexcept {
  Bytes rest = rest_;
  std::uint16_t name_size = 0;
  std::uint32_t memo_size = 0;
  Fingerprint payload;
  if (!take_memo_number(rest, payload.algorithm)) return false;
  if (payload.algorithm != 0 && !take_memo_number(rest, payload.digest)) return false;
  if (!take_memo_number(rest, name_size) || !take_memo_number(rest, memo_size)) return false;
  if (!take_memo_bytes(rest, name_size, memo.step) ||
      !take_memo_bytes(rest, memo_size, memo.bytes)) {
    return false;
  }
  memo.payload = payload;
  rest_ = rest;
  return true;
}

bool is_sound_memos(Bytes memos) noexcept {
  MemoReader reader{memos};
  for (MemoView memo; reader.next(memo);) {
  }
  return reader.is_at_end();
}

std::optional<Bytes> find_memo(Bytes memos, const Fingerprint& payload, Bytes step) noexcept {
  std::optional<Bytes> found;
  MemoReader reader{memos};
  for (MemoView memo; reader.next(memo);) {
    if (memo.step != step) continue;
    if (memo.payload == payload) return memo.bytes;
    const bool is_other =
        memo.payload.algorithm != 0 && memo.payload.algorithm == payload.algorithm;
    if (!is_other) found = memo.bytes;
  }
  return found;
}

MemoSize size_with(Bytes memos, const MemoView& added) noexcept {
  MemoSize size{.bytes = packed_size(added), .count = 1};
  MemoReader reader{memos};
  for (MemoView memo; reader.next(memo);) {
    if (are_same(memo, added.payload, added.step)) continue;
    size.bytes += packed_size(memo);
    ++size.count;
  }
  return size;
}

std::string with_memo(Bytes memos, const MemoView& added) {
  SEMEL_ASSERT(added.step.size() <= limits::step_name_max);
  std::string list;
  list.reserve(memos.size() + packed_size(added));
  MemoReader reader{memos};
  for (MemoView memo; reader.next(memo);) {
    if (!are_same(memo, added.payload, added.step)) put_memo(memo, list);
  }
  put_memo(added, list);
  return list;
}

}  // namespace semel::engine
