// Counts of an import or export, and the names of the things that were refused.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace semel::tool {

/// For one line: quoted, other bytes than printable ASCII as \xNN, and cut after 80 bytes.
[[nodiscard]] std::string shown_name(std::string_view name);

class Tally {
 public:
  /// `program`: what lines of refusals begin with.
  explicit Tally(std::string program) : program_(std::move(program)) {}

  /// One of `kind`: "strings", "libraries", ..
  void add(std::string_view kind) { ++counts_[std::string{kind}]; }
  /// Prints the first of these, and counts all by their reason.
  void refuse(const std::string& what, const std::string& reason);

  [[nodiscard]] std::uint64_t count(std::string_view kind) const;
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }
  /// "3 strings, 2 lists; 1 refused: 1 module"
  [[nodiscard]] std::string summary() const;
  [[nodiscard]] const std::string& program() const noexcept { return program_; }

 private:
  std::string program_;
  std::map<std::string, std::uint64_t> counts_;
  std::map<std::string, std::uint64_t> reasons_;
  std::uint64_t refused_ = 0;
};

}  // namespace semel::tool
