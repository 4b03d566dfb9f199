#include "net/server/server.hpp"

#include <unistd.h>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "net/server/acceptor.hpp"
#include "net/server/io_thread.hpp"
#include "net/server/listener.hpp"
#include "net/server/process.hpp"

namespace semel::net {

Server::Server(ServerOptions options, ServerHooks hooks)
    : options_(std::move(options)),
      hooks_(std::move(hooks)),
      own_clock_(options_.clock == nullptr ? std::make_unique<SystemClock>() : nullptr) {
  if (own_clock_) options_.clock = own_clock_.get();
  if (options_.threads == 0) {
    options_.threads =
        std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, io_threads_max);
  }
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, ServerHooks hooks) {
  SEMEL_CHECK(check_options(options));
  std::unique_ptr<Server> server{new Server{std::move(options), std::move(hooks)}};
  SEMEL_CHECK(server->open());
  return server;
}

Status Server::open() {
  SEMEL_CHECK(fit_files());
  std::shared_ptr<const TlsContext> tls;
  if (options_.tls_port) {
    SEMEL_TRY(loaded, TlsContext::load(options_.tls));
    tls = std::move(loaded);
  }
  for (std::size_t i = 0; i < options_.threads; ++i) {
    IoThread::Context outer{
        .options = options_, .hooks = hooks_, .clock = *options_.clock, .drained = [this] {
          note_drained();
        }};
    threads_.push_back(std::make_unique<IoThread>(std::move(outer), i));
    SEMEL_CHECK(threads_.back()->open());
  }
  SEMEL_TRY(listeners, open_listeners(options_));
  port_.store(listeners.port, std::memory_order_relaxed);  // mo: relaxed: shown only
  tls_port_ = listeners.tls_port;
  acceptor_ = std::make_unique<Acceptor>(options_, hooks_, threads_, options_.maxclients);
  acceptor_->set_tls(std::move(tls));
  SEMEL_CHECK(acceptor_->begin(listeners.all));
  {
    const base::MutexLock lock{listening_};
    listeners_ = std::move(listeners);
    wanted_port_ = options_.port;
    listens_ = true;
  }
  for (const auto& thread : threads_) thread->start();
  return Done{};
}

Status Server::fit_files() {
  const std::size_t wanted = options_.maxclients + options_.reserved_files;
  const std::size_t limit = raise_file_limit(wanted);
  if (limit >= wanted) return Done{};
  const std::string text = "maxclients " + std::to_string(options_.maxclients) + " needs " +
                           std::to_string(wanted) + " open files, and the system allows " +
                           std::to_string(limit);
  if (limit <= options_.reserved_files) {
    return Error{ErrorCode::bad_option, text + "; raise it (ulimit -n)"};
  }
  options_.maxclients = limit - options_.reserved_files;
  if (hooks_.log) {
    hooks_.log(LogLevel::warning, text + "; maxclients is now " +
                                      std::to_string(options_.maxclients) +
                                      ". Raise the limit (ulimit -n) for more");
  }
  return Done{};
}

Server::~Server() {
  forget_listeners();
  // The accepting thread stops first, so that no socket is handed to a thread that has ended.
  if (acceptor_) threads_.front()->stop();
  for (const auto& thread : threads_) thread->stop();
  if (acceptor_) acceptor_->close();
}

std::string Server::ready_text() const {
  std::string text;
  {
    const base::MutexLock lock{listening_};
    if (wanted_port_) text += "port=" + std::to_string(port()) + '\n';
  }
  if (options_.tls_port) text += "tls_port=" + std::to_string(tls_port_) + '\n';
  if (!options_.unix_path.empty()) text += "unix=" + options_.unix_path + '\n';
  return text + "pid=" + std::to_string(::getpid()) + '\n';
}

std::size_t Server::drain(Millis within) {
  forget_listeners();
  const Timestamp deadline = options_.clock->now() + within;
  const std::uint64_t cut_before = stats().ended_by(Ended::cut);
  // The first thread closes the listeners before it drains. A socket handed to a draining thread is
  // closed by that thread.
  for (const auto& thread : threads_) thread->request_drain(deadline);
  base::MutexLock lock{mutex_};
  while (drained_count_ < threads_.size()) drained_.wait(lock);
  return stats().ended_by(Ended::cut) - cut_before;
}

void Server::note_drained() {
  const base::MutexLock lock{mutex_};
  ++drained_count_;
  drained_.notify_all();
}

void Server::post(std::size_t thread, std::function<void()> function) {
  threads_[thread]->post(std::move(function));
}

void Server::run_on_each(const std::function<void(std::size_t thread)>& function) {
  for (std::size_t thread = 0; thread < threads_.size(); ++thread) {
    std::promise<void> done;
    threads_[thread]->post([&] {
      function(thread);
      done.set_value();
    });
    done.get_future().wait();
  }
}

void Server::tick() {
  run_on_each([this](std::size_t thread) { threads_[thread]->tick(); });
}

void Server::set_limits(const ConnectionLimits& limits) {
  for (const auto& thread : threads_) {
    thread->post([&thread, limits] { thread->set_limits(limits); });
  }
}

bool Server::set_maxclients(std::size_t maxclients) {
  if (maxclients == 0 || maxclients > maxclients_max) return false;
  const std::size_t wanted = maxclients + options_.reserved_files;
  if (raise_file_limit(wanted) < wanted) return false;
  acceptor_->set_maxclients(maxclients);
  return true;
}

void Server::set_keepalive(Millis keepalive) noexcept {
  acceptor_->set_keepalive(keepalive);
}

void Server::forget_listeners() {
  const base::MutexLock lock{listening_};
  listens_ = false;
  listeners_ = {};
}

Status Server::listen_on(const std::vector<std::string>& addresses,
                         std::optional<std::uint16_t> port) {
  const base::MutexLock lock{listening_};
  if (!listens_) return Error{ErrorCode::closing, "the server is ending"};
  ServerOptions wanted = options_;
  wanted.addresses = addresses;
  wanted.port = port;
  SEMEL_CHECK(check_options(wanted));
  // A port that the system chose stays until another one is requested.
  if (port && port == wanted_port_) wanted.port = listeners_.port;
  if (wanted.tls_port) wanted.tls_port = listeners_.tls_port;
  const Status changed = change_listeners(wanted, listeners_);
  // Under the lock: of two changes the later one is also the later to arrive.
  threads_.front()->post([this, all = listeners_.all] { acceptor_->replace(all); });
  SEMEL_CHECK(changed);
  wanted_port_ = port;
  port_.store(listeners_.port, std::memory_order_relaxed);  // mo: relaxed: shown only
  return Done{};
}

std::size_t Server::maxclients() const noexcept {
  return acceptor_->maxclients();
}

Status Server::reload_tls(const TlsFiles& files) {
  SEMEL_TRY(context, TlsContext::load(files));
  acceptor_->set_tls(std::move(context));
  return Done{};
}

ServerStats Server::stats() const {
  ServerStats stats;
  acceptor_->add_to(stats);
  for (const auto& thread : threads_) {
    const ConnectionCounters& counters = thread->counters();
    stats.bytes_in += counters.bytes_in.get();
    stats.bytes_out += counters.bytes_out.get();
    stats.rounds += counters.rounds.get();
    for (std::size_t i = 0; i < endings; ++i) stats.ended[i] += counters.ended[i].get();
  }
  return stats;
}

}  // namespace semel::net
