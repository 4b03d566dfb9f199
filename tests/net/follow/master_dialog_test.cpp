#include <string>
#include <string_view>

#include "net/follow/master_dialog.hpp"
#include "tests/support/catch.hpp"

using semel::net::MasterDialog;
using State = MasterDialog::State;

namespace {

const std::string replid(40, 'a');

/// The dialogue with a master that says `lines`, one for each request.
struct Said {
  MasterDialog dialog;
  std::string out;

  explicit Said(MasterDialog::Terms terms, std::initializer_list<std::string> lines)
      : dialog(std::move(terms)) {
    dialog.begin(out);
    for (const std::string& line : lines) {
      out.clear();
      CHECK(dialog.receive(line, out) == line.size());
    }
  }
};

std::string request(std::initializer_list<std::string_view> words) {
  std::string out;
  semel::net::append_request(out, words);
  return out;
}

}  // namespace

TEST_CASE("master dialog: without a password it asks for the whole stream", "[net][follow]") {
  MasterDialog dialog{{.user = "", .password = "", .port = 7000, .from = {}}};
  std::string out;
  dialog.begin(out);
  CHECK(out == "*1\r\n$4\r\nPING\r\n");
  out.clear();
  CHECK(dialog.receive("+PONG\r\n", out) == 7);
  CHECK(out == request({"REPLCONF", "listening-port", "7000"}));
  out.clear();
  CHECK(dialog.receive("+OK\r\n", out) == 5);
  CHECK(out == request({"REPLCONF", "capa", "eof", "capa", "psync2"}));
  out.clear();
  CHECK(dialog.receive("-ERR unknown\r\n", out) == 14);  // an old master
  CHECK(out == request({"PSYNC", "?", "-1"}));
  out.clear();
  const std::string full = "\n\n+FULLRESYNC " + replid + " 42\r\n\n$18\r\nREDIS";
  CHECK(dialog.receive(full, out) == full.size() - 5);
  CHECK(out.empty());
  CHECK(dialog.state() == State::transfer);
  CHECK(dialog.position().replid == replid);
  CHECK(dialog.position().offset == 42);
  CHECK(dialog.length() == 18);
}

TEST_CASE("master dialog: bytes may come one by one", "[net][follow]") {
  MasterDialog dialog{{.user = "", .password = "", .port = 1, .from = {}}};
  const std::string mark(40, 'e');
  const std::string all =
      "+PONG\r\n+OK\r\n+OK\r\n+FULLRESYNC " + replid + " 0\r\n$EOF:" + mark + "\r\n";
  std::string out;
  std::string kept;
  for (const char byte : all) {
    kept += byte;
    kept.erase(0, dialog.receive(kept, out));
  }
  CHECK(kept.empty());
  CHECK(dialog.state() == State::transfer);
  CHECK(dialog.mark() == mark);
  CHECK(dialog.length() == 0);
}

TEST_CASE("master dialog: it logs in before anything else", "[net][follow]") {
  const Said by_name{{.user = "joe", .password = "pass", .port = 1, .from = {}},
                     {"-NOAUTH Authentication required.\r\n"}};
  CHECK(by_name.out == request({"AUTH", "joe", "pass"}));
  const Said by_default{{.user = "", .password = "pass", .port = 1, .from = {}}, {"+PONG\r\n"}};
  CHECK(by_default.out == request({"AUTH", "pass"}));
  const Said refused{{.user = "", .password = "pass", .port = 1, .from = {}},
                     {"+PONG\r\n", "-WRONGPASS no\r\n"}};
  CHECK(refused.dialog.state() == State::failed);
  CHECK(refused.dialog.error() == "AUTH: -WRONGPASS no");
}

TEST_CASE("master dialog: a stream goes on behind the byte that was applied last",
          "[net][follow]") {
  const MasterDialog::Terms terms{.user = "", .password = "", .port = 1, .from = {replid, 99}};
  const Said asked{terms, {"+PONG\r\n", "+OK\r\n", "+OK\r\n"}};
  CHECK(asked.out == request({"PSYNC", replid, "100"}));

  const Said same{terms, {"+PONG\r\n", "+OK\r\n", "+OK\r\n", "+CONTINUE\r\n"}};
  CHECK(same.dialog.state() == State::stream);
  CHECK(same.dialog.position().replid == replid);
  CHECK(same.dialog.position().offset == 99);

  const std::string renamed(40, 'b');
  const Said other{terms, {"+PONG\r\n", "+OK\r\n", "+OK\r\n", "+CONTINUE " + renamed + "\r\n"}};
  CHECK(other.dialog.state() == State::stream);
  CHECK(other.dialog.position().replid == renamed);
}

TEST_CASE("master dialog: what is no reply ends it, and is not shown as it is", "[net][follow]") {
  const MasterDialog::Terms terms{.user = "", .password = "", .port = 1, .from = {}};
  const auto ends = [&](std::string line) {
    const Said said{terms, {"+PONG\r\n", "+OK\r\n", "+OK\r\n", line}};
    INFO(line);
    CHECK(said.dialog.state() == State::failed);
  };
  ends("+CONTINUE\r\n");  // of nothing
  ends("+FULLRESYNC\r\n");
  ends("+FULLRESYNC " + replid + "\r\n");
  ends("+FULLRESYNC " + replid + " x\r\n");
  ends("+FULLRESYNC " + replid + " -1\r\n");
  ends("+FULLRESYNC " + replid + "a 1\r\n");
  ends("+FULLRESYNC " + std::string(40, '/') + " 1\r\n");
  ends("-NOMASTERLINK Can't SYNC while not connected with my master\r\n");
  const Said said{terms, {"\x1b[2J\x01\r\n"}};
  CHECK(said.dialog.error() == "PING: ?[2J?");

  MasterDialog endless{terms};
  std::string out;
  const std::string kept(MasterDialog::line_bytes_max, 'x');
  CHECK(endless.receive(kept, out) == 0);
  CHECK(endless.state() == State::pong);
  CHECK(endless.receive(kept + "x", out) == 0);
  CHECK(endless.state() == State::failed);
}
