// The flags of `semel dedup`: names, values, and combinations.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/semel/dedup/dedup_options.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

class DedupCommand {
 public:
  /// Adds the subcommand to `program`; this object must outlive the parse.
  explicit DedupCommand(CLI::App& program);

  [[nodiscard]] bool is_chosen() const { return app_->parsed(); }
  [[nodiscard]] Exit run() const;

 private:
  void add_key_flags();
  void add_window_flags();
  void add_lines_flags();
  void add_output_flags();
  // The detail of an error is its whole text.
  [[nodiscard]] Status resolve(DedupOptions& options) const;
  [[nodiscard]] Status resolve_format(LineRule& rule) const;
  [[nodiscard]] Status resolve_fields(LineRule& rule) const;
  [[nodiscard]] Status resolve_names(LineRule& rule) const;
  [[nodiscard]] Status check_names(const char* flag, const LineRule& rule) const;
  [[nodiscard]] Status resolve_missing(DedupOptions& options) const;
  [[nodiscard]] Status resolve_selection(DedupOptions& options) const;
  [[nodiscard]] Status resolve_output(DedupOptions& options) const;
  [[nodiscard]] Status resolve_resume(DedupOptions& options) const;
  [[nodiscard]] Status check_whole_input(const DedupOptions& options) const;
  [[nodiscard]] Status resolve_key(DedupOptions& options) const;
  [[nodiscard]] Status resolve_line_max(DedupOptions& options) const;
  [[nodiscard]] Status resolve_window(DedupOptions& options) const;
  [[nodiscard]] Status resolve_time(LineRule& rule) const;
  [[nodiscard]] bool given(const char* flag) const { return app_->count(flag) > 0; }

  CLI::App* app_;
  std::vector<std::string> files_;
  std::string fields_;
  std::string names_;
  std::vector<std::string> pointers_;
  std::string delimiter_;
  std::string missing_ = "error";
  std::string window_;
  std::string time_field_;
  std::string time_pointer_;
  std::string time_format_ = "iso8601";
  std::string late_ = "pass";
  std::string duplicates_;
  std::string memory_;
  std::string state_;
  std::string keep_ = "first";
  std::string output_;
  std::string compress_;
  std::string threads_;
  std::string line_max_;
  std::string resume_;
  std::string resume_every_ = "256MiB";
  bool csv_ = false;
  bool tsv_ = false;
  bool header_ = false;
  bool no_header_ = false;
  bool ignore_case_ = false;
  bool zero_ = false;
  bool unique_ = false;
  bool repeated_ = false;
  bool total_ = false;
  bool digest_ = false;
  bool quotes_literal_ = false;
  bool sliding_ = false;
  bool count_ = false;
  bool stats_ = false;
  bool quiet_ = false;
};

}  // namespace semel::tool
