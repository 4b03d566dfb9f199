# Writes OUTPUT, a source with the files of PAGE: cmake -DPAGE=.. -DOUTPUT=.. -P embed.cmake
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")
set(arrays "")
set(rows "")
foreach(name index.html console.css console.js base.js claims.js key.js plots.js icon.svg)
  file(READ "${PAGE}/${name}" hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  string(MAKE_C_IDENTIFIER "file_${name}" array)
  string(REGEX REPLACE "^.*\\." "" ending "${name}")
  string(APPEND arrays "const unsigned char ${array}[] = {${bytes}};\n")
  set(path "/console/${name}")
  if(name STREQUAL "index.html")
    set(path "/console/")
  endif()
  string(APPEND rows "      ConsoleFile{\"${path}\", \"${type_${ending}}\", text_of(${array})},\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"net/console/console_files.hpp\"

#include <array>
#include <cstddef>

namespace semel::net {
namespace {

${arrays}
template <std::size_t size>
std::string_view text_of(const unsigned char (&bytes)[size]) noexcept {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

std::span<const ConsoleFile> console_files() noexcept {
  static const std::array files{
${rows}  };
  return files;
}

}  // namespace semel::net
")
