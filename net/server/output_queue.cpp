#include "net/server/output_queue.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "net/resp/release_capacity.hpp"

namespace semel::net {
namespace {

constexpr std::size_t worth_moving = std::size_t{16} << 10;

}  // namespace

void OutputQueue::add(std::string& text, Splices&& splices, std::size_t skip) {
  if (splices.empty()) {
    if (text.size() - skip >= worth_moving && (skip == 0 || empty())) {
      if (skip != 0) sent_ = skip;
      add_text(std::exchange(text, std::string{}));
      text_bytes_ -= skip;
    } else {
      add_copy(std::string_view{text}.substr(skip));
    }
  } else {
    std::size_t from = skip;
    for (Splice& each : splices) {
      SEMEL_ASSERT_SLOW(each.at >= from && each.at <= text.size());
      add_copy(std::string_view{text}.substr(from, each.at - from));
      add_large(std::move(each.bytes));
      from = each.at;
    }
    add_copy(std::string_view{text}.substr(from));
    splices.clear();
  }
  text.clear();
}

void OutputQueue::add_text(std::string&& text) {
  text_bytes_ += text.size();
  room_bytes_ += text.capacity();
  parts_.push_back({.text = std::move(text)});
}

void OutputQueue::add_copy(std::string_view text) {
  if (text.empty()) return;
  const bool joins = !empty() && parts_.back().large == nullptr &&
                     parts_.back().text.size() + text.size() <= worth_moving;
  if (!joins) return add_text(std::string{text});
  std::string& last = parts_.back().text;
  text_bytes_ += text.size();
  room_bytes_ -= last.capacity();
  last.append(text);
  room_bytes_ += last.capacity();
}

void OutputQueue::add_large(SharedBytes&& bytes) {
  if (uses_[bytes.get()]++ == 0) large_bytes_ += bytes->size();
  parts_.push_back({.large = std::move(bytes)});
}

std::string_view OutputQueue::front() const noexcept {
  return empty() ? std::string_view{} : parts_[first_].view().substr(sent_);
}

std::size_t OutputQueue::pieces(std::span<iovec> places) const noexcept {
  const std::size_t count = std::min(places.size(), parts());
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view bytes = i == 0 ? front() : parts_[first_ + i].view();
    // sendmsg() does not write to the bytes that it sends.
    places[i] = {const_cast<char*>(bytes.data()), bytes.size()};
  }
  return count;
}

void OutputQueue::sent(std::size_t bytes) {
  while (!empty()) {
    const Part& part = parts_[first_];
    const std::size_t left = part.view().size() - sent_;
    const std::size_t taken = std::min(bytes, left);
    SEMEL_ASSERT(part.large != nullptr || text_bytes_ >= taken);
    if (part.large == nullptr) text_bytes_ -= taken;
    sent_ += taken;
    bytes -= taken;
    if (taken < left) return;
    drop_first();
  }
  SEMEL_ASSERT(bytes == 0);  // no more was sent than there was
}

void OutputQueue::drop_first() {
  SEMEL_ASSERT(!empty());
  Part& part = parts_[first_];
  if (part.large != nullptr) {
    const auto use = uses_.find(part.large.get());
    SEMEL_ASSERT(use != uses_.end() && use->second != 0);
    if (--use->second == 0) {
      large_bytes_ -= part.large->size();
      uses_.erase(use);
    }
  }
  if (part.large == nullptr) room_bytes_ -= part.text.capacity();
  part = {};
  sent_ = 0;
  ++first_;
  constexpr std::size_t many = 64;
  if (empty()) {
    give_back(parts_);
    first_ = 0;
  } else if (first_ >= many && first_ >= parts_.size() / 2) {
    parts_.erase(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

}  // namespace semel::net
