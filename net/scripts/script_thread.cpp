#include "net/scripts/script_thread.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/ascii.hpp"
#include "lua_compat/matcher/script_calls.hpp"
#include "net/resp/reply_error.hpp"
#include "net/resp/text.hpp"
#include "net/scripts/native_scripts.hpp"
#include "net/scripts/script_check.hpp"
#include "net/time/ticks.hpp"

namespace semel::net {
namespace {

constexpr std::size_t sha_digits = 40;

/// Of 40 digits, small or not.
std::size_t hash_of(std::string_view sha) noexcept {
  std::uint64_t head = 0;
  std::uint64_t next = 0;
  std::memcpy(&head, sha.data(), sizeof head);
  std::memcpy(&next, sha.data() + sizeof head, sizeof next);
  head = (head ^ (next << 4U)) * 0x9E37'79B9'7F4A'7C15U;
  return static_cast<std::size_t>(head >> 32U);
}

std::string_view body_of(const Library& library) noexcept {
  return std::string_view{library.text->code}.substr(library.text->body_begin);
}

/// Bounds the time in which a library's code may register its functions: it cannot be killed, and
/// others wait for it. The same time as in redis-server.
class LoadHost final : public lua::Host {
 public:
  explicit LoadHost(const TickSource& ticks) noexcept
      : ticks_(ticks), end_ns_(ticks.ns() + load_ns_max) {}
  void call(std::span<const std::string_view>, Resp, std::string&) override {}
  [[nodiscard]] std::optional<bool> may_call(std::span<const std::string_view>) override {
    return std::nullopt;
  }
  void log(lua::LogLevel, std::string_view) override {}
  [[nodiscard]] lua::Stop pause() override {
    return ticks_.ns() > end_ns_ ? lua::Stop::time : lua::Stop::none;
  }

 private:
  static constexpr std::int64_t load_ns_max = 500'000'000;
  const TickSource& ticks_;
  std::int64_t end_ns_;
};

/// Gives `library` the functions that its code has registered. Of several errors, the last one.
Status add_functions(LibraryText& library, const std::vector<lua::RegisteredFunction>& functions) {
  Status added = Done{};
  if (functions.empty()) added = reply_error("ERR No functions registered");
  for (const lua::RegisteredFunction& each : functions) {
    LibraryFunction& function = library.functions.emplace_back();
    function.name = each.name;
    if (each.has_description) function.description = each.description;
    for (const std::string& word : each.flags) {
      const auto flag = script_flag(word);
      if (!flag) added = reply_error("ERR Error registering functions: ERR unknown flag given");
      function.flags |= flag.value_or(0);
    }
    if (!is_library_name(each.name)) {
      added = reply_error("ERR Error registering functions: " + std::string{library_name_error});
    }
  }
  return added;
}

}  // namespace

ScriptThread::ScriptThread(Scripts& scripts)
    : scripts_(scripts), metrics_(std::make_shared<InterpreterMetrics>()) {}

ScriptThread::~ScriptThread() = default;

lua::Interpreter& ScriptThread::interpreter() {
  if (interpreter_ == nullptr) {
    interpreter_ = std::make_unique<lua::Interpreter>(scripts_.bounds());
    if (!shows_metrics_) scripts_.show(metrics_);
    shows_metrics_ = true;
  } else {
    interpreter_->set_bounds(scripts_.bounds());
  }
  return *interpreter_;
}

Fibre& ScriptThread::fibre() {
  if (fibre_ == nullptr) fibre_ = std::make_unique<Fibre>();
  return *fibre_;
}

const SharedScript& ScriptThread::find(std::string_view sha) {
  if (sha.size() != sha_digits) return none_;
  if (slots_.empty()) slots_.resize(slot_count);
  const std::size_t home = hash_of(sha);
  for (std::size_t i = 0; i < probes_max; ++i) {
    const SharedScript& script = slots_[(home + i) % slot_count].script;
    if (script != nullptr && script->sha == sha && !script->is_forgotten()) [[likely]]
      return script;
  }
  const std::string small = base::lower_of(sha);
  return small == sha ? look_up(small) : find(small);
}

const SharedScript& ScriptThread::look_up(const std::string& sha) {
  SharedScript found = scripts_.find(sha);
  if (found == nullptr) return none_;
  const std::size_t home = hash_of(sha);
  std::size_t at = home;
  for (std::size_t i = 0; i < probes_max; ++i) {
    const SharedScript& script = slots_[(home + i) % slot_count].script;
    if (script != nullptr && !script->is_forgotten()) continue;
    at = home + i;
    break;
  }
  SharedScript& slot = slots_[at % slot_count].script;
  if (slot != nullptr) retired_.push_back(std::move(slot));
  slot = std::move(found);
  return slot;
}

Result<SharedScript> ScriptThread::take(std::string_view text, bool loads, std::int64_t now_ns) {
  renew_if_crowded();
  std::string sha = sha1_hex(text);
  SharedScript script = find(sha);
  const bool is_new = script == nullptr;
  if (is_new) {
    script = std::make_shared<Script>();
    script->sha = std::move(sha);
    script->text = text;
    SEMEL_CHECK(read_shebang(*script));
    script->shape = lua::shape_of(script->body(), key_positions);
  }
  const ScriptPolicy policy = scripts_.policy();
  if (policy == ScriptPolicy::known && script->shape.known == lua::KnownScript::unknown) {
    scripts_.refused();
    return reply_error(std::string{not_known_error});
  }
  if (is_new) {
    const std::vector<lua::SentCommand> sent = std::move(script->shape.sent);
    SEMEL_CHECK(scripts_.check_new("script", sent));
  }
  script->used(now_ns);
  if (is_new && script->shape.known == lua::KnownScript::unknown) {
    SEMEL_CHECK(compile(script));
  }
  // mo: relaxed: set under the mutex of the scripts, which add() takes.
  if (!is_new && (!loads || script->loaded.load(std::memory_order_relaxed))) return script;
  return scripts_.add(std::move(script), loads);
}

Status ScriptThread::compile(const SharedScript& script) {
  lua::Interpreter& lua = interpreter();
  if (lua.has(script->sha)) return Done{};
  const Status compiled = lua.compile(script->sha, script->body());
  if (!compiled.ok()) {
    return reply_error("ERR Error compiling script (new function): " + compiled.error().detail);
  }
  compiled_.push_back(script);
  return Done{};
}

Status ScriptThread::prepare(const SharedLibrary& library, const TickSource& ticks) {
  if (loaded_.contains(library)) return Done{};
  LoadHost host{ticks};
  const auto functions = interpreter().load_library(library->id, body_of(*library), &host);
  if (!functions.ok()) return reply_error("ERR Error " + functions.error().detail);
  loaded_.insert(library);
  return Done{};
}

Result<SharedLibrary> ScriptThread::make_library(std::string_view code, const TickSource& ticks) {
  renew_if_crowded();
  SEMEL_TRY(head, read_library_head(code));
  if (!is_word(head.engine, "lua")) {
    return reply_error("ERR Engine '" + head.engine + "' not found");
  }
  const auto sent = lua::sent_commands(code.substr(head.body_begin));
  SEMEL_CHECK(scripts_.check_new("library", sent));
  auto text = std::make_shared<LibraryText>();
  text->name = head.name;
  text->code = code;
  text->body_begin = head.body_begin;
  auto library = std::make_shared<Library>(Library{scripts_.functions.new_id(), text});
  LoadHost host{ticks};
  const auto loaded = interpreter().load_library(library->id, body_of(*library), &host);
  if (!loaded.ok()) return reply_error("ERR Error " + loaded.error().detail);
  if (const Status added = add_functions(*text, *loaded); !added) {
    interpreter().forget_library(library->id);
    return added.error();
  }
  loaded_.insert(library);
  return SharedLibrary{std::move(library)};
}

void ScriptThread::forget(const SharedLibrary& library) {
  if (loaded_.erase(library) != 0) interpreter_->forget_library(library->id);
}

void ScriptThread::forget_old() {
  scripts_seen_ = scripts_.generation();
  std::erase_if(compiled_, [this](const SharedScript& script) {
    if (!script->is_forgotten()) return false;
    interpreter_->forget(script->sha);
    return true;
  });
  for (ScriptSlot& slot : slots_) {
    if (slot.script != nullptr && slot.script->is_forgotten()) slot.script.reset();
  }
  libraries_seen_ = scripts_.functions.generation();
  std::erase_if(loaded_, [this](const SharedLibrary& library) {
    if (scripts_.functions.has_id(library->name(), library->id)) return false;
    interpreter_->forget_library(library->id);
    return true;
  });
}

/// Nothing may be running. Scripts are compiled again at their next call.
void ScriptThread::renew_if_crowded() {
  if (interpreter_ == nullptr || !interpreter_->is_crowded()) return;
  interpreter_.reset();
  compiled_.clear();
  loaded_.clear();
}

void ScriptThread::release_retired() {
  retired_.clear();
  renew_if_crowded();
  if (interpreter_ == nullptr) return;
  const bool many = scripts_.generation() - scripts_seen_ >= Scripts::forgotten_many;
  if (many || scripts_.functions.generation() != libraries_seen_) forget_old();
  // mo: relaxed: a statistic.
  metrics_->bytes.store(interpreter_->memory_bytes(), std::memory_order_relaxed);
}

}  // namespace semel::net
