// Writes replies, in the dialect of a connection. A type that RESP2 does not have is written as
// redis-server 7.0 does: a map as an array of twice the length, a set or a push as an array, a
// double, a big number and a verbatim text as a bulk, true and false as 1 and 0, null as a null
// bulk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "net/resp/large_bytes.hpp"

namespace semel::net {

enum class Resp : std::uint8_t { two = 2, three = 3 };

class RespWriter {
 public:
  /// Appends to `out`, which must outlive this.
  RespWriter(std::string& out, Resp dialect) noexcept : out_(out), dialect_(dialect) {}

  void set_dialect(Resp dialect) noexcept { dialect_ = dialect; }
  /// Omits texts that would make the buffer larger than `bytes`. A reply that was cut is not valid:
  /// the caller must check is_cut() before it is sent.
  void set_bound(std::size_t bytes) noexcept { bytes_max_ = bytes; }
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }
  /// Marks the reply as if a text had been omitted.
  void cut() noexcept { is_cut_ = true; }
  /// About how many more bytes may be appended or held.
  [[nodiscard]] std::size_t room() const noexcept;
  /// Removes the bytes appended behind offset `from`, so that another reply can be written.
  void take_back(std::size_t from);
  /// Writes large values as references, which `large` holds. Null: copies them.
  void set_large(LargeReplies* large) noexcept { large_ = large; }
  [[nodiscard]] LargeReplies* large() const noexcept { return large_; }
  /// Allows the next bulk() to move these bytes out instead of copying them, if it is called with
  /// them and they are many. They are the value of `name` in this version; with an empty name, a
  /// value that no later reply refers to. `bytes` must live until that call; null: no offer.
  void offer(std::string* bytes, std::string_view name, std::uint64_t version) noexcept {
    offered_ = bytes;
    offered_name_ = name;
    offered_version_ = version;
  }
  [[nodiscard]] Resp dialect() const noexcept { return dialect_; }
  /// The size of the buffer, and the bytes appended to it since its size was `from`.
  [[nodiscard]] std::size_t size() const noexcept { return out_.size(); }
  [[nodiscard]] std::string_view since(std::size_t from) const noexcept {
    SEMEL_ASSERT(from <= out_.size());
    return std::string_view{out_}.substr(from);
  }

  /// A simple string. `text` must have neither CR nor LF.
  void simple(std::string_view text);
  void ok() { simple("OK"); }
  /// "CODE text". Each CR or LF becomes a blank, so that bytes of a client cannot end the line.
  void error(std::string_view text);
  void integer(std::int64_t number);
  void bulk(std::string_view bytes);
  void shared_bulk(const SharedBytes& bytes);
  void bulk_of(std::int64_t number);
  void null();
  void null_array();  ///< in place of an array
  void boolean(bool value);
  void number(double value);
  /// `format`: three letters, "txt" or "mkd".
  void verbatim(std::string_view text, std::string_view format = "txt");

  /// Appends bytes that are encoded for the dialect already.
  void prepared(std::string_view bytes) { out_ += bytes; }

  // The caller writes the elements next; of a map, keys and values in turn.
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

/// The shortest text that parses to the same double; "inf", "-inf", "nan". Redis has this form
/// since 7.2; 7.0 writes 17 digits. INCRBYFLOAT has another form, see Store::incr_by_float.
[[nodiscard]] std::string text_of(double value);

}  // namespace semel::net
