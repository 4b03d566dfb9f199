# SEMEL_SANITIZE applies to everything that is built, or a report could hide in what is not.
if(SEMEL_SANITIZE)
  list(JOIN SEMEL_SANITIZE "," semel_sanitize_list)
  add_compile_options(
    "-fsanitize=${semel_sanitize_list}" -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options("-fsanitize=${semel_sanitize_list}")
  # With its checks inserted g++ 12 no longer sees what the standard library has initialised.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-error=maybe-uninitialized -Wno-error=tsan)
  endif()
endif()
