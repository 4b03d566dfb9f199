#include "tools/semel/dedup/dedup_resolver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <thread>

#include "tools/semel/dedup/blocks/block.hpp"
#include "tools/semel/dedup/dedup_state.hpp"
#include "tools/semel/records/csv.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {
namespace {

Error fail(std::string text) {
  return {ErrorCode::bad_option, std::move(text)};
}

/// The processors that this process may use, up to 8: with more, the writing thread is the limit.
unsigned default_threads() {
  return std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
}

bool has_flag(const char* flag) {
  return std::string_view{flag} != "--state" || has_dedup_state();
}

}  // namespace

/// How lines are split into fields, and whether the first one names them.
Status DedupResolver::resolve_format(LineRule& rule) const {
  const bool is_table = flags_.csv || flags_.tsv;
  if (flags_.csv && flags_.tsv) return fail("--csv and --tsv exclude each other");
  if (flags_.header && flags_.no_header) return fail("--header and --no-header exclude each other");
  if (is_table && given("--json")) {
    return fail(fmt::format("{} and --json exclude each other", flags_.csv ? "--csv" : "--tsv"));
  }
  if (!is_table && flags_.no_header) return fail("--no-header needs --csv or --tsv");
  if (flags_.csv && flags_.quotes_literal)
    return fail("--csv and --quotes-literal exclude each other");
  if (flags_.zero && is_table) {
    return fail(
        fmt::format("--zero-terminated and {} exclude each other: a record of it ends with "
                    "a newline",
                    flags_.csv ? "--csv" : "--tsv"));
  }
  rule.takes_quotes = flags_.quotes_literal;
  rule.is_csv = flags_.csv || (flags_.tsv && !flags_.quotes_literal);
  rule.has_header = flags_.header || (is_table && !flags_.no_header);
  rule.is_table = is_table || flags_.header;
  rule.folds_case = flags_.ignore_case;
  rule.terminator = flags_.zero ? '\0' : '\n';
  if (flags_.tsv) {
    if (given("--delimiter")) return fail("--tsv and --delimiter exclude each other");
    rule.delimiter = '\t';
  }
  if (flags_.header && !is_table && !given("--delimiter")) {
    return fail("--header needs --csv, --tsv or --delimiter");
  }
  if (!given("--delimiter")) return Done{};
  const std::string delimiter = flags_.delimiter == "\\t" ? "\t" : flags_.delimiter;
  if (delimiter.size() != 1 || delimiter == "\n") {
    return fail(fmt::format("--delimiter: '{}' is not a single byte other than a newline",
                            flags_.delimiter));
  }
  if (flags_.csv && (delimiter == "\"" || delimiter == "\r")) {
    return fail("--delimiter: with --csv it is neither a quote nor a carriage return");
  }
  if (!given("--fields") && !given("--key") && !given("--time-field") && !flags_.csv) {
    return fail("--delimiter needs --fields, --key or --time-field");
  }
  rule.delimiter = delimiter.front();
  return Done{};
}

/// --key: names only, separated as the fields of a CSV record, so that a name may have a comma.
Status DedupResolver::resolve_names(LineRule& rule) const {
  if (given("--fields")) return fail("--fields and --key exclude each other");
  if (!rule.has_header) {
    return fail("--key needs --csv, --tsv or --header: the first record names the fields");
  }
  std::vector<Bytes> names;
  std::deque<std::string> unquoted;
  if (!split_csv(flags_.names, ',', key_parts_max + 1, names, unquoted)) {
    return fail(fmt::format("--key: '{}': a quote is not closed where a name ends", flags_.names));
  }
  rule.key_names.assign(names.begin(), names.end());
  return check_names("--key", rule);
}

Status DedupResolver::check_names(const char* flag, const LineRule& rule) const {
  if (rule.key_names.size() > key_parts_max) {
    return fail(fmt::format("{}: {} names are more than the limit of {}", flag,
                            rule.key_names.size(), key_parts_max));
  }
  for (const std::string& name : rule.key_names) {
    if (name.empty()) return fail(fmt::format("{}: a name is empty", flag));
  }
  return Done{};
}

/// Numbers; in records whose first one names the fields also names.
Status DedupResolver::resolve_fields(LineRule& rule) const {
  const bool has_names =
      rule.has_header && flags_.fields.find_first_not_of("0123456789,") != std::string::npos;
  if (!has_names) {
    Result<std::vector<unsigned>> fields = parse_fields(flags_.fields);
    if (!fields) return fail("--fields: " + fields.error().detail);
    rule.key_fields = *std::move(fields);
    return Done{};
  }
  for (std::size_t at = 0; at <= flags_.fields.size();) {
    const std::size_t end = std::min(flags_.fields.find(',', at), flags_.fields.size());
    rule.key_names.push_back(flags_.fields.substr(at, end - at));
    at = end + 1;
  }
  return check_names("--fields", rule);
}

Status DedupResolver::resolve_key(DedupOptions& options) const {
  LineRule& rule = options.rule;
  if ((given("--fields") || given("--key")) && given("--json")) {
    return fail(
        fmt::format("{} and --json exclude each other", given("--fields") ? "--fields" : "--key"));
  }
  SEMEL_CHECK(resolve_format(rule));
  if (given("--key")) {
    SEMEL_CHECK(resolve_names(rule));
  } else if (given("--fields")) {
    SEMEL_CHECK(resolve_fields(rule));
  }
  if (flags_.pointers.size() > key_parts_max) {
    return fail(fmt::format("{} pointers (--json) are more than the limit of {}",
                            flags_.pointers.size(), key_parts_max));
  }
  for (const std::string& pointer : flags_.pointers) {
    if (!is_json_pointer(pointer)) {
      return fail(fmt::format("--json: '{}' is not a JSON pointer such as /a/b", pointer));
    }
  }
  rule.key_pointers = flags_.pointers;
  return resolve_missing(options);
}

Status DedupResolver::resolve_missing(DedupOptions& options) const {
  if (flags_.missing == "error") {
    options.missing = DedupOptions::Missing::error;
  } else if (flags_.missing == "pass") {
    options.missing = DedupOptions::Missing::pass;
  } else if (flags_.missing == "key") {
    options.missing = DedupOptions::Missing::key;
    options.rule.missing_is_key = true;
  } else {
    return fail(fmt::format("--missing: '{}' is not one of error, pass, key", flags_.missing));
  }
  return Done{};
}

/// Options that choose the lines and keys to write.
Status DedupResolver::resolve_selection(DedupOptions& options) const {
  if (flags_.keep != "first" && flags_.keep != "last") {
    return fail(fmt::format("--keep: '{}' is not one of first, last", flags_.keep));
  }
  if (flags_.unique && flags_.repeated) return fail("--unique and --repeated exclude each other");
  options.keep = flags_.keep == "last" ? DedupOptions::Keep::last : DedupOptions::Keep::first;
  if (flags_.unique) options.select = DedupOptions::Select::unique;
  if (flags_.repeated) options.select = DedupOptions::Select::repeated;
  options.count = flags_.count;
  options.total = flags_.total;
  options.digest = flags_.digest;
  if (flags_.count && flags_.total) return fail("--count and --total exclude each other");
  return check_whole_input(options);
}

/// Options that need the end of the input exclude options for an input without end.
Status DedupResolver::check_whole_input(const DedupOptions& options) const {
  const char* const needing = flags_.count                               ? "--count"
                              : flags_.unique                            ? "--unique"
                              : flags_.repeated                          ? "--repeated"
                              : options.keep == DedupOptions::Keep::last ? "--keep last"
                                                                         : nullptr;
  for (const char* const flag : {"--window", "--sliding", "--state"}) {
    if (!has_flag(flag) || !given(flag)) continue;
    if (needing != nullptr) {
      return fail(fmt::format("{} and {} exclude each other: {} needs the whole input", needing,
                              flag, needing));
    }
    if (flags_.digest) return fail(fmt::format("--digest and {} exclude each other", flag));
    if (given("--threads")) {
      return fail(
          fmt::format("--threads and {} exclude each other: a run with a window or a state "
                      "has one thread",
                      flag));
    }
  }
  if (needing == nullptr) return Done{};
  const bool is_keep = !flags_.count && !flags_.unique && !flags_.repeated;
  if (!is_keep && given("--duplicates")) {
    return fail(fmt::format("{} and --duplicates exclude each other", needing));
  }
  if (!is_keep && options.missing == DedupOptions::Missing::pass) {
    return fail(
        fmt::format("{} and --missing pass exclude each other: a line without a key occurs "
                    "no number of times",
                    needing));
  }
  return Done{};
}

/// Checkpoints need an output file that holds every key.
Status DedupResolver::resolve_resume(DedupOptions& options) const {
  if (!given("--resume")) {
    if (given("--resume-every")) return fail("--resume-every needs --resume");
    return Done{};
  }
  for (const char* const flag :
       {"--window", "--state", "--count", "--unique", "--repeated", "--duplicates", "--total"}) {
    if (has_flag(flag) && given(flag)) {
      return fail(fmt::format("--resume and {} exclude each other", flag));
    }
  }
  if (options.keep == DedupOptions::Keep::last) {
    return fail("--resume and --keep last exclude each other: nothing is written before the end");
  }
  if (!given("--output")) return fail("--resume needs --output");
  if (flags_.resume.empty()) return fail("--resume: the name is empty");
  const Result<std::size_t> every = parse_size(flags_.resume_every);
  if (!every.ok()) return fail("--resume-every: " + every.error().detail);
  if (*every < block_bytes) {
    return fail(fmt::format("--resume-every: '{}' is less than {}", flags_.resume_every,
                            format_bytes(block_bytes)));
  }
  options.resume_path = flags_.resume;
  options.resume_every = *every;
  return Done{};
}

Status DedupResolver::resolve_output(DedupOptions& options) const {
  options.duplicates_path = flags_.duplicates;
  options.output_path = flags_.output;
  options.state_path = flags_.state;
  options.stats = flags_.stats;
  options.quiet = flags_.quiet;
  if (given("--output") && flags_.output.empty()) return fail("--output: the name is empty");
  if (flags_.total && given("--output")) return fail("--total and --output exclude each other");
  options.compression = compression_of(flags_.output);
  if (given("--compress")) {
    if (flags_.compress == "gz") {
      options.compression = Compression::gzip;
    } else if (flags_.compress == "zst") {
      options.compression = Compression::zstd;
    } else if (flags_.compress == "none") {
      options.compression = Compression::none;
    } else {
      return fail(fmt::format("--compress: '{}' is not one of gz, zst, none", flags_.compress));
    }
  }
  options.threads = default_threads();
  if (!given("--threads")) return Done{};
  const auto [end, error] = std::from_chars(
      flags_.threads.data(), flags_.threads.data() + flags_.threads.size(), options.threads);
  if (error != std::errc{} || end != flags_.threads.data() + flags_.threads.size() ||
      options.threads < 1 || options.threads > threads_max) {
    return fail(
        fmt::format("--threads: '{}' is not a number from 1 to {}", flags_.threads, threads_max));
  }
  return Done{};
}

Status DedupResolver::resolve_time(LineRule& rule) const {
  const bool is_name =
      rule.has_header && flags_.time_field.find_first_not_of("0123456789") != std::string::npos;
  if (given("--time-field") && is_name) {
    rule.time_name = flags_.time_field;
  } else if (given("--time-field")) {
    Result<std::vector<unsigned>> fields = parse_fields(flags_.time_field);
    if (!fields || fields->size() != 1) {
      return fail(fmt::format("--time-field: '{}' is not one field number from 1 to {}",
                              flags_.time_field, field_max));
    }
    rule.time_field = fields->front();
  } else {
    if (!is_json_pointer(flags_.time_pointer)) {
      return fail(
          fmt::format("--time-json: '{}' is not a JSON pointer such as /ts", flags_.time_pointer));
    }
    rule.time_pointer = flags_.time_pointer;
  }
  Result<TimeFormat> format = TimeFormat::parse(flags_.time_format);
  if (!format) return fail("--time-format: " + format.error().detail);
  rule.time_format = *std::move(format);
  return Done{};
}

Status DedupResolver::resolve_window(DedupOptions& options) const {
  const bool by_event_time = given("--time-field") || given("--time-json");
  if (given("--window")) {
    const Result<Millis> window = parse_window(flags_.window);
    if (!window) return fail("--window: " + window.error().detail);
    options.window = *window;
  }
  if (given("--time-field") && given("--time-json")) {
    return fail("--time-field and --time-json exclude each other");
  }
  if (!options.window && (by_event_time || flags_.sliding)) {
    return fail(fmt::format("{} needs a --window", flags_.sliding          ? "--sliding"
                                                   : given("--time-field") ? "--time-field"
                                                                           : "--time-json"));
  }
  if (!by_event_time && (given("--time-format") || given("--late"))) {
    return fail(fmt::format("{} needs --time-field or --time-json",
                            given("--late") ? "--late" : "--time-format"));
  }
  if (flags_.late != "pass" && flags_.late != "drop") {
    return fail(fmt::format("--late: '{}' is not one of pass, drop", flags_.late));
  }
  options.late = flags_.late == "pass" ? DedupOptions::Late::pass : DedupOptions::Late::drop;
  options.sliding = flags_.sliding;
  if (!by_event_time) return Done{};
  return resolve_time(options.rule);
}

/// A key that expires, or that outlives the run, is a record of the engine.
Status DedupResolver::resolve_line_max(DedupOptions& options) const {
  if (options.needs_engine()) {
    const char* const flag = options.window ? "--window" : "--state";
    if (given("--line-max")) {
      return fail(fmt::format("--line-max and {} exclude each other: there a key has at most {}",
                              flag, format_bytes(limits::key_bytes_max)));
    }
    options.rule.key_limit_name = options.window ? " with --window" : " with --state";
    return Done{};
  }
  options.rule.key_bytes_max = line_max_default;
  options.rule.key_limit_name = " (--line-max)";
  if (!given("--line-max")) return Done{};
  const Result<std::size_t> most = parse_size(flags_.line_max);
  if (!most.ok()) return fail("--line-max: " + most.error().detail);
  if (*most < line_max_least || *most > line_max_most) {
    return fail(fmt::format("--line-max: '{}' is out of range: {} to {}", flags_.line_max,
                            format_bytes(line_max_least), format_bytes(line_max_most)));
  }
  options.rule.key_bytes_max = *most;
  return Done{};
}

Status DedupResolver::resolve(DedupOptions& options) const {
  options.files = flags_.files.empty() ? std::vector<std::string>{"-"} : flags_.files;
  options.memory_bytes = default_memory_bytes();
  if (given("--memory")) {
    const Result<std::size_t> memory = parse_memory(flags_.memory);
    if (!memory.ok()) return fail("--memory: " + memory.error().detail);
    options.memory_bytes = *memory;
  }
  SEMEL_CHECK(resolve_output(options));
  SEMEL_CHECK(resolve_key(options));
  SEMEL_CHECK(resolve_selection(options));
  SEMEL_CHECK(resolve_resume(options));
  SEMEL_CHECK(resolve_window(options));
  return resolve_line_max(options);
}

}  // namespace semel::tool
