// Copies of what the last boots found, before anything was changed: for a look at what led to a
// finding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/storage/faults/scratch.hpp"

namespace semel::faults {

class KeptBoots {
 public:
  /// `to`: where keep() puts them; empty: nothing is copied.
  explicit KeptBoots(std::string to) : to_(std::move(to)) {}

  /// Before process `number` opens `root`.
  void add(const std::string& root, std::uint64_t number) {
    if (to_.empty() || !std::filesystem::exists(root)) return;
    copies_.push_back(scratch_ / ("aside" + std::to_string(number)));
    std::filesystem::copy(root, copies_.back(), std::filesystem::copy_options::recursive);
    if (copies_.size() <= boots_max) return;
    std::filesystem::remove_all(copies_.front());
    copies_.pop_front();
  }
  /// Process `number` has found something.
  void keep(std::uint64_t number) const {
    if (to_.empty()) return;
    for (const std::string& copy : copies_) {
      const std::string to = to_ + "/found" + std::to_string(number) + copy.substr(copy.rfind('/'));
      std::filesystem::create_directories(to);
      std::filesystem::copy(copy, to, std::filesystem::copy_options::recursive);
    }
  }

 private:
  static constexpr std::size_t boots_max = 4;
  const std::string to_;
  const Scratch scratch_;
  std::deque<std::string> copies_;
};

}  // namespace semel::faults
