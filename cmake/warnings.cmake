# semel_warnings(TARGET): our warnings, as errors. Only when this project is built by itself: a
# newer compiler must not break somebody else's build.
function(semel_warnings target)
  if(PROJECT_IS_TOP_LEVEL)
    target_compile_options(${target} PRIVATE
      -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
  endif()
endfunction()
