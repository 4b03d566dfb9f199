# What all our targets are made with, so that the libraries can become part of a shared one which
# shows only what it means to. These variables are of our folders alone: a project that embeds
# Semel keeps its own.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# semel_alone(SOURCE...): these are left out of the unity builds of the presets, where up to eight
# sources of a target are compiled as one. For a source whose unnamed namespace has a name that a
# neighbour or a header uses as well. g++ reports that, also where only the layout of a class would
# change (-Wsubobject-linkage). A project that embeds Semel compiles each source by
# itself, so tools/prove consumers finds a source that forgets an include.
function(semel_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# semel_apart(TARGET SOURCE... [AND SOURCE...]...): in unity builds these are compiled with each
# other, apart from the target's other sources, whose unnamed namespaces share a name with theirs.
# AND begins a further unit. It costs a third of semel_alone; call it after that.
function(semel_apart target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(others ${target} SOURCES)
  set(unit 0)
  foreach(source IN LISTS ARGN)
    if(source STREQUAL "AND")
      math(EXPR unit "${unit} + 1")
    else()
      list(REMOVE_ITEM others "${source}")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "apart_${unit}")
    endif()
  endforeach()
  set(place 0)
  foreach(source IN LISTS others)
    get_source_file_property(alone "${source}" SKIP_UNITY_BUILD_INCLUSION)
    if(NOT alone)
      math(EXPR unit "${place} / 8")
      math(EXPR place "${place} + 1")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "unit_${unit}")
    endif()
  endforeach()
endfunction()

# semel_own_threads(TARGET): it has thread_local variables. Position independent code would ask for
# their address by a call; so it is one load, and less in a program. A library that is loaded later
# (dlopen) takes their few bytes from the room that the C library keeps for that.
function(semel_own_threads target)
  target_compile_options(${target} PRIVATE -ftls-model=initial-exec)
endfunction()
