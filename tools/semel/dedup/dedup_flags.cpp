// The flags of `semel dedup` and what their help says.
#include "tools/semel/dedup/dedup_flags.hpp"

#include "tools/semel/dedup/dedup_state.hpp"
#include "tools/semel/shared/exit_code.hpp"
#include "tools/semel/shared/units.hpp"

namespace semel::tool {
namespace {

constexpr char lines_footer[] =
    "A line is a duplicate if its key was seen within the window before it. The first occurrence\n"
    "starts the window. Lines are written unchanged. Keys are compared in full, have at most 1 "
    "MiB\n"
    "(--line-max; 64 KiB with --window and --state), and are held in memory: those of the window,\n"
    "not of the whole input. No key is forgotten early: when --memory is used up, the run ends "
    "with\n"
    "exit code 4.\n"
    "\n"
    "Time: by default, the time of a line is when it is read. With --time-field or --time-json it\n"
    "is the time in the line, and the clock is the newest time seen. An older line is judged at\n"
    "that newest time; a line that is older by the window or more is late.\n"
    "\n";

constexpr char state_footer[] =
    "State: a run with --state keeps every key until its window ends, and the newest time seen.\n"
    "Runs over consecutive parts of a stream write together what one run over the whole stream\n"
    "would. Without a time in the lines, windows also pass while nothing runs; with one, only\n"
    "lines advance the clock. A key keeps the end that it was given, whatever --window later runs\n"
    "have. All runs must use the same key and the same kind of time. A run that is killed may "
    "have\n"
    "remembered lines that it did not write; a run that ends by itself, also with an error, has\n"
    "not.\n"
    "\n";

constexpr char more_footer[] =
    "Compressed input (gzip, zstd) is decompressed; it is recognised by its first bytes. Where it "
    "is\n"
    "cut or damaged, the lines before are written, and the exit code is 3. Zeros behind gzip are\n"
    "padding.\n"
    "\n"
    "Tables (--csv, --tsv, --header): an empty line is no record; it is written where it stands, "
    "but\n"
    "not with --count, --unique and --repeated. Without --key and --fields, records with the same\n"
    "fields are the same with --csv and --tsv, however they are quoted.\n"
    "\n"
    "The whole input: --count, --keep last, --unique and --repeated read it twice. Input that "
    "cannot\n"
    "be read twice (a pipe) is stored without a name in TMPDIR, or /tmp, while it is read.\n"
    "\n"
    "JSON: numbers are compared by value (1 equals 1.0), types differ (1 is not \"1\"), the order\n"
    "of members does not matter, and null counts as missing (with --missing key it is a key of "
    "its\n"
    "own).\n"
    "\n"
    "Examples:\n"
    "  semel dedup access.log                                   each line once\n"
    "  semel dedup --fields 1,7 --duplicates again.log access.log   client and path\n"
    "  semel dedup --fields 1 --window 24h --time-field 4 --time-format apache access.log\n"
    "  semel dedup --csv --key order_id orders.csv.gz -o once.csv.zst   by a named column\n"
    "  semel dedup --csv --key email --ignore-case --keep last -o people.csv people.csv   in "
    "place\n"
    "  semel dedup --count --repeated words                        which words occur how often\n"
    "  tail -F events.ndjson | semel dedup --json /order/id --window 1h\n"
    "\n";

void add_key_flags(CLI::App& app, DedupFlags& flags) {
  app.add_option("-f,--fields", flags.fields,
                 "Numbers of the fields that are the key, such as 1,7. The first is 1; blanks and "
                 "tabs separate fields as in awk. Without --fields and --json the key is the "
                 "whole line")
      ->type_name("N[,N...]")
      ->group("Key");
  app.add_flag("--csv", flags.csv,
               "Read comma-separated values: a quoted field may contain delimiters and "
               "newlines (RFC 4180). The first record of each input names the fields, is the "
               "same in all, and is written once; --fields and --time-field accept names or "
               "numbers")
      ->group("Key");
  app.add_flag("--tsv", flags.tsv,
               "As --csv, with tabs between the fields; with --quotes-literal quotes are "
               "ordinary bytes")
      ->group("Key");
  app.add_option("-k,--key", flags.names,
                 "Names of the fields that are the key, with --csv, --tsv or --header. A name "
                 "with a comma is written in quotes")
      ->type_name("NAME[,NAME...]")
      ->group("Key");
  app.add_flag("--header", flags.header,
               "The first line of each input names the fields; with --csv and --tsv it does so "
               "by default")
      ->group("Key");
  app.add_flag("--no-header", flags.no_header,
               "With --csv or --tsv: the first record is data, not names")
      ->group("Key");
  app.add_flag(
         "--quotes-literal", flags.quotes_literal,
         "With --delimiter or --tsv: treat quotes as ordinary bytes. Without this flag, a field "
         "that begins with a quote ends the run")
      ->group("Key");
  app.add_option("-d,--delimiter", flags.delimiter,
                 "Separate fields by this one byte instead ('\\t' is a tab)")
      ->type_name("C")
      ->group("Key");
  app.add_flag("-i,--ignore-case", flags.ignore_case,
               "Compare keys with A to Z as a to z; other letters are compared as they are")
      ->group("Key");
  app.add_flag(
         "--digest", flags.digest,
         "Remember 16 bytes of a hash instead of each key. Two keys with the same hash would "
         "be one: among 10^12 keys the chance is less than 1 in 10^14. No --window, no --state")
      ->group("Key");
  app.add_option("--line-max", flags.line_max,
                 "Most bytes of a key, and so of a line whose key is all of it: 1KiB to 64MiB. "
                 "Default: 1MiB. No --window, no --state")
      ->type_name("SIZE")
      ->group("Key");
  app.add_option("-j,--json", flags.pointers,
                 "Lines are JSON; the key is the value at this pointer (/a/b). Repeat the flag for "
                 "a key of several values")
      ->type_name("POINTER")
      ->allow_extra_args(false)
      ->group("Key");
  app.add_option("--missing", flags.missing,
                 "What to do with a line that lacks the field or a valid time, is not JSON, or "
                 "whose key is too long: 'error' ends the run with exit code 3 (default), 'pass' "
                 "writes the line and does not remember it, 'key' treats a missing value as "
                 "empty (the rest stays an error)")
      ->type_name("error|pass|key")
      ->group("Key");
}

void add_lines_flags(CLI::App& app, DedupFlags& flags) {
  app.add_option("--keep", flags.keep,
                 "Which line of a key is written: the 'first' (default) or the 'last', each "
                 "where it stands in the input")
      ->type_name("first|last")
      ->group("Lines");
  app.add_flag("-u,--unique", flags.unique, "Write only the lines whose key occurs once")
      ->group("Lines");
  app.add_flag("--repeated", flags.repeated,
               "Write one line of each key that occurs more than once")
      ->group("Lines");
  app.add_flag("-c,--count", flags.count,
               "Write before each line how often its key occurs, as 'uniq -c'; with --csv, --tsv "
               "and --header it is the first field, 'count'")
      ->group("Lines");
  app.add_flag("--total", flags.total, "Write only how many lines would be written")
      ->group("Lines");
  app.add_flag("-z,--zero-terminated", flags.zero,
               "Lines end with a NUL byte, not with a newline, in input and output")
      ->group("Lines");
}

void add_window_flags(CLI::App& app, DedupFlags& flags) {
  app.add_option("-w,--window", flags.window,
                 "How long a key is remembered: a whole number and ms, s, m, h or d. "
                 "Default: forever")
      ->type_name("24h")
      ->group("Window");
  app.add_flag("--sliding", flags.sliding, "A duplicate restarts the window")->group("Window");
  if (has_dedup_state()) {
    app.add_option("--state", flags.state,
                   "Keep the remembered keys in this directory and continue with them in the next "
                   "run; the directory is created if it is missing. See State below")
        ->type_name("DIR")
        ->group("Window");
  }
  app.add_option("--time-field", flags.time_field,
                 "Read the time from the line, where field N begins")
      ->type_name("N")
      ->group("Window");
  app.add_option("--time-json", flags.time_pointer,
                 "Read the time from the line, at this JSON pointer")
      ->type_name("POINTER")
      ->group("Window");
  app.add_option("--time-format", flags.time_format,
                 "iso8601 (default), unix, unix_ms, apache ([17/May/2015:10:05:03 +0000]), or a "
                 "strptime pattern with '%'. A time without a zone is UTC")
      ->type_name("FORMAT")
      ->group("Window");
  app.add_option("--late", flags.late,
                 "What to do with a line that is older than the newest one by the window or more: "
                 "'pass' writes it (default), 'drop' does not. --stats counts them")
      ->type_name("pass|drop")
      ->group("Window");
}

void add_output_flags(CLI::App& app, DedupFlags& flags) {
  app.add_option("-D,--duplicates", flags.duplicates, "Write the duplicates to this file")
      ->type_name("FILE")
      ->group("Output");
  app.add_option("-o,--output", flags.output,
                 "Write to this file, which may be an input. It gets its name when it is "
                 "complete, and is compressed if it ends in .gz or .zst")
      ->type_name("FILE")
      ->group("Output");
  app.add_option("--compress", flags.compress,
                 "Compress the output. Default: by the name of --output")
      ->type_name("gz|zst|none")
      ->group("Output");
  app.add_option("--resume", flags.resume,
                 "Keep in this directory how far the run is. After a kill or a power cut the same "
                 "command goes on from there, and --output gets the bytes of a run that was not "
                 "killed. Inputs are files; they must not change before the run ends")
      ->type_name("DIR")
      ->group("Output");
  app.add_option("--resume-every", flags.resume_every,
                 "How many bytes of input lie between two checkpoints. Default: 256MiB")
      ->type_name("SIZE")
      ->group("Output");
  app.add_option("--threads", flags.threads,
                 "How many threads read and compare, 1 to 64. The output does not depend on it. "
                 "Default: one per processor, at most 8")
      ->type_name("N")
      ->group("Output");
  app.add_flag("-s,--stats", flags.stats,
               "Print counts, rate and memory to standard error at the end")
      ->group("Output");
  app.add_flag("-q,--quiet", flags.quiet,
               "No progress line, and no last line with counts. They are shown where standard "
               "error is a terminal, unless the lines go to a terminal too")
      ->group("Output");
  app.add_option(
         "-m,--memory", flags.memory,

         std::string{"Limit of the memory for keys: 512MiB, 4GiB. Default: half of the memory, "} +
             format_bytes(default_memory_bytes()) + " here")
      ->type_name("SIZE")
      ->group("Output");
}

}  // namespace

void add_flags(CLI::App& app, DedupFlags& flags) {
  app.add_option("FILE", flags.files, "Input files, '-' is standard input (the default)")
      ->type_name("");
  add_key_flags(app, flags);
  add_lines_flags(app, flags);
  add_window_flags(app, flags);
  add_output_flags(app, flags);
  const char* const state =
      has_dedup_state() ? state_footer
                        : "This build is the small one, for streams: it has no storage, so there "
                          "is no --state.\n"
                          "The whole program has it: cmake --preset release, or the Debian package "
                          "semel.\n\n";
  app.footer(std::string{lines_footer} + state + more_footer + exit_code_help);
}

}  // namespace semel::tool
