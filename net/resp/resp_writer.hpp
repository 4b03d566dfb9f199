// Replies into bytes, in either dialect of a connection. What RESP2 has no form for is written as
// redis-server 7.0 does it: a map as an array of twice the length, a set or a push as an array, a
// double, a big number and a verbatim text as a bulk, true and false as 1 and 0, null as a null
// bulk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/resp/large_bytes.hpp"

namespace semel::net {

enum class Resp : std::uint8_t { two = 2, three = 3 };

class RespWriter {
 public:
  /// Appends to `out`, which must live as long as this.
  RespWriter(std::string& out, Resp dialect) noexcept : out_(out), dialect_(dialect) {}

  void set_dialect(Resp dialect) noexcept { dialect_ = dialect; }
  /// Texts that would make the buffer larger than `bytes` are left out: what was appended is no
  /// reply then, and the caller asks is_cut() before anybody reads it.
  void set_bound(std::size_t bytes) noexcept { bytes_max_ = bytes; }
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }
  /// As if a text had been left out.
  void cut() noexcept { is_cut_ = true; }
  /// How much more may be appended or held, about.
  [[nodiscard]] std::size_t room() const noexcept;
  /// What stands behind `from` is no reply: it goes, and another one may be written.
  void take_back(std::size_t from);
  /// Large values are written by reference, which `large` keeps. Null: they are copied.
  void set_large(LargeReplies* large) noexcept { large_ = large; }
  [[nodiscard]] LargeReplies* large() const noexcept { return large_; }
  /// If bulk() is asked for these very bytes and they are many, it may take them: a value that
  /// `name` has in this version, or that will not be met again if it has none. Until bulk() was
  /// called, or the bytes are gone; null: none.
  void offer(std::string* bytes, std::string_view name, std::uint64_t version) noexcept {
    offered_ = bytes;
    offered_name_ = name;
    offered_version_ = version;
  }
  [[nodiscard]] Resp dialect() const noexcept { return dialect_; }
  /// How much stands in the buffer, and what was appended to it since it was `from`.
  [[nodiscard]] std::size_t size() const noexcept { return out_.size(); }
  [[nodiscard]] std::string_view since(std::size_t from) const noexcept {
    return std::string_view{out_}.substr(from);
  }

  /// A line: `text` has neither CR nor LF.
  void simple(std::string_view text);
  void ok() { simple("OK"); }
  /// "CODE text"; each CR or LF in it becomes a blank, so that a client's own bytes cannot end it.
  void error(std::string_view text);
  void integer(std::int64_t number);
  void bulk(std::string_view bytes);
  void shared_bulk(const SharedBytes& bytes);
  void bulk_of(std::int64_t number);
  void null();
  void null_array();  ///< of what would have been an array
  void boolean(bool value);
  void number(double value);
  /// `format`: three letters, "txt" or "mkd".
  void verbatim(std::string_view text, std::string_view format = "txt");

  /// Bytes that were made ready for the dialect.
  void prepared(std::string_view bytes) { out_ += bytes; }

  // The elements follow; of a map, keys and values in turn.
  void array(std::size_t count);
  void map(std::size_t pairs);
  void set(std::size_t count);
  void push(std::size_t count);

 private:
  [[nodiscard]] bool is_three() const noexcept { return dialect_ == Resp::three; }
  void head(char mark, std::int64_t number);
  [[nodiscard]] bool is_over(std::size_t more) const noexcept;
  [[nodiscard]] bool take_offer(std::string_view bytes);

  std::string& out_;
  LargeReplies* large_ = nullptr;
  std::string* offered_ = nullptr;
  std::string_view offered_name_{};
  std::uint64_t offered_version_ = 0;
  std::size_t bytes_max_ = ~std::size_t{0};
  Resp dialect_;
  bool is_cut_ = false;
};

/// The shortest text that reads back as the same double; "inf", "-inf", "nan". Redis has this form
/// since 7.2; 7.0 writes 17 digits. INCRBYFLOAT's is another, Store::incr_by_float.
[[nodiscard]] std::string text_of(double value);

}  // namespace semel::net
