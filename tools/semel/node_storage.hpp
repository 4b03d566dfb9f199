// The storage of a node, where it was built with one.
#pragma once

#include <memory>
#include <string>

#include "net/config/settings.hpp"
#include "semel/engine.hpp"
#include "semel/journal.hpp"

namespace semel::tool {

class NodeStorage {
 public:
  NodeStorage(net::Settings& settings, const Clock& clock);
  ~NodeStorage();

  /// Opens it and tells `options` of it. Returns what is wrong; empty: nothing.
  [[nodiscard]] std::string open(Options& options);
  /// Puts back what it has. Without effect if it was not opened.
  [[nodiscard]] std::string recover(Engine& engine);
  [[nodiscard]] std::unique_ptr<Journal> take();

 private:
  net::Settings& settings_;
  const Clock& clock_;
  std::unique_ptr<Journal> storage_;
};

}  // namespace semel::tool
