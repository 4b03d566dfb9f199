#include "net/follow/master_link.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include <boost/asio/post.hpp>

#include "net/follow/partial_copy.hpp"

namespace semel::net {

namespace {

constexpr Millis acknowledge_every{1'000};
constexpr Millis tick_every{100};
constexpr Millis pause_first{100};
constexpr Millis pause_max{5'000};
// A full sync costs the master a snapshot.
constexpr Millis pause_of_sync_first{1'000};
constexpr Millis pause_of_sync_max{60'000};

/// Of the machine: no test and no hold moves it.
Timestamp machine_time() {
  return SystemClock{}.now();
}
std::int64_t seconds_since(Timestamp then) {
  return (machine_time() - then).count() / 1'000;
}

}  // namespace

MasterLink::MasterLink(Node& node, FollowState& state)
    : node_(node),
      state_(state),
      work_guard_(boost::asio::make_work_guard(io_)),
      socket_(io_, {.opened = [this] { begin_handshake(); },
                    .received = [this](std::string_view bytes) { receive(bytes); },
                    .lost = [this](const std::string& reason) { leave(reason, Cause::master); }}),
      runner_(node, [this](std::string_view name, std::string_view error) {
        ++view_.commands_refused;
        report(LogLevel::warning, "master_command_refused",
               std::string{name} + ": " + std::string{error});
      }) {}

MasterLink::~MasterLink() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
}

Status MasterLink::start() {
  try {
    thread_ = std::thread{[this] { io_.run(); }};
  } catch (const std::system_error& failed) {
    return Error{ErrorCode::no_thread, failed.what()};
  }
  boost::asio::post(io_, [this] { tick(); });
  return Done{};
}

void MasterLink::go(Turn turn, std::optional<MasterAddress> master) {
  boost::asio::post(io_, [this, turn, master = std::move(master)] { begin(turn, master); });
}

// --- the connection -----------------------------------------------------------------------------

void MasterLink::begin(Turn turn, std::optional<MasterAddress> master) {
  if (turn < turn_) return;
  close();
  turn_ = turn;
  pause_ = Millis{0};
  times_ = {};
  view_.error.clear();
  view_.master = master.value_or(MasterAddress{});
  if (master) return connect();
  view_.replid.clear();
  publish();
}

void MasterLink::close() {
  socket_.close();
  later_.cancel();
  dialog_.reset();
  sync_.reset();
  input_ = {};
  input_at_ = 0;
  is_stalled_ = false;
  if (view_.link == Link::connected) times_.lost = machine_time();
  view_.link = Link::connect;
}

void MasterLink::leave(const std::string& reason, Cause cause) {
  const Millis first = cause == Cause::node ? pause_of_sync_first : pause_first;
  const Millis most = cause == Cause::node ? pause_of_sync_max : pause_max;
  if (reason != view_.error) report(LogLevel::warning, "master_link_lost", reason);
  close();
  view_.error = reason;
  if (const FollowState::Work work{state_, turn_}; work) node_.role.set_linked(false);
  pause_ = std::clamp(pause_ * 2, first, most);
  publish();
  later_.expires_after(pause_);
  later_.async_wait([this, turn = turn_](const boost::system::error_code& error) {
    if (!error && turn == turn_) connect();
  });
}

void MasterLink::connect() {
  view_.link = Link::connecting;
  times_.heard = machine_time();
  publish();
  socket_.open(view_.master);
}

void MasterLink::begin_handshake() {
  view_.link = Link::handshake;
  times_.heard = machine_time();
  MasterDialog::Terms terms;
  terms.user = node_.settings.text(Setting::masteruser);
  terms.password = node_.settings.text(Setting::masterauth);
  terms.port = node_.facts.tcp_port.load(std::memory_order_relaxed);  // mo: relaxed: shown only
  if (!view_.replid.empty()) terms.from = {view_.replid, runner_.applied()};
  dialog_.emplace(std::move(terms));
  std::string out;
  dialog_->begin(out);
  publish();
  socket_.read();
  socket_.write(out);
}

void MasterLink::receive(std::string_view bytes) {
  times_.heard = machine_time();
  input_.append(bytes);
  if (view_.link == Link::connected) view_.read_offset += static_cast<std::int64_t>(bytes.size());
  work();
}

// --- the input ----------------------------------------------------------------------------------

void MasterLink::work() {
  bool reads_on = false;
  try {
    reads_on = view_.link == Link::handshake ? run_dialog()
               : view_.link == Link::sync    ? run_sync()
                                             : run_stream();
  } catch (const std::bad_alloc&) {
    view_.replid.clear();
    leave("the process has no memory", Cause::node);
  }
  publish();
  if (reads_on) socket_.read();
}

bool MasterLink::run_dialog() {
  std::string out;
  const std::size_t taken = dialog_->receive(input_, out);
  input_.erase(0, taken);
  switch (dialog_->state()) {
    case MasterDialog::State::failed:
      leave("the master's reply to " + dialog_->error(), Cause::master);
      return false;
    case MasterDialog::State::transfer:
      return begin_sync();
    case MasterDialog::State::stream:
      view_.replid = dialog_->position().replid;
      ++view_.partial_syncs;
      runner_.go_on();
      report(LogLevel::notice, "master_partial_sync", "from " + std::to_string(runner_.applied()));
      return begin_stream();
    default:
      break;
  }
  socket_.write(out);
  return true;
}

bool MasterLink::begin_sync() {
  view_.replid.clear();
  ++view_.full_syncs;
  view_.link = Link::sync;
  report(LogLevel::notice, "master_full_sync", "begins");
  sync_.emplace(node_, runner_, *dialog_);
  Status begun = Done{};
  {
    const FollowState::Work work{state_, turn_};
    if (!work) return false;
    begun = sync_->begin();
  }
  if (begun) return run_sync();
  leave(begun.error().detail, Cause::node);
  return false;
}

bool MasterLink::run_sync() {
  using Progress = FullSync::Progress;
  Progress progress = Progress::more;
  const std::string bytes = std::exchange(input_, {});
  {
    const FollowState::Work work{state_, turn_};
    if (!work) return false;
    if (!bytes.empty()) progress = sync_->take(bytes);
    if (progress == Progress::done) {
      end_partial_copy(node_);
      node_.role.become(NodeRole::State::follows);
    }
  }
  if (progress == Progress::more) return true;
  if (progress == Progress::failed) {
    leave("the full sync: " + sync_->error(), Cause::node);
    return false;
  }
  view_.replid = dialog_->position().replid;
  runner_.begin(dialog_->position().offset);
  report(
      LogLevel::notice, "master_full_sync",
      std::to_string(sync_->keys()) + " keys, " + std::to_string(sync_->bytes_taken()) + " bytes");
  input_ = sync_->rest();
  sync_.reset();
  return begin_stream();
}

bool MasterLink::begin_stream() {
  view_.link = Link::connected;
  view_.read_offset = runner_.applied() + static_cast<std::int64_t>(input_.size());
  view_.error.clear();
  dialog_.reset();
  pause_ = Millis{0};
  times_.was_linked = true;
  input_at_ = 0;
  if (const FollowState::Work work{state_, turn_}; work) node_.role.set_linked(true);
  acknowledge();
  return run_stream();
}

std::optional<StreamRunner::Step> MasterLink::run_some() {
  constexpr int requests_max = 256;
  const FollowState::Work work{state_, turn_};
  if (!work) return Step::incomplete;
  std::optional<Step> last;
  for (int i = 0; i < requests_max && !last && input_at_ < input_.size(); ++i) {
    const Step step = runner_.run(std::string_view{input_}.substr(input_at_));
    input_at_ += runner_.consumed();
    if (step == Step::asks_for_ack) acknowledge();
    if (step != Step::ran && step != Step::asks_for_ack) last = step;
  }
  runner_.rest();
  return last;
}

bool MasterLink::run_stream() {
  std::optional<Step> last;
  while (!last && input_at_ < input_.size()) last = run_some();
  if (state_.turn() != turn_) return false;
  input_.erase(0, std::exchange(input_at_, 0));
  constexpr std::size_t kept_bytes = std::size_t{256} << 10;
  if (input_.empty() && input_.capacity() > kept_bytes) input_ = {};
  is_stalled_ = false;
  if (last == Step::waits) {
    stall(Millis{10}, {});
    return false;
  }
  if (last == Step::full) {
    stall(Millis{250}, "a command of the master cannot run: " + runner_.error());
    return false;
  }
  if (last == Step::lost || last == Step::bad) {
    view_.replid.clear();
    leave("the stream: " + runner_.error(), Cause::node);
    return false;
  }
  view_.error.clear();
  return true;
}

void MasterLink::stall(Millis pause, const std::string& reason) {
  is_stalled_ = true;
  if (!reason.empty() && reason != view_.error) {
    report(LogLevel::warning, "master_link_stalled", reason);
    view_.error = reason;
  }
  later_.expires_after(pause);
  later_.async_wait([this](const boost::system::error_code& error) {
    if (!error && is_stalled_) work();
  });
}

// --- time ---------------------------------------------------------------------------------------

void MasterLink::acknowledge() {
  times_.acknowledged = machine_time();
  std::string out;
  append_request(out, {"REPLCONF", "ACK", std::to_string(runner_.applied())});
  socket_.write(out);
}

void MasterLink::tick() {
  ticks_.expires_after(tick_every);
  ticks_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
  const Timestamp now = machine_time();
  if (is_stalled_) times_.heard = now;  // the link does not read
  if (view_.link == Link::connected && now - times_.acknowledged >= acknowledge_every) {
    acknowledge();
  }
  const Millis limit{node_.settings.integer(Setting::repl_timeout) * 1'000};
  if (view_.link != Link::connect && now - times_.heard >= limit) {
    return leave("the master has sent nothing for " + std::to_string(limit.count() / 1'000) + " s",
                 Cause::master);
  }
  publish();
}

// --- for others ---------------------------------------------------------------------------------

void MasterLink::publish() {
  const bool is_linked = view_.link == Link::connected;
  view_.offset = view_.replid.empty() ? -1 : runner_.applied();
  if (!is_linked) view_.read_offset = view_.offset;
  view_.quiet_seconds = view_.link >= Link::handshake ? seconds_since(times_.heard) : -1;
  view_.down_seconds = times_.was_linked && !is_linked ? seconds_since(times_.lost) : -1;
  view_.sync_bytes = 0;
  view_.sync_bytes_read = 0;
  if (sync_ && dialog_) {
    view_.sync_bytes = static_cast<std::int64_t>(dialog_->length());
    view_.sync_bytes_read = static_cast<std::int64_t>(sync_->bytes_taken());
  }
  if (state_.turn() == turn_) state_.show(view_);
}

void MasterLink::report(LogLevel level, std::string_view name, const std::string& text) const {
  const std::string address = view_.master.host + ":" + std::to_string(view_.master.port);
  node_.hooks.report({.level = level, .name = name, .address = address, .user = {}, .text = text});
}

}  // namespace semel::net
