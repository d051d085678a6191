# oomscope_layer(NAME [NEEDS layer...] [LIBRARIES target...] [UNITY])
#
# The *.cc of src/NAME/ become the library oomscope_NAME; *_test.cc, *_bench.cc and main.cc are left to others.
# UNITY: where OOMSCOPE_UNITY asks for it, several files are compiled as one. That makes a build from nothing quicker (the
# sanitizer build of make test: 354 s instead of 460) and that of one changed file slower; names in anonymous namespaces
# must then differ within the layer.
# A layer whose folder has no sources yet is a library of headers; one without a folder too, so NEEDS always resolves.
set(OOMSCOPE_LAYERS "")
function(oomscope_layer name)
  cmake_parse_arguments(layer "UNITY" "" "NEEDS;LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|/main)\\.cc$")
  list(TRANSFORM layer_NEEDS PREPEND oomscope_)
  if(sources)
    add_library(oomscope_${name} STATIC ${sources})
    target_link_libraries(oomscope_${name} PUBLIC oomscope_options ${layer_NEEDS} ${layer_LIBRARIES})
    if(layer_UNITY AND OOMSCOPE_UNITY)
      set_target_properties(oomscope_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    endif()
  else()
    add_library(oomscope_${name} INTERFACE)
    target_link_libraries(oomscope_${name} INTERFACE oomscope_options ${layer_NEEDS} ${layer_LIBRARIES})
  endif()
  set(OOMSCOPE_LAYERS ${OOMSCOPE_LAYERS} ${name} PARENT_SCOPE)
endfunction()

# Links each layer that the file includes: for programs of one file (fuzz targets, benchmarks).
function(oomscope_link_included_layers target source)
  file(STRINGS ${source} included REGEX "^#include \"[a-z]+/")
  list(TRANSFORM included REPLACE "^#include \"([a-z]+)/.*" "\\1")
  list(REMOVE_DUPLICATES included)
  foreach(layer ${included})
    if(TARGET oomscope_${layer})
      target_link_libraries(${target} PRIVATE oomscope_${layer})
    endif()
  endforeach()
endfunction()
