# semel_warnings(TARGET): our warnings. They are errors only with SEMEL_WERROR, which .ci/run asks
# for: a newer compiler warns of more, and must not break a user's build.
function(semel_warnings target)
  if(PROJECT_IS_TOP_LEVEL)
    target_compile_options(${target} PRIVATE
      -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
    if(SEMEL_WERROR)
      target_compile_options(${target} PRIVATE -Werror)
    endif()
    # clang checks what base/mutex.hpp says of locks.
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      target_compile_options(${target} PRIVATE -Wthread-safety)
    endif()
    # g++ 12 sees an overlap in every `"text" + std::string{..}` (GCC bug 105651).
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      target_compile_options(${target} PRIVATE -Wno-restrict)
    endif()
    # g++ 13 and later warn of a pointer that a guard's constructor keeps and its destructor takes
    # back.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
      target_compile_options(${target} PRIVATE -Wno-dangling-pointer)
    endif()
  endif()
endfunction()
