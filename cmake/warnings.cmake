# semel_warnings(TARGET): our warnings, as errors. Only when this project is built by itself: a
# newer compiler must not break somebody else's build.
function(semel_warnings target)
  if(PROJECT_IS_TOP_LEVEL)
    target_compile_options(${target} PRIVATE
      -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
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
