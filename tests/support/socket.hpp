// Blocking connections to a server, with a time limit for each read and write. Nothing here
// asserts, so that any thread and any program may use it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace semel::tests {

/// How long a test waits for what must happen; it never waits for time to pass.
inline constexpr std::chrono::seconds patience{20};

/// A stream of bytes: a socket, or TLS over one.
class Stream {
 public:
  enum class Received : std::uint8_t { bytes, end, timeout };

  virtual ~Stream() = default;

  /// False: the connection failed, or no byte could be sent within `patience`.
  [[nodiscard]] virtual bool try_send(std::string_view bytes) = 0;
  /// Waits for bytes and appends at most `count` of them.
  [[nodiscard]] virtual Received receive(std::string& bytes, std::size_t count = 16 * 1024) = 0;

  /// As try_send(), but throws std::runtime_error where that returns false.
  void send(std::string_view bytes);
  /// `count` bytes, or fewer at the end of the stream or after `patience`.
  [[nodiscard]] std::string read(std::size_t count);
  /// One line with its end, or less as in read().
  [[nodiscard]] std::string line();
  /// Everything up to bytes that end with `end`. None: the stream ended before.
  [[nodiscard]] std::optional<std::string> read_until(std::string_view end);
  /// Everything up to the end of the stream; after a timeout it is followed by "(open)".
  [[nodiscard]] std::string read_to_end();
  [[nodiscard]] std::string ask(std::string_view request);
  [[nodiscard]] std::string ask(std::string_view request, std::size_t count);

 protected:
  Stream() = default;
  Stream(Stream&&) = default;
  Stream& operator=(Stream&&) = default;
};

class Socket final : public Stream {
 public:
  /// Connects to a port of this machine. Throws std::system_error if that fails.
  explicit Socket(std::uint16_t port);
  /// Connects to a Unix socket. Throws std::system_error if that fails.
  explicit Socket(const std::string& path);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() override;

  [[nodiscard]] bool try_send(std::string_view bytes) override;
  [[nodiscard]] Received receive(std::string& bytes, std::size_t count = 16 * 1024) override;
  void end_sending();
  void close() noexcept;
  [[nodiscard]] int native() const noexcept { return descriptor_; }

 private:
  int descriptor_ = -1;
};

}  // namespace semel::tests
