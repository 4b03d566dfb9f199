#include "net/admin/metrics.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "base/assert.hpp"
#include "net/admin/escape.hpp"
#include "semel/limits.hpp"

namespace semel::net {
namespace {

using Label = std::pair<std::string_view, std::string_view>;

void append_number(std::string& out, std::uint64_t number) {
  out += std::to_string(number);
}

/// The shortest text that parses to the same number.
void append_number(std::string& out, double number) {
  if (std::isnan(number)) {
    out += "NaN";
  } else if (std::isinf(number)) {
    out += number > 0 ? "+Inf" : "-Inf";
  } else {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number);
    out.append(text.data(), end.ptr);
  }
}

/// Writes the samples of one metric.
class Samples {
 public:
  Samples(std::string& out, std::string_view name) : out_(out), name_(name) {}

  template <class Number>
  void value(Number number) {
    labelled({}, number);
  }
  template <class Number>
  void labelled(std::initializer_list<Label> labels, Number number, std::string_view suffix = {}) {
    out_ += name_;
    out_ += suffix;
    char before = '{';
    for (const auto& [label, text] : labels) {
      out_ += before;
      out_ += label;
      out_ += "=\"";
      append_label_value(out_, cut_at_character(text, label_bytes_max));
      out_ += '"';
      before = ',';
    }
    if (labels.size() > 0) out_ += '}';
    out_ += ' ';
    append_number(out_, number);
    out_ += '\n';
  }

 private:
  std::string& out_;
  std::string_view name_;
};

std::uint64_t flag(bool is_set) {
  return is_set ? 1 : 0;
}

double seconds(Millis time) {
  return static_cast<double>(time.count()) / 1000;
}

template <class List>
std::size_t shown(const List& list) {
  return std::min(list.size(), metric_series_max);
}

/// Counts each list once, even if several metrics use it.
std::uint64_t left_out(const MetricValues& values) {
  const auto rest = [](const auto& list) { return list.size() - shown(list); };
  return rest(values.by_command) + rest(values.by_error) + rest(values.databases) +
         rest(values.scripts_native);
}

template <class Number>
void of_commands(Samples& to, std::string_view label, const MetricValues& values,
                 Number CommandMetric::*member) {
  for (std::size_t i = 0; i < shown(values.by_command); ++i) {
    const CommandMetric& command = values.by_command[i];
    SEMEL_ASSERT(!command.name.empty());
    to.labelled({{label, command.name}}, command.*member);
  }
}

void of_errors(Samples& to, std::string_view label, const MetricValues& values) {
  for (std::size_t i = 0; i < shown(values.by_error); ++i) {
    to.labelled({{label, values.by_error[i].code}}, values.by_error[i].count);
  }
}

void of_databases(Samples& to, std::string_view prefix, const MetricValues& values,
                  std::uint64_t DatabaseMetric::*member) {
  for (std::size_t i = 0; i < shown(values.databases); ++i) {
    const DatabaseMetric& database = values.databases[i];
    const std::string name = std::string{prefix} + std::to_string(database.number);
    to.labelled({{"db", name}}, database.*member);
  }
}

void of_scripts(Samples& to, const MetricValues& values) {
  for (std::size_t i = 0; i < shown(values.scripts_native); ++i) {
    to.labelled({{"script", values.scripts_native[i].name}}, values.scripts_native[i].count);
  }
}

constexpr std::string_view claim_outcomes[] = {"granted",  "takeover", "replay",  "in_flight",
                                               "mismatch", "in_doubt", "too_old", "poison",
                                               "busy",     "other"};
static_assert(std::size(claim_outcomes) == claim_count_count);
constexpr std::size_t claim_spaces_max = limits::counted_namespaces_max + 1;
static_assert(claim_spaces_max * claim_count_count <= metric_series_max);

void of_claims(Samples& to, const MetricValues& values) {
  for (std::size_t i = 0; i < std::min(values.claims.size(), claim_spaces_max); ++i) {
    const NamespaceCounts& each = values.claims[i];
    // No namespace has a blank in its name.
    const std::string_view name =
        each.name.empty() ? "other namespaces" : std::string_view{each.name};
    for (std::size_t which = 0; which < claim_count_count; ++which) {
      to.labelled({{"namespace", name}, {"outcome", claim_outcomes[which]}}, each.counts[which]);
    }
  }
}

void of_members(Samples& to, const MetricValues& values,
                std::uint64_t (*value)(const GroupMemberMetric&)) {
  for (const GroupMemberMetric& each : values.group->members) {
    to.labelled({{"member", std::to_string(each.id)}}, value(each));
  }
}

void of_times(Samples& to, const MetricValues& values) {
  constexpr std::size_t times_max = 64;
  const std::size_t count = std::min(values.command_times.size(), times_max);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    sum += values.command_times[i];
    std::string bound;
    append_number(bound, std::ldexp(1.0, static_cast<int>(i)) / 1e6);
    to.labelled({{"le", bound}}, sum, "_bucket");
  }
  if (count > 0) sum += values.command_times[count - 1];
  to.labelled({{"le", "+Inf"}}, sum, "_bucket");
  to.labelled({}, values.command_seconds, "_sum");
  to.labelled({}, sum, "_count");
}

void instance(Samples& to, const MetricValues& values) {
  to.labelled({{"role", "master"},
               {"redis_version", values.redis_version},
               {"redis_mode", values.group ? "cluster" : "standalone"},
               {"run_id", values.run_id},
               {"process_id", std::to_string(values.process_id)},
               {"tcp_port", std::to_string(values.port)},
               {"maxmemory_policy", values.maxmemory_policy}},
              std::uint64_t{1});
}

enum class When : std::uint8_t { always, storage, process, group, redis };

struct Metric {
  std::string_view name;
  std::string_view type;
  When when;
  std::string_view labels;
  std::string_view help;
  void (*write)(Samples& to, const MetricValues& values);
};

constexpr Metric metrics[] = {
#define X(name, type, when, labels, help, samples) \
  {#name,  #type, When::when,                      \
   labels, help,  [](Samples& to, [[maybe_unused]] const MetricValues& values) { samples; }},
#include "net/admin/metrics.def"
#undef X
};

bool applies(When when, const MetricValues& values, const MetricOptions& options) {
  switch (when) {
    case When::always:
      return true;
    case When::storage:
      return values.storage.has_value();
    case When::process:
      return values.process.has_value();
    case When::group:
      return values.group.has_value();
    case When::redis:
      return options.redis_names;
  }
  return false;
}

std::string rows_of(When when) {
  std::string out = "| name | type | labels | |\n|---|---|---|---|\n";
  for (const Metric& metric : metrics) {
    if (metric.when != when) continue;
    out += "| `";
    out += metric.name;
    out += "` | ";
    out += metric.type;
    out += " | ";
    out += metric.labels;
    out += metric.labels.empty() ? "| " : " | ";
    out += metric.help;
    out += " |\n";
  }
  return out;
}

}  // namespace

std::string metrics_text(const MetricValues& values, const MetricOptions& options) {
  std::string out;
  for (const Metric& metric : metrics) {
    if (!applies(metric.when, values, options)) continue;
    out += "# HELP ";
    out += metric.name;
    out += ' ';
    out += metric.help;  // ours: neither backslash nor line end, which a test checks
    out += "\n# TYPE ";
    out += metric.name;
    out += ' ';
    out += metric.type;
    out += '\n';
    Samples to{out, metric.name};
    metric.write(to, values);
  }
  return out;
}

std::string metrics_table() {
  return rows_of(When::always) + "\nOf the process, where /proc can be read:\n\n" +
         rows_of(When::process) + "\nOf the storage, where there is one:\n\n" +
         rows_of(When::storage) + "\nOf the group, where the node belongs to one:\n\n" +
         rows_of(When::group) + "\nWith `redis-metric-names`:\n\n" + rows_of(When::redis);
}

}  // namespace semel::net
