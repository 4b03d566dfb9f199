#include "gateway/rules/outcome.hpp"

#include <array>

#include "base/hex.hpp"

namespace semel::gateway {
namespace {

struct OutcomeRow {
  std::string_view name;
  unsigned status;
  std::string_view title;
};

constexpr std::array<OutcomeRow, outcome_count> rows{{
#define SEMEL_GATEWAY_OUTCOME(name, status, title) {#name, (status), (title)},
#include "gateway/rules/outcomes.def"
#undef SEMEL_GATEWAY_OUTCOME
}};

const OutcomeRow& row_of(Outcome outcome) noexcept {
  return rows[static_cast<std::size_t>(outcome)];
}

}  // namespace

std::string_view name_of(Outcome outcome) noexcept {
  return row_of(outcome).name;
}

std::string_view title_of(Outcome outcome) noexcept {
  return row_of(outcome).title;
}

unsigned status_of(Outcome outcome) noexcept {
  return row_of(outcome).status;
}

void append_json_text(std::string& out, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < ' ') {
      out += "\\u00";
      base::append_hex(out, byte);
    } else {
      out += byte < 0x7F ? c : '?';
    }
  }
}

std::string problem_json(const Refusal& refusal) {
  std::string type{name_of(refusal.outcome)};
  for (char& c : type) c = c == '_' ? '-' : c;
  std::string text = R"({"type":"urn:semel:gateway:)" + type + R"(","title":")";
  append_json_text(text, title_of(refusal.outcome));
  text += R"(","status":)" + std::to_string(status_of(refusal.outcome));
  if (!refusal.detail.empty()) {
    text += R"(,"detail":")";
    append_json_text(text, refusal.detail);
    text += '"';
  }
  return text + "}\n";
}

}  // namespace semel::gateway
