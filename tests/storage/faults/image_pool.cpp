#include "tests/storage/faults/image_pool.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace semel::faults {
namespace {

constexpr std::size_t waiting_max = 48;
constexpr std::uint64_t storages_at_first = 4;  // so that a short run has some of each kind

}  // namespace

Image ImagePool::next(unsigned threads) {
  if (waiting_.empty() || storages_ < storages_at_first || random_.chance(1, 24)) {
    Image fresh{.number = ++numbers_, .joins = storages_++ % 2 == 0 ? Joins::yes : Joins::no};
    fresh.root = scratch_ / std::to_string(fresh.number);
    fresh.is_tiered = random_.chance(1, 2);
    fresh.all_ends = fresh.is_tiered && random_.chance(1, 2);
    fresh.ledger = new_ledger(threads);
    return fresh;
  }
  // In half of the draws an urgent one, if there is any.
  std::size_t chosen = random_.below(waiting_.size());
  if (random_.chance(1, 2)) {
    for (std::size_t i = 0; i < waiting_.size() && !waiting_[chosen].is_urgent; ++i) {
      chosen = (chosen + 1) % waiting_.size();
    }
  }
  std::swap(waiting_[chosen], waiting_.back());
  Image image = std::move(waiting_.back());
  waiting_.pop_back();
  return image;
}

Image ImagePool::child(const Image& of) {
  Image made{.number = ++numbers_,
             .lives = of.lives,
             .joins = of.joins,
             .is_tiered = of.is_tiered,
             .all_ends = of.all_ends};
  made.root = scratch_ / std::to_string(made.number);
  return made;
}

void ImagePool::add(std::vector<Image>&& images) {
  for (Image& image : images) waiting_.push_back(std::move(image));
  while (waiting_.size() > waiting_max) {
    const auto urgent = static_cast<std::size_t>(std::count_if(
        waiting_.begin(), waiting_.end(), [](const Image& image) { return image.is_urgent; }));
    const bool drops_urgent = urgent * 2 > waiting_.size();
    std::size_t chosen = random_.below(waiting_.size());
    while (waiting_[chosen].is_urgent != drops_urgent) chosen = (chosen + 1) % waiting_.size();
    remove(waiting_[chosen]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
}

void ImagePool::remove(const Image& image) {
  std::error_code code;  // what stays goes with the scratch directory
  std::filesystem::remove_all(image.root, code);
}

}  // namespace semel::faults
