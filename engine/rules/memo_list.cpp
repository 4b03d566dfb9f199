#include "engine/rules/memo_list.hpp"

#include <cstdint>

#include "base/assert.hpp"
#include "base/coding.hpp"

namespace semel::engine {
namespace {

constexpr std::size_t memo_name_field = 2;
constexpr std::size_t memo_bytes_field = 4;
static_assert(limits::step_name_max <= 0xffff);
static_assert(limits::memos_bytes_max <= 0xffffffff);

[[nodiscard]] std::size_t packed_size(const MemoView& memo) noexcept {
  const std::size_t digest = memo.payload.algorithm != 0 ? memo.payload.digest.size() : 0;
  return 1 + digest + memo_name_field + memo_bytes_field + memo.step.size() + memo.bytes.size();
}

void put_memo(const MemoView& memo, std::string& to) {
  to.push_back(static_cast<char>(memo.payload.algorithm));
  if (memo.payload.algorithm != 0) base::put_array(to, memo.payload.digest);
  base::put_fixed(to, static_cast<std::uint16_t>(memo.step.size()));
  base::put_fixed(to, static_cast<std::uint32_t>(memo.bytes.size()));
  to.append(memo.step).append(memo.bytes);
}

[[nodiscard]] bool are_same(const MemoView& memo, const Fingerprint& payload, Bytes step) noexcept {
  return memo.step == step && memo.payload == payload;
}

}  // namespace

bool MemoReader::next(MemoView& memo) noexcept {
  if (rest_.empty()) return false;
  base::ByteReader reader{rest_};
  MemoView found;
  found.payload.algorithm = reader.fixed<std::uint8_t>();
  if (found.payload.algorithm != 0) reader.array(found.payload.digest);
  const auto name_size = reader.fixed<std::uint16_t>();
  const auto memo_size = reader.fixed<std::uint32_t>();
  found.step = reader.take(name_size);
  found.bytes = reader.take(memo_size);
  if (!reader.is_good()) return false;
  memo = found;
  rest_ = reader.rest();
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
