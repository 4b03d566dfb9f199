#include "tools/semel/transfer/tally.hpp"

#include <fmt/format.h>

#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {

namespace {

constexpr std::uint64_t printed_max = 20;
constexpr std::size_t reasons_max = 100;  // kept apart; texts of errors may have names in them

}  // namespace

std::string shown_name(std::string_view name) {
  constexpr std::size_t shown_max = 80;
  std::string text = "'";
  for (const char each : name.substr(0, shown_max)) {
    const auto byte = static_cast<unsigned char>(each);
    const bool is_plain = byte >= 0x20 && byte < 0x7f && each != '\'' && each != '\\';
    text += is_plain ? std::string(1, each) : fmt::format("\\x{:02x}", byte);
  }
  return text + (name.size() > shown_max ? "'.." : "'");
}

void Tally::refuse(const std::string& what, const std::string& reason) {
  ++refused_;
  const bool is_known = reasons_.contains(reason);
  ++reasons_[is_known || reasons_.size() < reasons_max ? reason : "other reasons"];
  if (refused_ <= printed_max) print_error("{}: {}: {}\n", program_, what, reason);
  if (refused_ == printed_max) print_error("{}: others are counted only\n", program_);
}

std::uint64_t Tally::count(std::string_view kind) const {
  const auto found = counts_.find(std::string{kind});
  return found == counts_.end() ? 0 : found->second;
}

std::string Tally::summary() const {
  std::string text;
  for (const auto& [kind, count] : counts_) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", format_count(count), kind);
  }
  if (text.empty()) text = "nothing";
  if (refused_ == 0) return text;
  text += fmt::format("; {} refused:", format_count(refused_));
  const char* separator = " ";
  for (const auto& [reason, count] : reasons_) {
    text += fmt::format("{}{} of {}", separator, format_count(count), reason);
    separator = ", ";
  }
  return text;
}

}  // namespace semel::tool
