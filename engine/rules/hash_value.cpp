#include "engine/rules/hash_value.hpp"

#include <algorithm>
#include <cstring>

#include <xxhash.h>

#include "base/assert.hpp"
#include "base/coding.hpp"
#include "engine/rules/bytes.hpp"

namespace semel::engine {

namespace {

constexpr char form_plain = 1;
constexpr char form_indexed = 2;
constexpr std::size_t plain_head = 2;
constexpr std::size_t indexed_head = 1 + sizeof(std::uint32_t) + sizeof(std::uint64_t);
constexpr char with_ends_more = 2;  ///< of a form, when fields may have ends
constexpr std::size_t ends_bytes = 3 * sizeof(std::int64_t);
constexpr std::size_t word_bytes = sizeof(std::uint64_t);

HashEnds read_ends(base::ByteReader& head) noexcept {
  const auto time = [&head] { return Timestamp{Millis{head.fixed<std::int64_t>()}}; };
  HashEnds ends;
  ends.key = time();
  ends.first = time();
  ends.last = time();
  return ends;
}
void put_end(char* to, Timestamp end) noexcept {
  const std::int64_t number = end.time_since_epoch().count();
  std::memcpy(to, &number, sizeof number);
}

std::uint64_t word_of(std::uint32_t hash, std::size_t at) noexcept {
  return std::uint64_t{hash} << 32 | at;
}
std::uint32_t hash_in(std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>(word >> 32);
}
std::size_t offset_in(std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>(word);
}

bool same(Bytes a, Bytes b) noexcept {
  return a.size() == b.size() && same_bytes(a.data(), b.data(), a.size());
}

/// The index of pairs as they lie there, ascending.
std::vector<std::uint64_t> index_of(const HashView& hash, std::uint64_t seed) {
  std::vector<std::uint64_t> words;
  words.reserve(hash.size());
  hash.each([&](const HashView::Found& pair) {
    words.push_back(word_of(hash_of_field(pair.field, seed), pair.at));
  });
  std::sort(words.begin(), words.end());
  return words;
}

}  // namespace

std::uint32_t hash_of_field(Bytes field, std::uint64_t seed) noexcept {
  return static_cast<std::uint32_t>(XXH3_64bits_withSeed(field.data(), field.size(), seed));
}

void put_ends(std::string& to, const HashEnds& ends) {
  for (const Timestamp end : {ends.key, ends.first, ends.last}) {
    base::put_fixed(to, static_cast<std::int64_t>(end.time_since_epoch().count()));
  }
}

// --- reading ----------------------------------------------------------------------------------

HashView::HashView(Bytes value) noexcept : good_(false) {
  if (value.empty()) return;
  has_ends_ = value[0] > form_indexed;
  const std::size_t more = has_ends_ ? ends_bytes : 0;
  const char form = static_cast<char>(value[0] - (has_ends_ ? with_ends_more : 0));
  if (form == form_plain && value.size() >= plain_head + more) {
    fields_ = static_cast<unsigned char>(value[1]);
    pairs_ = value.substr(plain_head);
    good_ = fields_ != 0 && fields_ <= plain_fields_max;
  } else if (form == form_indexed && value.size() >= indexed_head + more) {
    base::ByteReader head{value.substr(1)};
    const auto fields = head.fixed<std::uint32_t>();
    seed_ = head.fixed<std::uint64_t>();
    value.remove_prefix(indexed_head);
    const std::size_t index_bytes = std::size_t{fields} * word_bytes;
    if (fields > plain_fields_max && index_bytes + more <= value.size()) {
      fields_ = fields;
      pairs_ = value.substr(0, value.size() - index_bytes);
      index_ = value.substr(value.size() - index_bytes);
      good_ = true;
    }
  }
  if (has_ends_ && good_) [[unlikely]] {
    base::ByteReader head{pairs_};
    ends_ = read_ends(head);
    pairs_.remove_prefix(ends_bytes);
  }
  if (!good_) {
    fields_ = 0;
    has_ends_ = false;
  }
}

void HashView::take_end(std::optional<Found>& found) noexcept {
  base::ByteReader reader{found->value};
  const std::uint64_t end = reader.varint();
  if (!reader.is_good() || end > std::uint64_t{INT64_MAX}) {
    found.reset();
    return;
  }
  if (end != 0) found->due = Timestamp{Millis{static_cast<std::int64_t>(end)}};
  found->value = reader.rest();
}

std::optional<HashView::Found> HashView::pair_in(Bytes pairs, std::size_t at) noexcept {
  if (at > pairs.size()) return std::nullopt;  // by a damaged index
  base::ByteReader reader{pairs.substr(at)};
  const std::uint64_t field_bytes = reader.varint();
  const std::uint64_t value_bytes = reader.varint();
  const Bytes field = reader.take(field_bytes);
  const Bytes value = reader.take(value_bytes);
  if (!reader.is_good()) return std::nullopt;
  return Found{at, pairs.size() - reader.rest().size(), field, value, no_end};
}

std::uint64_t HashView::index_word(std::size_t position) const noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, index_.data() + position * word_bytes, word_bytes);
  return word;
}

std::size_t HashView::lower_bound(std::uint32_t hash) const noexcept {
  std::size_t first = 0;
  for (std::size_t count = fields_; count != 0;) {
    const std::size_t half = count / 2;
    if (hash_in(index_word(first + half)) < hash) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

std::optional<HashView::Found> HashView::find(Bytes field) const noexcept {
  if (!is_indexed()) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < fields_; ++i) {
      const std::optional<Found> pair = pair_at(at);
      if (!pair || same(pair->field, field)) return pair;
      at = pair->end;
    }
    return std::nullopt;
  }
  const std::uint32_t hash = hash_of_field(field, seed_);
  for (std::size_t i = lower_bound(hash); i < fields_; ++i) {
    const std::uint64_t word = index_word(i);
    if (hash_in(word) != hash) break;
    const std::optional<Found> pair = pair_at(offset_in(word));
    if (pair && same(pair->field, field)) return pair;
  }
  return std::nullopt;
}

bool is_sound(Bytes value) {
  const HashView hash{value};
  if (!hash.good()) return false;
  std::size_t pairs = 0;
  std::size_t end = 0;
  Timestamp first = no_end;
  Timestamp last{};
  hash.each([&](const HashView::Found& pair) {
    ++pairs;
    end = pair.end;
    first = std::min(first, pair.due);
    last = std::max(last, pair.due);
  });
  if (pairs != hash.size() || end != hash.pairs().size()) return false;
  if (hash.has_ends() && (first != hash.ends().first || last != hash.ends().last ||
                          first == no_end || hash.ends().key < Timestamp{})) {
    return false;
  }
  // Under any seed, two of one name are neighbours here, or have the same hash as all between.
  const std::vector<std::uint64_t> words = index_of(hash, hash.seed());
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (hash.is_indexed() && hash.index_word(i) != words[i]) return false;
    const Bytes field = hash.pair_at(offset_in(words[i]))->field;
    for (std::size_t j = i + 1; j < words.size() && hash_in(words[j]) == hash_in(words[i]); ++j) {
      if (same(hash.pair_at(offset_in(words[j]))->field, field)) return false;
    }
  }
  return true;
}

std::optional<HashEnds> ends_of_hash(Bytes value) noexcept {
  if (value.empty() || value[0] == form_plain || value[0] == form_indexed) [[likely]]
    return std::nullopt;
  if (is_large_hash(value)) {
    if (value.size() == large_hash_bytes) return std::nullopt;
    base::ByteReader reader{value.substr(large_hash_bytes)};
    return read_ends(reader);
  }
  const HashView hash{value};
  return hash.has_ends() ? std::optional{hash.ends()} : std::nullopt;
}

Timestamp hash_wake_of(Bytes value, Timestamp due) noexcept {
  if (value.empty() || value[0] == form_plain || value[0] == form_indexed) [[likely]]
    return due;
  const std::optional<HashEnds> ends = ends_of_hash(value);
  return ends ? std::min(due, ends->first) : due;
}

bool with_key_end(Bytes value, Timestamp key_end, std::string& to) {
  if (!ends_of_hash(value)) return false;
  std::size_t place = large_hash_bytes;
  if (!is_large_hash(value)) place = HashView{value}.is_indexed() ? indexed_head : plain_head;
  to.assign(value);
  put_end(to.data() + place, key_end);
  return true;
}

// --- writing ----------------------------------------------------------------------------------

HashWriter::HashWriter(const HashView& before, std::span<const HashChange> changes,
                       std::uint64_t seed)
    : before_(before),
      seed_(before.is_indexed() ? before.seed() : seed),
      pair_bytes_(before.pairs().size()),
      kept_bytes_(pair_bytes_) {
  if (changes.size() == 1) {
    take(changes[0], changes[0], 0);
  } else {
    take_all(changes, seed_);
  }
  std::sort(edits_.begin(), edits_.end(), [](const Edit& a, const Edit& b) { return a.at < b.at; });
  std::sort(fresh_.begin(), fresh_.end(),
            [](const Fresh& a, const Fresh& b) { return a.order < b.order; });
  std::ptrdiff_t shift = 0;
  for (Edit& edit : edits_) {
    shift += static_cast<std::ptrdiff_t>(edit.fresh_bytes) -
             static_cast<std::ptrdiff_t>(edit.end - edit.at);
    edit.shift = shift;
  }
}

/// Finds those of one field: their hashes are equal.
void HashWriter::take_all(std::span<const HashChange> changes, std::uint64_t seed) {
  std::vector<std::uint64_t> words(changes.size());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    words[i] = word_of(hash_of_field(changes[i].field, seed), i);
  }
  std::sort(words.begin(), words.end());
  for (std::size_t begin = 0, end = 0; begin < words.size(); begin = end) {
    while (end < words.size() && hash_in(words[end]) == hash_in(words[begin])) ++end;
    // Mostly one; each round takes all of the field of the first that is left.
    std::size_t left = end;
    for (std::size_t from = begin; from < left;) {
      const std::size_t first = offset_in(words[from]);
      std::size_t last = first;
      std::size_t others = from;
      for (std::size_t i = from; i < left; ++i) {
        const std::size_t each = offset_in(words[i]);
        if (same(changes[each].field, changes[first].field)) {
          last = each;
        } else {
          words[others++] = words[i];
        }
      }
      left = others;
      take(changes[first], changes[last], first);
    }
  }
}

void HashWriter::take(const HashChange& first, const HashChange& last, std::size_t order) {
  const std::optional<HashView::Found> found = before_.find(first.field);
  if (!found) {
    if (!last.value) return;
    fresh_.push_back({first.field, *last.value, last.due, order});
    pair_bytes_ += pair_bytes(first.field, *last.value, last.due);
    ++added_;
    return;
  }
  Edit edit{found->at, found->end, 0, first.field, {}, last.due, 0};
  if (last.value) {
    edit.value = *last.value;
    edit.fresh_bytes = pair_bytes(first.field, *last.value, last.due);
  } else {
    ++removed_;
  }
  const std::size_t gone = edit.end - edit.at;
  pair_bytes_ += edit.fresh_bytes - gone;  // wraps around and back
  kept_bytes_ += edit.fresh_bytes - gone;
  edits_.push_back(edit);
}

std::size_t HashWriter::pair_bytes(Bytes field, Bytes value, Timestamp due) const noexcept {
  const std::size_t bytes =
      value.size() + (before_.has_ends() ? base::varint_bytes(number_of_end(due)) : 0);
  return base::varint_bytes(field.size()) + base::varint_bytes(bytes) + field.size() + bytes;
}

void HashWriter::put_pair(Bytes field, Bytes value, Timestamp due, std::string& to) const {
  base::put_varint(to, field.size());
  if (!before_.has_ends()) [[likely]] {
    base::put_varint(to, value.size());
    to.append(field).append(value);
    return;
  }
  const std::uint64_t end = number_of_end(due);
  base::put_varint(to, base::varint_bytes(end) + value.size());
  to.append(field);
  base::put_varint(to, end);
  to.append(value);
}

std::size_t HashWriter::head_bytes() const noexcept {
  return (will_be_indexed() ? indexed_head : plain_head) + (before_.has_ends() ? ends_bytes : 0);
}

std::size_t HashWriter::bytes() const noexcept {
  return head_bytes() + pair_bytes_ + (will_be_indexed() ? fields() * word_bytes : 0);
}

void HashWriter::write(std::string& to) const {
  to.clear();
  to.reserve(bytes());
  const char more = before_.has_ends() ? with_ends_more : 0;
  if (!will_be_indexed()) {
    to.push_back(static_cast<char>(form_plain + more));
    to.push_back(static_cast<char>(fields()));
  } else {
    to.push_back(static_cast<char>(form_indexed + more));
    base::put_fixed(to, static_cast<std::uint32_t>(fields()));
    base::put_fixed(to, seed_);
  }
  if (before_.has_ends()) [[unlikely]]
    to.append(ends_bytes, '\0');
  write_pairs(to);
  if (before_.has_ends()) [[unlikely]]
    write_ends(to);
  if (will_be_indexed()) before_.is_indexed() ? patch_index(to) : make_index(to);
}

/// From the pairs that have been written.
void HashWriter::write_ends(std::string& to) const {
  const std::size_t head = head_bytes();
  const Bytes pairs = Bytes{to}.substr(head);
  HashEnds ends{before_.ends().key, no_end, Timestamp{}};
  for (std::size_t at = 0; at < pairs.size();) {
    const std::optional<HashView::Found> pair = HashView::pair_in(pairs, at);
    if (!pair) break;  // kept from damaged bytes
    const std::uint64_t end = base::ByteReader{pair->value}.varint();
    const Timestamp due = end == 0 ? no_end : Timestamp{Millis{static_cast<std::int64_t>(end)}};
    ends.first = std::min(ends.first, due);
    ends.last = std::max(ends.last, due);
    at = pair->end;
  }
  char* out = to.data() + head - ends_bytes;
  for (const Timestamp end : {ends.key, ends.first, ends.last}) {
    put_end(out, end);
    out += sizeof(std::int64_t);
  }
}

void HashWriter::write_pairs(std::string& to) const {
  std::size_t at = 0;
  for (const Edit& edit : edits_) {
    to.append(before_.pairs().substr(at, edit.at - at));
    if (edit.fresh_bytes != 0) put_pair(edit.field, edit.value, edit.due, to);
    at = edit.end;
  }
  to.append(before_.pairs().substr(at));
  for (const Fresh& fresh : fresh_) put_pair(fresh.field, fresh.value, fresh.due, to);
}

void HashWriter::make_index(std::string& to) const {
  std::vector<std::uint64_t> words;
  words.reserve(fields());
  // At most plain_fields_max fields were there, and the pairs written above are readable.
  const Bytes pairs = Bytes{to}.substr(head_bytes());
  for (std::size_t at = 0; at < pairs.size();) {
    const HashView::Found pair = *HashView::pair_in(pairs, at);
    words.push_back(word_of(hash_of_field(pair.field, seed_), at));
    at = pair.end;
  }
  std::sort(words.begin(), words.end());
  to.append(reinterpret_cast<const char*>(words.data()), words.size() * word_bytes);
}

std::optional<std::ptrdiff_t> HashWriter::shift_of(std::size_t offset) const noexcept {
  if (edits_.size() == 1) [[likely]] {
    const Edit& edit = edits_.front();
    if (offset == edit.at && edit.fresh_bytes == 0) return std::nullopt;
    // Without a branch: offsets come in no order, so it could not be predicted.
    return -static_cast<std::ptrdiff_t>(offset > edit.at) & edit.shift;
  }
  const auto behind =
      std::upper_bound(edits_.begin(), edits_.end(), offset,
                       [](std::size_t at, const Edit& edit) { return at < edit.at; });
  if (behind == edits_.begin()) return 0;
  const auto edit = behind - 1;
  if (edit->at != offset) return edit->shift;
  if (edit->fresh_bytes == 0) return std::nullopt;
  return edit == edits_.begin() ? 0 : (edit - 1)->shift;
}

/// The old index in order, each word moved as its pair was; the new pairs' words between them.
void HashWriter::patch_index(std::string& to) const {
  const bool stays =
      fresh_.empty() && removed_ == 0 &&
      std::all_of(edits_.begin(), edits_.end(), [](const Edit& edit) { return edit.shift == 0; });
  if (stays) {
    to.append(before_.index());
    return;
  }
  std::vector<std::uint64_t> fresh;
  fresh.reserve(fresh_.size());
  std::size_t at = kept_bytes_;
  for (const Fresh& each : fresh_) {
    fresh.push_back(word_of(hash_of_field(each.field, seed_), at));
    at += pair_bytes(each.field, each.value, each.due);
  }
  std::sort(fresh.begin(), fresh.end());

  const std::size_t begin = to.size();
  to.resize(begin + fields() * word_bytes);
  char* out = to.data() + begin;
  const auto put = [&out](std::uint64_t word) {
    std::memcpy(out, &word, word_bytes);
    out += word_bytes;
  };
  auto next = fresh.begin();
  for (std::size_t i = 0; i < before_.size(); ++i) {
    const std::uint64_t word = before_.index_word(i);
    const std::optional<std::ptrdiff_t> shift = shift_of(offset_in(word));
    if (!shift) continue;
    for (; next != fresh.end() && hash_in(*next) < hash_in(word); ++next) put(*next);
    put(word + static_cast<std::uint64_t>(*shift));
  }
  for (; next != fresh.end(); ++next) put(*next);
}

// --- packing ----------------------------------------------------------------------------------

std::size_t HashBytes::whole() const noexcept {
  const bool is_indexed = fields > plain_fields_max;
  return (is_indexed ? indexed_head + fields * word_bytes : plain_head) +
         (has_ends ? ends_bytes : 0) + pairs;
}

HashPacker::HashPacker(const HashBytes& bytes, std::uint64_t seed, const HashEnds* ends,
                       std::string& to)
    : to_(to) {
  const bool is_indexed = bytes.fields > plain_fields_max;
  to.clear();
  to.reserve(bytes.whole());
  const char more = bytes.has_ends ? with_ends_more : 0;
  to.push_back(static_cast<char>((is_indexed ? form_indexed : form_plain) + more));
  if (is_indexed) {
    base::put_fixed(to, static_cast<std::uint32_t>(bytes.fields));
    base::put_fixed(to, seed);
  } else {
    to.push_back(static_cast<char>(bytes.fields));
  }
  if (bytes.has_ends) put_ends(to, *ends);
  const std::size_t head = to.size();
  to.resize(bytes.whole());
  next_ = first_ = to.data() + head;
  index_ = is_indexed ? to.data() + to.size() - bytes.fields * word_bytes : nullptr;
}

void HashPacker::add(std::uint32_t hash, Bytes field, Bytes value) noexcept {
  if (index_ != nullptr) {
    const std::uint64_t word = word_of(hash, static_cast<std::size_t>(next_ - first_));
    std::memcpy(index_, &word, word_bytes);
    index_ += word_bytes;
  }
  base::ByteWriter writer{next_};
  writer.varint(field.size());
  writer.varint(value.size());
  writer.bytes(field);
  writer.bytes(value);
  next_ = writer.end();
}

void HashPacker::end() noexcept {
  const char* const end = to_.data() + to_.size();
  SEMEL_ASSERT(index_ == nullptr ? next_ == end : index_ == end);
}

namespace {

std::string rewritten(const HashView& hash, const HashView& as, std::uint64_t seed) {
  std::vector<HashChange> all;
  all.reserve(hash.size());
  hash.each([&](const HashView::Found& pair) {
    all.push_back({pair.field, pair.value, pair.due});
  });
  std::string bytes;
  HashWriter{as, all, hash.is_indexed() ? hash.seed() : seed}.write(bytes);
  return bytes;
}

}  // namespace

std::string with_ends(const HashView& hash, Timestamp key_end, std::uint64_t seed) {
  return rewritten(hash, HashView{HashEnds{.key = key_end}}, seed);
}
std::string without_ends(const HashView& hash, std::uint64_t seed) {
  return rewritten(hash, HashView{}, seed);
}

}  // namespace semel::engine
