#include "tools/semel/dedup/dedup_command.hpp"

#include <fmt/format.h>

#include "tools/semel/dedup/dedup_state.hpp"
#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {
namespace {

constexpr char footer[] =
    "A line is a duplicate if its key was seen within the window before it. The first occurrence\n"
    "starts the window. Lines are written unchanged. Keys are compared in full, have at most\n"
    "65,536 bytes, and are held in memory: those of the window, not of the whole input. No key is\n"
    "forgotten early: when --memory is used up, the run ends with exit code 4.\n"
    "\n"
    "Time: by default, the time of a line is when it is read. With --time-field or --time-json it\n"
    "is the time in the line, and the clock is the newest time seen. An older line is judged at\n"
    "that newest time; a line that is older by the window or more is late.\n"
    "\n"
    "State: a run with --state keeps every key until its window ends, and the newest time seen.\n"
    "Runs over consecutive parts of a stream write together what one run over the whole stream\n"
    "would. Without a time in the lines, windows also pass while nothing runs; with one, only\n"
    "lines advance the clock. A key keeps the end that it was given, whatever --window later runs\n"
    "have. All runs must use the same key and the same kind of time. A run that is killed may "
    "have\n"
    "remembered lines that it did not write; a run that ends by itself, also with an error, has\n"
    "not.\n"
    "\n"
    "Compressed input (gzip, zstd) is decompressed; it is recognised by its first bytes.\n"
    "\n"
    "JSON: numbers are compared by value (1 equals 1.0), types differ (1 is not \"1\"), the order\n"
    "of members does not matter, and null counts as missing.\n"
    "\n"
    "Examples:\n"
    "  semel dedup access.log                                   each line once\n"
    "  semel dedup --fields 1,7 --duplicates again.log access.log   client and path\n"
    "  semel dedup --fields 1 --window 24h --time-field 4 --time-format apache access.log\n"
    "  semel dedup --csv --fields order_id orders.csv.gz           by a named column\n"
    "  tail -F events.ndjson | semel dedup --json /order/id --window 1h\n"
    "\n";

Error fail(std::string text) {
  return {ErrorCode::bad_option, std::move(text)};
}

}  // namespace

DedupCommand::DedupCommand(CLI::App& program)
    : app_(program.add_subcommand("dedup", "Write the first occurrence of each line or key")) {
  app_->add_option("FILE", files_, "Input files, '-' is standard input (the default)")
      ->type_name("");
  add_key_flags();
  add_window_flags();
  add_output_flags();
  app_->footer(std::string{footer} + exit_code_help);
}

void DedupCommand::add_key_flags() {
  app_->add_option(
          "-f,--fields", fields_,
          "Numbers of the fields that are the key, such as 1,7. The first is 1; blanks and "
          "tabs separate fields as in awk. Without --fields and --json the key is the "
          "whole line")
      ->type_name("N[,N...]")
      ->group("Key");
  app_->add_flag("--csv", csv_,
                 "Read comma-separated values: a quoted field may contain delimiters and "
                 "newlines. The first record names the fields and is written once; --fields "
                 "and --time-field accept names or numbers")
      ->group("Key");
  app_->add_flag("--no-header", no_header_, "With --csv: the first record is data, not names")
      ->group("Key");
  app_->add_flag("--quotes-literal", quotes_literal_,
                 "With --delimiter: treat quotes as ordinary bytes. Without this flag, a field "
                 "that begins with a quote ends the run")
      ->group("Key");
  app_->add_option("-d,--delimiter", delimiter_,
                   "Separate fields by this one byte instead ('\\t' is a tab)")
      ->type_name("C")
      ->group("Key");
  app_->add_option(
          "-j,--json", pointers_,
          "Lines are JSON; the key is the value at this pointer (/a/b). Repeat the flag for "
          "a key of several values")
      ->type_name("POINTER")
      ->allow_extra_args(false)
      ->group("Key");
  app_->add_option("--missing", missing_,
                   "What to do with a line that lacks the field or a valid time, is not JSON, or "
                   "whose key is too long: 'error' ends the run with exit code 3 (default), 'pass' "
                   "writes the line and does not remember it, 'key' treats a missing value as "
                   "empty (the rest stays an error)")
      ->type_name("error|pass|key")
      ->group("Key");
}

void DedupCommand::add_window_flags() {
  app_->add_option("-w,--window", window_,
                   "How long a key is remembered: a whole number and ms, s, m, h or d. "
                   "Default: forever")
      ->type_name("24h")
      ->group("Window");
  app_->add_flag("--sliding", sliding_, "A duplicate restarts the window")->group("Window");
  if (has_dedup_state()) {
    app_->add_option(
            "--state", state_,
            "Keep the remembered keys in this directory and continue with them in the next "
            "run; the directory is created if it is missing. See State below")
        ->type_name("DIR")
        ->group("Window");
  }
  app_->add_option("--time-field", time_field_, "Read the time from the line, where field N begins")
      ->type_name("N")
      ->group("Window");
  app_->add_option("--time-json", time_pointer_,
                   "Read the time from the line, at this JSON pointer")
      ->type_name("POINTER")
      ->group("Window");
  app_->add_option("--time-format", time_format_,
                   "iso8601 (default), unix, unix_ms, apache ([17/May/2015:10:05:03 +0000]), or a "
                   "strptime pattern with '%'. A time without a zone is UTC")
      ->type_name("FORMAT")
      ->group("Window");
  app_->add_option(
          "--late", late_,
          "What to do with a line that is older than the newest one by the window or more: "
          "'pass' writes it (default), 'drop' does not. --stats counts them")
      ->type_name("pass|drop")
      ->group("Window");
}

void DedupCommand::add_output_flags() {
  app_->add_option("-D,--duplicates", duplicates_, "Write the duplicates to this file")
      ->type_name("FILE")
      ->group("Output");
  app_->add_flag("-c,--count", count_, "Write only the number of first occurrences")
      ->group("Output");
  app_->add_flag("-s,--stats", stats_, "Print counts, rate and memory to standard error at the end")
      ->group("Output");
  app_->add_flag("-q,--quiet", quiet_,
                 "No progress line (it is shown only when standard error is a terminal and "
                 "standard output is not)")
      ->group("Output");
  app_->add_option(
          "-m,--memory", memory_,

          std::string{"Limit of the memory for keys: 512MiB, 4GiB. Default: half of the memory, "} +
              format_bytes(default_memory_bytes()) + " here")
      ->type_name("SIZE")
      ->group("Output");
}

/// Numbers, or in records whose first one names the fields also names.
Status DedupCommand::resolve_fields(LineRule& rule) const {
  const bool has_names =
      csv_ && !no_header_ && fields_.find_first_not_of("0123456789,") != std::string::npos;
  if (!has_names) {
    Result<std::vector<unsigned>> fields = parse_fields(fields_);
    if (!fields) return fail("--fields: " + fields.error().detail);
    rule.key_fields = *std::move(fields);
    return Done{};
  }
  for (std::size_t at = 0; at <= fields_.size();) {
    const std::size_t end = std::min(fields_.find(',', at), fields_.size());
    rule.key_names.push_back(fields_.substr(at, end - at));
    at = end + 1;
  }
  if (rule.key_names.size() <= key_parts_max) return Done{};
  return fail(fmt::format("--fields: {} names are more than the limit of {}", rule.key_names.size(),
                          key_parts_max));
}

Status DedupCommand::resolve_key(DedupOptions& options) const {
  LineRule& rule = options.rule;
  if (given("--fields") && given("--json")) {
    return fail("--fields and --json exclude each other");
  }
  if (csv_ && given("--json")) return fail("--csv and --json exclude each other");
  if (!csv_ && no_header_) return fail("--no-header needs --csv");
  if (csv_ && quotes_literal_) {
    return fail("--csv and --quotes-literal exclude each other");
  }
  rule.is_csv = csv_;
  rule.takes_quotes = quotes_literal_;
  options.has_header = csv_ && !no_header_;
  if (given("--fields")) SEMEL_CHECK(resolve_fields(rule));
  if (pointers_.size() > key_parts_max) {
    return fail(fmt::format("{} pointers (--json) are more than the limit of {}", pointers_.size(),
                            key_parts_max));
  }
  for (const std::string& pointer : pointers_) {
    if (!is_json_pointer(pointer)) {
      return fail(fmt::format("--json: '{}' is not a JSON pointer such as /a/b", pointer));
    }
  }
  rule.key_pointers = pointers_;
  if (given("--delimiter")) {
    const std::string delimiter = delimiter_ == "\\t" ? "\t" : delimiter_;
    if (delimiter.size() != 1 || delimiter == "\n") {
      return fail(
          fmt::format("--delimiter: '{}' is not a single byte other than a newline", delimiter_));
    }
    if (!given("--fields") && !given("--time-field") && !csv_) {
      return fail("--delimiter needs --fields or --time-field");
    }
    rule.delimiter = delimiter.front();
  }
  if (missing_ == "error") {
    options.missing = DedupOptions::Missing::error;
  } else if (missing_ == "pass") {
    options.missing = DedupOptions::Missing::pass;
  } else if (missing_ == "key") {
    options.missing = DedupOptions::Missing::key;
    rule.missing_is_key = true;
  } else {
    return fail(fmt::format("--missing: '{}' is not one of error, pass, key", missing_));
  }
  return Done{};
}

Status DedupCommand::resolve_time(LineRule& rule) const {
  const bool is_name =
      csv_ && !no_header_ && time_field_.find_first_not_of("0123456789") != std::string::npos;
  if (given("--time-field") && is_name) {
    rule.time_name = time_field_;
  } else if (given("--time-field")) {
    Result<std::vector<unsigned>> fields = parse_fields(time_field_);
    if (!fields || fields->size() != 1) {
      return fail(fmt::format("--time-field: '{}' is not one field number from 1 to {}",
                              time_field_, field_max));
    }
    rule.time_field = fields->front();
  } else {
    if (!is_json_pointer(time_pointer_)) {
      return fail(
          fmt::format("--time-json: '{}' is not a JSON pointer such as /ts", time_pointer_));
    }
    rule.time_pointer = time_pointer_;
  }
  Result<TimeFormat> format = TimeFormat::parse(time_format_);
  if (!format) return fail("--time-format: " + format.error().detail);
  rule.time_format = *std::move(format);
  return Done{};
}

Status DedupCommand::resolve_window(DedupOptions& options) const {
  const bool by_event_time = given("--time-field") || given("--time-json");
  if (given("--window")) {
    const Result<Millis> window = parse_window(window_);
    if (!window) return fail("--window: " + window.error().detail);
    options.window = *window;
  }
  if (given("--time-field") && given("--time-json")) {
    return fail("--time-field and --time-json exclude each other");
  }
  if (!options.window && (by_event_time || sliding_)) {
    return fail(fmt::format("{} needs a --window", sliding_                ? "--sliding"
                                                   : given("--time-field") ? "--time-field"
                                                                           : "--time-json"));
  }
  if (!by_event_time && (given("--time-format") || given("--late"))) {
    return fail(fmt::format("{} needs --time-field or --time-json",
                            given("--late") ? "--late" : "--time-format"));
  }
  if (late_ != "pass" && late_ != "drop") {
    return fail(fmt::format("--late: '{}' is not one of pass, drop", late_));
  }
  options.late = late_ == "pass" ? DedupOptions::Late::pass : DedupOptions::Late::drop;
  options.sliding = sliding_;
  if (!by_event_time) return Done{};
  return resolve_time(options.rule);
}

Status DedupCommand::resolve(DedupOptions& options) const {
  options.files = files_.empty() ? std::vector<std::string>{"-"} : files_;
  options.memory_bytes = default_memory_bytes();
  if (given("--memory")) {
    const Result<std::size_t> memory = parse_memory(memory_);
    if (!memory.ok()) return fail("--memory: " + memory.error().detail);
    options.memory_bytes = *memory;
  }
  options.duplicates_path = duplicates_;
  options.state_path = state_;
  options.count = count_;
  options.stats = stats_;
  options.quiet = quiet_;
  SEMEL_CHECK(resolve_key(options));
  return resolve_window(options);
}

Exit DedupCommand::run() const {
  DedupOptions options;
  if (const Status resolved = resolve(options); !resolved) {
    print_error("semel dedup: {}\nTry 'semel dedup --help'.\n", resolved.error().detail);
    return Exit::usage;
  }
  return run_dedup(options);
}

}  // namespace semel::tool
