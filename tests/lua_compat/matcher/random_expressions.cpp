#include "tests/lua_compat/matcher/random_expressions.hpp"

namespace semel::tests {

std::string literal(std::string_view bytes) {
  std::string text = "'";
  for (const char c : bytes) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == ' ' ||
                          c == '%' || c == '[' || c == ']' || c == '(' || c == ')' || c == '.' ||
                          c == '{' || c == '}' || c == ':' || c == ',' || c == '"' || c == '-';
    if (is_plain) {
      text += c;
      continue;
    }
    const std::string code = std::to_string(static_cast<unsigned char>(c));
    text += "\\" + std::string(3 - code.size(), '0') + code;
  }
  return text + "'";
}

std::string RandomExpressions::some_of(const std::vector<std::string_view>& choices,
                                       std::size_t count_max) {
  std::string text;
  for (std::size_t i = below(count_max + 1); i > 0; --i) text += one_of(choices);
  return text;
}

std::string RandomExpressions::bytes(std::size_t count_max) {
  std::string text;
  for (std::size_t i = below(count_max + 1); i > 0; --i) text += static_cast<char>(below(256));
  return text;
}

std::string RandomExpressions::number() {
  static const std::vector<std::string_view> special{
      "0",       "1",      "-1",     "0.5",      "-0.5",     "1.5",
      "2.5",     "-2.5",   "0.1",    "1/0",      "-1/0",     "0/0",
      "2^31",    "2^31-1", "-2^31",  "2^32",     "2^32-1",   "2^52",
      "2^53",    "2^53+2", "2^63",   "-2^63",    "2^64",     "1e15",
      "1e300",   "-1e300", "1e-300", "123456.7", "1e14",     "1e16",
      "127",     "128",    "255",    "256",      "-128",     "-129",
      "-32",     "-33",    "32767",  "-32769",   "65535",    "65536",
      "-2^31-1", "2^40",   "-2^40",  "3.14159",  "1e100",    "'12'",
      "' 7 '",   "'0x1F'", "'1e2'",  "2^-10",    "2^31+0.5", "4503599627370497.5"};
  switch (below(3)) {
    case 0:
      return std::string{one_of(special)};
    case 1:
      return small_integer();
    default: {
      const auto whole = static_cast<std::int64_t>(random_()) >> below(63);
      return std::to_string(whole) + (below(3) == 0 ? ".25" : "");
    }
  }
}

std::string RandomExpressions::small_integer() {
  return std::to_string(static_cast<int>(below(24)) - 8);
}

std::string RandomExpressions::perhaps(std::string wanted) {
  if (below(24) != 0) return wanted;
  static const std::vector<std::string_view> others{"nil",  "true",   "{}",    "'x'",
                                                    "'12'", "1.75",   "false", "cjson.null",
                                                    "''",   "print_", "1e3",   "-3"};
  const std::string_view other = one_of(others);
  return other == "print_" ? "tostring" : std::string{other};
}

std::string RandomExpressions::value(int depth) {
  switch (below(depth > 0 ? 8 : 6)) {
    case 0:
      return std::string{one_of({"nil", "true", "false", "cjson.null"})};
    case 1:
    case 2:
      return number();
    case 3:
    case 4:
      return literal(bytes(below(8) == 0 ? 300 : 12));
    case 5:
      return literal(some_of({"a", "/", "\"", "\\", "\n", "\x7f", "\xc3\xa9", "\x01"}, 8));
    case 6: {
      std::string text = "{";
      for (std::size_t i = below(below(10) == 0 ? 20 : 4); i > 0; --i) {
        const std::string element = value(depth - 1);
        text += (element == "nil" ? "false" : element) + ",";
      }
      return text + "}";
    }
    default: {
      // Only one key: the order of more is not promised.
      const std::string key = below(3) != 0 ? literal(bytes(5)) : number();
      return "{[" + (key == "0/0" ? "1" : key) + "]=" + value(depth - 1) + "}";
    }
  }
}

std::string RandomExpressions::list(std::size_t count_max) {
  std::string text = "{";
  const bool is_mixed = below(12) == 0;
  const bool is_text = below(3) == 0;
  for (std::size_t i = below(count_max + 1); i > 0; --i) {
    if (is_text != (is_mixed && below(6) == 0)) {
      text += literal(some_of({"a", "b", "c", "B"}, 4)) + ",";
    } else {
      text += std::to_string(below(20)) + (below(6) == 0 ? ".5," : ",");
    }
  }
  return text + "}";
}

std::string RandomExpressions::arguments(const std::vector<std::string>& all, std::size_t needed) {
  std::size_t count = needed + below(all.size() - needed + 1);
  if (below(30) == 0) count = below(all.size() + 1);
  std::string text = "(";
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + perhaps(all[i]);
  return text + ")";
}

std::string RandomExpressions::patterns() {
  const std::string subject = literal(some_of({"a", "a", "b", "b", "ab", "1", " ", "(", ")", "[",
                                               "%", std::string_view{"\0", 1}, "\n", "Z"},
                                              12));
  const std::string pattern = literal(
      (below(6) == 0 ? "^" : "") +
      some_of({"a",    "b",     ".",      "%a",   "%d",    "%s",    "%w", "%p",     "%A",   "%W",
               "[ab]", "[^a]",  "[a-b1]", "[%a]", "[^%s]", "[]a]",  "(",  ")",      "(",    ")",
               "()",   "%1",    "%2",     "%b()", "%bab",  "%f[a]", "$",  "*",      "+",    "-",
               "?",    "*",     "+",      "-",    "?",     "%%",    "%z", "%f[%A]", "[a-]", "[%w_]",
               "(a*)", "(.-)b", "(.)",    "%x",   "a-",    "[^%w]", "%u", "%l"},
              6) +
      (below(8) == 0 ? "$" : "") +
      (below(20) == 0 ? std::string{one_of({"%", "[", "[^", "[a", "[%", "%f", "%b", "%bx", "%0",
                                            "%3", "^", "[a-"})}
                      : "") +
      (below(40) == 0 ? std::string{"\0a", 2} : ""));
  const std::string replacement =
      below(2) == 0
          ? literal(some_of({"x", "%0", "%1", "%2", "%%", "-", "%y", "%9"}, 4) +
                    (below(20) == 0 ? "%" : ""))
          : std::string{one_of({"{a='X', b=false, ab=1.5, ['1']=true}", "{}", "tostring", "7",
                                "function(a, b) return b or a end",
                                "function(...) return select('#', ...) end", "function() end",
                                "string.upper", "0/0", "function() return {} end"})};
  switch (below(6)) {
    case 0:
      return "string.find" + arguments({subject, pattern, small_integer()}, 2);
    case 1:
      return "string.find" +
             arguments({subject, pattern, number(), std::string{one_of({"true", "false"})}}, 2);
    case 2:
      return "string.match" + arguments({subject, pattern, small_integer()}, 2);
    case 3:
    case 4:
      return "string.gsub" + arguments({subject, pattern, replacement, small_integer()}, 3);
    default:
      return "(function() local r = {} for a, b in string." +
             std::string{one_of({"gmatch", "gmatch", "gfind"})} + arguments({subject, pattern}, 2) +
             " do r[#r + 1] = a r[#r + 1] = tostring(b) end return r end)()";
  }
}

std::string RandomExpressions::format() {
  std::string text;
  std::string values;
  for (std::size_t i = below(4); i > 0; --i) {
    text += some_of({"a", " ", "%%", "\n", std::string_view{"\0", 1}}, 2) + "%" +
            (below(2) == 0 ? some_of({"-", "+", " ", "#", "0"}, 3) : "") +
            (below(2) == 0 ? std::to_string(below(30)) : "") +
            (below(3) == 0 ? "." + (below(4) == 0 ? "" : std::to_string(below(25))) : "");
    const std::string_view letter = one_of(
        {"d", "i", "u", "x", "X", "o", "c", "e", "E", "f", "g", "G", "s", "s", "q", "d", "g"});
    text += letter;
    if (below(40) == 0) text += one_of({"%", "y", "%-----+d", "%123d", "%.123f", "%z", "%5", "%."});
    const bool is_text = letter == "s" || letter == "q";
    values += ", " + perhaps(is_text ? (below(4) == 0 ? number()
                                                      : literal(bytes(below(6) == 0 ? 150 : 10)))
                                     : number());
  }
  if (below(20) == 0) values += ", 1";
  return "string.format(" + literal(text) + values + ")";
}

std::string RandomExpressions::strings() {
  const std::string text = literal(bytes(12));
  switch (below(8)) {
    case 0:
      return "string.rep" + arguments({text, small_integer()}, 2);
    case 1:
      return "string.rep" + arguments({text, std::to_string(below(100)), "'sep'"}, 2);
    case 2:
      return "string.sub" + arguments({text, small_integer(), small_integer()}, 2);
    case 3:
      return "string.sub" + arguments({text, small_integer() + ".75", small_integer() + ".5"}, 2);
    case 4:
      return "string.byte" + arguments({text, small_integer(), small_integer()}, 1);
    case 5:
      return "string.char" + arguments({std::to_string(below(257)), std::to_string(below(256))}, 1);
    case 6:
      return "string." + std::string{one_of({"upper", "lower", "reverse", "len"})} + "(" +
             perhaps(text) + ")";
    default:
      return "(" + text + "):rep" + arguments({small_integer(), "2"}, 1);
  }
}

std::string RandomExpressions::sorted() {
  const std::string_view order = one_of(
      {"", "", ", function(a, b) return a > b end", ", function() return true end",
       ", function() return false end", ", function(a, b) return #tostring(a) < #tostring(b) end",
       ", function(a, b) return tostring(a) <= tostring(b) end", ", nil", ", 5",
       ", function(a, b) return math.random() < 0.5 end", ", function(a, b) return a <= b end",
       ", function(a, b) return a % 3 < b % 3 end",
       ", function(a, b) calls = calls + a return a < b end"});
  std::string text{order};
  if (const std::size_t place = text.find("calls = calls + a"); place != std::string::npos) {
    text.replace(place, 17, "t[0] = (t[0] or 0) * 3 % 1000 + a");
  }
  return "(function() local t = " + list(below(4) == 0 ? 60 : 8) + " table.sort(t" + text +
         ") return t end)()";
}

std::string RandomExpressions::tables() {
  const auto within = [this](const std::string& call) {
    return "(function() local t = " + list(8) +
           " local function f(...) return t, select('#', ...), ... end return f(" + call +
           ") end)()";
  };
  const auto with_table = [this](std::vector<std::string> rest, std::size_t needed) {
    rest.insert(rest.begin(), "t");
    return arguments(rest, needed);
  };
  switch (below(12)) {
    case 0:
    case 1:
      return within("table.insert" + with_table({small_integer(), "'new'", "1"}, 3));
    case 2:
      return within("table.insert" + with_table({"'new'"}, 2));
    case 3:
      return within("table.remove" + with_table({small_integer()}, 1));
    case 4:
      return "table.concat" +
             arguments({list(8), literal(bytes(2)), small_integer(), small_integer()}, 1);
    case 5:
      return "unpack" + arguments({list(8), small_integer(), small_integer()}, 1);
    case 6:
      return "unpack" + arguments({list(8), number(), number()}, 2);
    case 7:
      return "table." + std::string{one_of({"maxn", "getn", "setn"})} + arguments({list(8)}, 1);
    case 8:
      return "table." + std::string{one_of({"foreach", "foreachi"})} +
             arguments(
                 {list(4), std::string{one_of({"function(k, v) if v == 3 then return k end end",
                                               "function(k, v) return v end", "tostring", "7"})}},
                 2);
    case 9:
      return "table.maxn({[" + number() + " or 1]=1, [3]=2, x=5})";
    default:
      return sorted();
  }
}

std::string RandomExpressions::math() {
  switch (below(6)) {
    case 0:
      return "math.random()";
    case 1:
      return "math.random" + arguments({std::to_string(1 + below(1000))}, 1);
    case 2:
      return "math.random" + arguments({small_integer(), std::to_string(below(1000))}, 2);
    case 3:
      return "math.random" + arguments({number(), number(), "3"}, 1);
    case 4:
      return "math.randomseed" + arguments({number()}, 1);
    default:
      return "math." + std::string{one_of({"log", "mod", "fmod", "abs", "sqrt", "exp"})} +
             arguments({number(), number()}, 2);
  }
}

std::string RandomExpressions::json_text(int depth) {
  switch (below(depth > 0 ? 9 : 6)) {
    case 0:
      return std::string{one_of({"null", "true", "false", "nul", "True", ""})};
    case 1:
      return std::string{one_of(
          {"1",    "-1",  "0",     "0.5",   "1e5",      "1E+3", "-0",  "01",
           "0x10", "+1",  "nan",   "-inf",  "Infinity", "1.",   ".5",  "-",
           "1e",   "--1", "1e999", "0X1p4", "NaN",      "-nan", "- 1", "12345678901234567890"})};
    case 2:
      return std::to_string(static_cast<std::int64_t>(random_()) >> below(63));
    case 3:
    case 4:
      return "\"" + bytes(6) + "\"";
    case 5:
      return "\"" +
             some_of({"a", "\\n", "\\u0041", "\\u00e9", "\\u20ac", "\\ud83d\\ude00", "\\/", "\\\\",
                      "\\\"", "\\u0000", "\\ud800", "\\udc00", "\\x", "\\u12", "\\", "\n",
                      "\\b\\f\\r\\t", "\\uFFFF", "\\uD800\\u0041"},
                     4) +
             "\"";
    case 6:
    case 7: {
      std::string text = "[";
      for (std::size_t i = below(4); i > 0; --i) text += json_text(depth - 1) + (i > 1 ? "," : "");
      return text + "]";
    }
    default: {
      std::string text = "{";
      for (std::size_t i = below(3); i > 0; --i) {
        text += "\"" + std::string{one_of({"a", "b", "", "\\n"})} + "\" : " + json_text(depth - 1) +
                (i > 1 ? " , " : "");
      }
      return text + "}";
    }
  }
}

std::string RandomExpressions::json_setting() {
  switch (below(7)) {
    case 0:
      return "cjson.encode_max_depth" + arguments({below(3) == 0 ? number() : "1000"}, 0);
    case 1:
      return "cjson.decode_max_depth" + arguments({below(3) == 0 ? number() : "1000"}, 0);
    case 2:
      return "cjson.encode_number_precision" + arguments({below(3) == 0 ? number() : "14"}, 0);
    case 3:
      return "cjson.encode_sparse_array(" +
             std::string{one_of({"", "true", "false", "'on'", "false, 2, 10", "true, 3, 5",
                                 "nil, 4", "false, -1", "1", "'off', 2, 2^31", "true, 1, 2, 3"})} +
             ")";
    case 4:
      return "cjson.encode_invalid_numbers(" +
             std::string{
                 one_of({"", "true", "false", "'null'", "'on'", "'off'", "'x'", "3", "{}"})} +
             ")";
    case 5:
      return "cjson.decode_invalid_numbers(" + std::string{one_of({"", "true", "false"})} + ")";
    default:
      return "cjson.encode_keep_buffer(" + std::string{one_of({"", "true", "false"})} + ")";
  }
}

std::string RandomExpressions::json() {
  switch (below(12)) {
    case 0:
      return json_setting();
    case 1:
      return "cjson.encode({[" + std::to_string(below(20)) + "]=1})";
    case 2:
    case 3:
    case 4:
    case 5:
      return "cjson.encode" + arguments({value(4)}, 1);
    case 6:
      return "cjson.decode(cjson.encode(" + value(3) + "))";
    default: {
      std::string text = json_text(4);
      if (below(4) == 0 && !text.empty()) text.erase(below(text.size()), 1);
      if (below(4) == 0)
        text.insert(below(text.size() + 1),
                    one_of({" ", ",", "]", "}", "[", "{", "\"", ":", "1", "\n"}));
      return "cjson.decode" + arguments({literal(text)}, 1);
    }
  }
}

std::string RandomExpressions::msgpack() {
  const auto from_tags = [this] {
    std::string text;
    for (std::size_t i = below(8); i > 0; --i) {
      text += below(3) == 0 ? static_cast<char>(below(256))
                            : one_of({"\x91", "\x81", "\xa1", "\xc0", "\xcc", "\xd9", "\xdc",
                                      "\x01", "\x7f", "\xff", "\xca", "\xcf", "\xd3", "\xde"})[0];
      if (below(3) == 0) text += bytes(9);
      if (below(4) == 0) text += std::string(3, '\0');
    }
    return text;
  };
  switch (below(8)) {
    case 0:
    case 1:
    case 2:
      return "cmsgpack.pack" + arguments({value(4), value(2), value(1)}, 1);
    case 3:
      return "cmsgpack.unpack(cmsgpack.pack(" + value(4) + ", " + value(2) + "))";
    case 4:
    case 5:
      return "cmsgpack.unpack" + arguments({literal(from_tags())}, 1);
    case 6:
      return "cmsgpack.unpack_one" + arguments({literal(from_tags()), small_integer()}, 1);
    default:
      return "cmsgpack.unpack_limit" +
             arguments({literal(from_tags()), std::to_string(below(4)), small_integer()}, 2);
  }
}

std::string RandomExpressions::structs() {
  std::string format;
  std::string values;
  const bool is_sound = below(4) != 0;
  for (std::size_t i = below(6); i > 0; --i) {
    const std::string_view item = one_of(
        {"b", "B", "h", "H", "l", "L", "T", "i", "I", "f", "d", "s", "c", "x", ">", "<", "!", " "});
    format += item;
    if ((item == "i" || item == "I") && below(2) == 0)
      format += std::to_string(below(is_sound ? 17 : 36));
    if (item == "c" && below(2) == 0) format += std::to_string(below(5));
    if (item == "!" && below(2) == 0)
      format += one_of({"1", "2", "4", "8", "16", is_sound ? "8" : "3"});
    if (!is_sound && below(20) == 0) format += one_of({"z", "=", "99999999999", "n", "-", "?"});
    if (item == "s" || item == "c") {
      values += ", " + perhaps(literal(bytes(8)));
    } else if (item != "x" && item != ">" && item != "<" && item != "!" && item != " ") {
      values += ", " + perhaps(number());
    }
  }
  switch (below(4)) {
    case 0:
      return "struct.size" + arguments({literal(format)}, 1);
    case 1:
      return "struct.pack(" + literal(format) + (is_sound ? values : "") + ")";
    case 2:
      return "struct.unpack(" + literal(format) + ", struct.pack(" + literal(format) + values +
             "))";
    default:
      return "struct.unpack" +
             arguments({literal(format), literal(bytes(40)), below(2) == 0 ? "1" : number()}, 2);
  }
}

std::string RandomExpressions::bits() {
  static const std::vector<std::string_view> one{"tobit", "bnot", "bswap"};
  static const std::vector<std::string_view> two{"lshift", "rshift", "arshift",
                                                 "rol",    "ror",    "tohex"};
  static const std::vector<std::string_view> many{"band", "bor", "bxor"};
  switch (below(3)) {
    case 0:
      return "bit." + std::string{one_of(one)} + arguments({number(), number()}, 1);
    case 1:
      return "bit." + std::string{one_of(two)} + arguments({number(), number()}, 2);
    default:
      return "bit." + std::string{one_of(many)} + arguments({number(), number(), number()}, 1);
  }
}

std::string RandomExpressions::next(Library library) {
  switch (library) {
    case Library::patterns:
      return patterns();
    case Library::format:
      return format();
    case Library::strings:
      return strings();
    case Library::tables:
      return tables();
    case Library::math:
      return math();
    case Library::json:
      return json();
    case Library::msgpack:
      return msgpack();
    case Library::structs:
      return structs();
    default:
      return bits();
  }
}

}  // namespace semel::tests
