// The flags of `semel dedup` as they are given, before it is known whether they go together.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace semel::tool {

struct DedupFlags {
  std::vector<std::string> files{};
  std::string fields{};
  std::string names{};
  std::vector<std::string> pointers{};
  std::string delimiter{};
  std::string missing = "error";
  std::string window{};
  std::string time_field{};
  std::string time_pointer{};
  std::string time_format = "iso8601";
  std::string late = "pass";
  std::string duplicates{};
  std::string memory{};
  std::string state{};
  std::string keep = "first";
  std::string output{};
  std::string compress{};
  std::string threads{};
  std::string line_max{};
  std::string resume{};
  std::string resume_every = "256MiB";
  bool csv = false;
  bool tsv = false;
  bool header = false;
  bool no_header = false;
  bool ignore_case = false;
  bool zero = false;
  bool unique = false;
  bool repeated = false;
  bool total = false;
  bool digest = false;
  bool quotes_literal = false;
  bool sliding = false;
  bool count = false;
  bool stats = false;
  bool quiet = false;
};

/// Adds them to the subcommand `app`, which writes into `flags` when it is parsed, and says what
/// they do.
void add_flags(CLI::App& app, DedupFlags& flags);

}  // namespace semel::tool
