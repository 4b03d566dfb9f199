#include "lua_compat/interpreter.hpp"

#include "lua_compat/budget.hpp"

namespace semel::lua {

class Interpreter::Impl {
 public:
  Budget budget;
};

Interpreter::Interpreter(const Bounds& bounds) : impl_(std::make_unique<Impl>()) {
  impl_->budget.begin(bounds);
}
Interpreter::~Interpreter() = default;
void Interpreter::set_bounds(const Bounds& bounds) noexcept {
  impl_->budget.begin(bounds);
}
std::optional<std::string> Interpreter::compile(std::string_view, std::string_view) {
  return "not there yet";
}
bool Interpreter::has(std::string_view) const {
  return false;
}
void Interpreter::forget(std::string_view) {}
void Interpreter::run(std::string_view, const Invocation&, Host&, std::string& reply) {
  reply += "-ERR not there yet\r\n";
}
std::optional<std::string> Interpreter::load_library(std::string_view, std::string_view,
                                                     std::vector<RegisteredFunction>&) {
  return "not there yet";
}
void Interpreter::forget_library(std::string_view) {}
void Interpreter::run_function(std::string_view, std::string_view, const Invocation&, Host&,
                               std::string& reply) {
  reply += "-ERR not there yet\r\n";
}
std::size_t Interpreter::memory_bytes() const noexcept {
  return impl_->budget.memory_used;
}
void Interpreter::collect() {}

}  // namespace semel::lua
