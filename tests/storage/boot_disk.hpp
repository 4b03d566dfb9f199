// A real disk in a boot of our choice.
#pragma once

#include <string>
#include <utility>

#include "storage/log/disk.hpp"

namespace semel::tests {

class BootDisk final : public storage::Disk {
 public:
  explicit BootDisk(std::string boot) : boot_(std::move(boot)) {}
  [[nodiscard]] std::string boot_id() override { return boot_; }

 private:
  const std::string boot_;
};

}  // namespace semel::tests
