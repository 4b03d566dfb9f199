#include "tools/semel/dedup/dedup_command.hpp"

#include <fmt/format.h>

#include "tools/semel/dedup/dedup_state.hpp"
#include "tools/semel/shared/output.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {
namespace {

constexpr char footer[] =
    "A repeat is a line whose key was seen within the window before; the first occurrence starts\n"
    "the window, and lines come out byte for byte as they went in. Keys are compared in full, "
    "have\n"
    "at most 65,536 bytes, and are held in memory: as many as the window holds, not the whole "
    "input.\n"
    "Nothing is forgotten early: when --memory is used up the run ends with exit code 4.\n"
    "\n"
    "Time: without --time-field or --time-json a line happens when it arrives. With them it "
    "happens\n"
    "at its own time, and that clock never goes back: a line older than the newest one seen is\n"
    "judged as if it had come at that newest time; a line older by a whole window is late.\n"
    "\n"
    "State: a run with --state remembers every key until its window ends, and the newest time "
    "seen.\n"
    "Runs one after the other over the parts of a stream write what one run over the whole would.\n"
    "Without a time in the lines a window goes on by the clock while nothing runs; with one only\n"
    "lines move it. A key keeps the end it was given, whatever the --window of later runs. All "
    "runs\n"
    "must ask for the same key and kind of time. A run that is killed has remembered lines that "
    "it\n"
    "may not have written yet; one that ends, also with an error, has not.\n"
    "\n"
    "Input that gzip or zstd has compressed is read as what it was; the first bytes tell.\n"
    "\n"
    "JSON: numbers are compared as numbers (1 is 1.0), types differ (1 is not \"1\"), the order of "
    "an\n"
    "object's members means nothing, null is as good as missing.\n"
    "\n"
    "Examples:\n"
    "  semel dedup access.log                                   each line once\n"
    "  semel dedup --fields 1,7 --duplicates again.log access.log   client and path\n"
    "  semel dedup --fields 1 --window 24h --time-field 4 --time-format apache access.log\n"
    "  semel dedup --csv --fields order_id orders.csv.gz           by a named column\n"
    "  tail -F events.ndjson | semel dedup --json /order/id --window 1h\n"
    "\n";

bool fail(std::string& problem, std::string text) {
  problem = std::move(text);
  return false;
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
  app_->add_option("-f,--fields", fields_,
                   "The key is these fields, counted from 1 and split by blanks and tabs as awk "
                   "does: 1,7. Without --fields and --json it is the whole line")
      ->type_name("N[,N...]")
      ->group("Key");
  app_->add_flag("--csv", csv_,
                 "Records of comma-separated values: fields may be quoted, and hold "
                 "delimiters and newlines. The first record names the fields and is "
                 "written once; --fields and --time-field take names or numbers")
      ->group("Key");
  app_->add_flag("--no-header", no_header_, "With --csv: the first record is data")->group("Key");
  app_->add_flag("--quotes-literal", quotes_literal_,
                 "With --delimiter: quotes are bytes like others. Without it a field that "
                 "begins with a quote ends the run")
      ->group("Key");
  app_->add_option("-d,--delimiter", delimiter_,
                   "Fields are split by this one byte instead ('\\t' is a tab)")
      ->type_name("C")
      ->group("Key");
  app_->add_option("-j,--json", pointers_,
                   "Lines are JSON, the key is the value at this pointer (/a/b); repeat it for "
                   "a key of several values")
      ->type_name("POINTER")
      ->allow_extra_args(false)
      ->group("Key");
  app_->add_option("--missing", missing_,
                   "A line without that field, without a readable time, that is not JSON, or whose "
                   "key is too long: 'error' ends the run with 3 (default), 'pass' writes it and "
                   "forgets it, 'key' takes what is missing as empty (all else stays an error)")
      ->type_name("error|pass|key")
      ->group("Key");
}

void DedupCommand::add_window_flags() {
  app_->add_option("-w,--window", window_,
                   "How long a key is remembered: a whole number and ms, s, m, h or d. "
                   "Without it: for ever")
      ->type_name("24h")
      ->group("Window");
  app_->add_flag("--sliding", sliding_, "A repeat starts the window again")->group("Window");
  if (has_dedup_state()) {
    app_->add_option(
            "--state", state_,
            "Keep what is remembered in this directory, made if it is not there, and go on "
            "with it in the next run; see State below")
        ->type_name("DIR")
        ->group("Window");
  }
  app_->add_option("--time-field", time_field_, "Time is read from the line, where field N begins")
      ->type_name("N")
      ->group("Window");
  app_->add_option("--time-json", time_pointer_, "Time is read from the line, at this JSON pointer")
      ->type_name("POINTER")
      ->group("Window");
  app_->add_option("--time-format", time_format_,
                   "iso8601 (default), unix, unix_ms, apache ([17/May/2015:10:05:03 +0000]), or a "
                   "strptime pattern with '%'. A time without a zone is UTC")
      ->type_name("FORMAT")
      ->group("Window");
  app_->add_option("--late", late_,
                   "A line that is older than the newest by the window or more: 'pass' writes it "
                   "(default), 'drop' does not; --stats counts them")
      ->type_name("pass|drop")
      ->group("Window");
}

void DedupCommand::add_output_flags() {
  app_->add_option("-D,--duplicates", duplicates_, "Write the repeats to this file")
      ->type_name("FILE")
      ->group("Output");
  app_->add_flag("-c,--count", count_, "Write only how many first occurrences there are")
      ->group("Output");
  app_->add_flag("-s,--stats", stats_, "Print counts, rate and memory to standard error at the end")
      ->group("Output");
  app_->add_flag("-q,--quiet", quiet_,
                 "No progress line (it is shown only when standard error is a terminal and "
                 "standard output is not)")
      ->group("Output");
  app_->add_option(
          "-m,--memory", memory_,

          std::string{
              "Limit of the memory for keys: 512MiB, 4GiB. Default: half of what there is, "} +
              format_bytes(default_memory_bytes()) + " here")
      ->type_name("SIZE")
      ->group("Output");
}

/// Numbers, or in records whose first one names the fields also names.
bool DedupCommand::resolve_fields(LineRule& rule, std::string& problem) const {
  const bool has_names =
      csv_ && !no_header_ && fields_.find_first_not_of("0123456789,") != std::string::npos;
  if (!has_names) {
    Result<std::vector<unsigned>> fields = parse_fields(fields_);
    if (!fields) return fail(problem, "--fields: " + fields.error().detail);
    rule.key_fields = *std::move(fields);
    return true;
  }
  for (std::size_t at = 0; at <= fields_.size();) {
    const std::size_t end = std::min(fields_.find(',', at), fields_.size());
    rule.key_names.push_back(fields_.substr(at, end - at));
    at = end + 1;
  }
  if (rule.key_names.size() <= key_parts_max) return true;
  return fail(problem, fmt::format("--fields: {} names are more than the limit of {}",
                                   rule.key_names.size(), key_parts_max));
}

bool DedupCommand::resolve_key(DedupOptions& options, std::string& problem) const {
  LineRule& rule = options.rule;
  if (given("--fields") && given("--json")) {
    return fail(problem, "--fields and --json exclude each other");
  }
  if (csv_ && given("--json")) return fail(problem, "--csv and --json exclude each other");
  if (!csv_ && no_header_) return fail(problem, "--no-header needs --csv");
  if (csv_ && quotes_literal_) {
    return fail(problem, "--csv and --quotes-literal exclude each other");
  }
  rule.is_csv = csv_;
  rule.takes_quotes = quotes_literal_;
  options.has_header = csv_ && !no_header_;
  if (given("--fields") && !resolve_fields(rule, problem)) return false;
  if (pointers_.size() > key_parts_max) {
    return fail(problem, fmt::format("{} times --json is more than the limit of {}",
                                     pointers_.size(), key_parts_max));
  }
  for (const std::string& pointer : pointers_) {
    if (!is_json_pointer(pointer)) {
      return fail(problem, fmt::format("--json: '{}' is not a JSON pointer such as /a/b", pointer));
    }
  }
  rule.key_pointers = pointers_;
  if (given("--delimiter")) {
    const std::string delimiter = delimiter_ == "\\t" ? "\t" : delimiter_;
    if (delimiter.size() != 1 || delimiter == "\n") {
      return fail(problem,
                  fmt::format("--delimiter: '{}' is not one byte (and not a newline)", delimiter_));
    }
    if (!given("--fields") && !given("--time-field") && !csv_) {
      return fail(problem, "--delimiter splits fields: it needs --fields or --time-field");
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
    return fail(problem, fmt::format("--missing: '{}' is none of error, pass, key", missing_));
  }
  return true;
}

bool DedupCommand::resolve_time(LineRule& rule, std::string& problem) const {
  const bool is_name =
      csv_ && !no_header_ && time_field_.find_first_not_of("0123456789") != std::string::npos;
  if (given("--time-field") && is_name) {
    rule.time_name = time_field_;
  } else if (given("--time-field")) {
    Result<std::vector<unsigned>> fields = parse_fields(time_field_);
    if (!fields || fields->size() != 1) {
      return fail(problem, fmt::format("--time-field: '{}' is not one field number from 1 to {}",
                                       time_field_, field_max));
    }
    rule.time_field = fields->front();
  } else {
    if (!is_json_pointer(time_pointer_)) {
      return fail(problem, fmt::format("--time-json: '{}' is not a JSON pointer such as /ts",
                                       time_pointer_));
    }
    rule.time_pointer = time_pointer_;
  }
  Result<TimeFormat> format = TimeFormat::parse(time_format_);
  if (!format) return fail(problem, "--time-format: " + format.error().detail);
  rule.time_format = *std::move(format);
  return true;
}

bool DedupCommand::resolve_window(DedupOptions& options, std::string& problem) const {
  const bool by_event_time = given("--time-field") || given("--time-json");
  if (given("--window")) {
    const Result<Millis> window = parse_window(window_);
    if (!window) return fail(problem, "--window: " + window.error().detail);
    options.window = *window;
  }
  if (given("--time-field") && given("--time-json")) {
    return fail(problem, "--time-field and --time-json exclude each other");
  }
  if (!options.window && (by_event_time || sliding_)) {
    return fail(problem,
                fmt::format("{} needs a --window", sliding_                ? "--sliding"
                                                   : given("--time-field") ? "--time-field"
                                                                           : "--time-json"));
  }
  if (!by_event_time && (given("--time-format") || given("--late"))) {
    return fail(problem, fmt::format("{} needs --time-field or --time-json",
                                     given("--late") ? "--late" : "--time-format"));
  }
  if (late_ != "pass" && late_ != "drop") {
    return fail(problem, fmt::format("--late: '{}' is none of pass, drop", late_));
  }
  options.late = late_ == "pass" ? DedupOptions::Late::pass : DedupOptions::Late::drop;
  options.sliding = sliding_;
  return !by_event_time || resolve_time(options.rule, problem);
}

bool DedupCommand::resolve(DedupOptions& options, std::string& problem) const {
  options.files = files_.empty() ? std::vector<std::string>{"-"} : files_;
  options.memory_bytes = default_memory_bytes();
  if (given("--memory")) {
    const Result<std::size_t> memory = parse_memory(memory_);
    if (!memory.ok()) return fail(problem, "--memory: " + memory.error().detail);
    options.memory_bytes = *memory;
  }
  options.duplicates_path = duplicates_;
  options.state_path = state_;
  options.count = count_;
  options.stats = stats_;
  options.quiet = quiet_;
  return resolve_key(options, problem) && resolve_window(options, problem);
}

Exit DedupCommand::run() const {
  DedupOptions options;
  std::string problem;
  if (!resolve(options, problem)) {
    print_error("semel dedup: {}\nTry 'semel dedup --help'.\n", problem);
    return Exit::usage;
  }
  return run_dedup(options);
}

}  // namespace semel::tool
