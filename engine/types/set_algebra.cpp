#include "engine/types/set_algebra.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "engine/types/byte_list.hpp"

namespace semel::engine {

namespace {

constexpr std::size_t part_keys = 4'096;  // held at once, of all sets together
constexpr std::size_t part_bytes = std::size_t{1} << 20;

/// The next keys of one set: one at least, if there are any left.
bool read_part(const ReadSet& read, std::size_t set, std::size_t from, std::size_t share,
               ByteList& part) {
  part.clear();
  return read(set, [&](const ObjectReader& object) {
    const std::size_t keys = std::max<std::size_t>(part_keys / share, 1);
    const std::size_t to = from + std::min(keys, object.size() - std::min(from, object.size()));
    object.each(from, to, [&](const Element& element) {
      part.append(element.key);
      return part.bytes() < part_bytes / share;
    });
  });
}

/// Keeps the keys of `part` that the set has, or has not.
bool sift(const ReadSet& read, std::size_t set, bool has, ByteList& part) {
  ByteList kept;
  const bool done = read(set, [&](const ObjectReader& object) {
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (object.find(part.at(i)).has_value() == has) kept.append(part.at(i));
    }
  });
  std::swap(part, kept);
  return done;
}

/// The members of the set `first` that all of `others` have, or that none of them has.
bool walk(std::size_t first, std::size_t size, std::span<const std::size_t> others, bool have,
          const ReadSet& read, const TakeKey& take) {
  ByteList part;
  for (std::size_t at = 0; at < size;) {
    if (!read_part(read, first, at, 1, part)) return false;
    if (part.empty()) return true;
    at += part.size();
    for (const std::size_t other : others) {
      if (part.empty()) break;
      if (!sift(read, other, have, part)) return false;
    }
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (!take(part.at(i))) return true;
    }
  }
  return true;
}

/// One set of a union: the part of it that was read last, and where its next key is.
struct Source {
  std::size_t set;
  std::size_t read_to = 0;
  std::size_t next = 0;
  ByteList part{};

  [[nodiscard]] Bytes key() const noexcept { return part.at(next); }
};

/// False: it cannot be read. `source.part` is empty if nothing is left.
bool advance(Source& source, std::size_t share, const ReadSet& read) {
  if (++source.next < source.part.size()) return true;
  source.next = 0;
  if (!read_part(read, source.set, source.read_to, share, source.part)) return false;
  source.read_to += source.part.size();
  return true;
}

}  // namespace

bool intersect(std::span<const std::size_t> sizes, const ReadSet& read, const TakeKey& take) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] < sizes[b]; });
  const std::size_t least = order.front();
  return walk(least, sizes[least], std::span{order}.subspan(1), true, read, take);
}

bool subtract(std::span<const std::size_t> sizes, const ReadSet& read, const TakeKey& take) {
  std::vector<std::size_t> others;
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    if (sizes[i] != 0) others.push_back(i);
  }
  return walk(0, sizes[0], others, false, read, take);
}

bool unite(std::span<const std::size_t> sizes, const ReadSet& read, const TakeKey& take) {
  std::vector<Source> sources;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 0) sources.push_back({.set = i});
  }
  const std::size_t share = std::max<std::size_t>(sources.size(), 1);
  std::vector<Source*> heap;  // the one with the least key is in front
  const auto is_behind = [](const Source* a, const Source* b) { return a->key() > b->key(); };
  for (Source& source : sources) {
    if (!advance(source, share, read)) return false;
    if (!source.part.empty()) heap.push_back(&source);
  }
  std::make_heap(heap.begin(), heap.end(), is_behind);
  std::string last;
  bool has_last = false;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), is_behind);
    Source& source = *heap.back();
    if (!has_last || source.key() != last) {
      last = source.key();
      has_last = true;
      if (!take(last)) return true;
    }
    if (!advance(source, share, read)) return false;
    if (source.part.empty()) {
      heap.pop_back();
    } else {
      std::push_heap(heap.begin(), heap.end(), is_behind);
    }
  }
  return true;
}

}  // namespace semel::engine
