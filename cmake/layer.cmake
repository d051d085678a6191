# oomscope_layer(NAME [NEEDS layer...] [LIBRARIES target...])
#
# The *.cc of src/NAME/ become the library oomscope_NAME; *_test.cc, *_bench.cc and main.cc are left to others.
# A layer whose folder has no sources yet is a library of headers; one without a folder too, so NEEDS always resolves.
set(OOMSCOPE_LAYERS "")
function(oomscope_layer name)
  cmake_parse_arguments(layer "" "" "NEEDS;LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|/main)\\.cc$")
  list(TRANSFORM layer_NEEDS PREPEND oomscope_)
  if(sources)
    add_library(oomscope_${name} STATIC ${sources})
    target_link_libraries(oomscope_${name} PUBLIC oomscope_options ${layer_NEEDS} ${layer_LIBRARIES})
  else()
    add_library(oomscope_${name} INTERFACE)
    target_link_libraries(oomscope_${name} INTERFACE oomscope_options ${layer_NEEDS} ${layer_LIBRARIES})
  endif()
  set(OOMSCOPE_LAYERS ${OOMSCOPE_LAYERS} ${name} PARENT_SCOPE)
endfunction()
