// `semel help` and `semel version`, and how help is laid out.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

/// Breaks descriptions into lines that fit beside the flags on a terminal of 100 columns.
class HelpFormatter : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_option_desc(const CLI::Option* option) const override;
};

class HelpCommand {
 public:
  /// Adds the subcommand to `program`; both must outlive the parse and run().
  explicit HelpCommand(CLI::App& program);

  [[nodiscard]] bool is_chosen() const { return app_->parsed(); }
  [[nodiscard]] Exit run() const;

 private:
  const CLI::App& program_;
  CLI::App* app_;
  CLI::Option* subcommand_;
  std::vector<std::string> names_;
  bool lists_ = false;
};

class VersionCommand {
 public:
  /// Adds the subcommand, and the flag --version, to `program`.
  explicit VersionCommand(CLI::App& program);

  [[nodiscard]] bool is_chosen() const { return app_->parsed(); }
  [[nodiscard]] Exit run() const;

 private:
  CLI::App* app_;
};

}  // namespace semel::tool
