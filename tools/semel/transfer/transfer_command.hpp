// `semel import` and `semel export`.
#pragma once

#include <cstdint>
#include <string>

#include "tools/semel/shared/exit_code.hpp"
#include "tools/semel/transfer/endpoint.hpp"

namespace CLI {
class App;
}

namespace semel::tool {

class StopSignals;
class Tally;

/// The flags of an endpoint.
class EndpointFlags {
 public:
  /// `address`: "--to" or "--from".
  void add(CLI::App& app, const char* address, const char* directory_text);
  /// Errors: bad_option.
  [[nodiscard]] Result<EndpointOptions> options() const;

 private:
  EndpointOptions options_{};
  std::string patience_ = "60s";
  std::string memory_;
};

class ImportCommand {
 public:
  explicit ImportCommand(CLI::App& program);
  [[nodiscard]] bool is_chosen() const;
  [[nodiscard]] Exit run() const;

 private:
  [[nodiscard]] Status import(Tally& tally, const StopSignals& signals) const;

  CLI::App* app_;
  EndpointFlags to_;
  std::string rdb_;
  std::string aof_;
  bool replaces_ = false;
  bool flushes_ = false;
};

class ExportCommand {
 public:
  explicit ExportCommand(CLI::App& program);
  [[nodiscard]] bool is_chosen() const;
  [[nodiscard]] Exit run() const;

 private:
  [[nodiscard]] Status write(Tally& tally, const StopSignals& signals) const;

  CLI::App* app_;
  EndpointFlags from_;
  std::string rdb_;
};

}  // namespace semel::tool
