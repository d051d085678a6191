# src/words/{en,zh}/*.json -> words_embedded.cc in the build tree, a sorted table for each language; part of the layer
# `words`. The program starts without reading any JSON.
function(oomscope_read_words folder table_of)
  set(keys "")
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/words/${folder}/*.json)
  foreach(path ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(READ ${path} json)
    string(JSON count LENGTH "${json}")
    math(EXPR last "${count} - 1")
    foreach(index RANGE ${last})
      string(JSON key MEMBER "${json}" ${index})
      string(JSON type TYPE "${json}" "${key}")
      if(NOT type STREQUAL "STRING" OR DEFINED "text_${key}")
        message(FATAL_ERROR "${path}: ${key} is no text or stands twice")
      endif()
      string(JSON "text_${key}" GET "${json}" "${key}")
      list(APPEND keys "${key}")
    endforeach()
  endforeach()
  list(SORT keys)
  set(table "")
  foreach(key IN LISTS keys)
    string(APPEND table "    {\"${key}\", R\"words(${text_${key}})words\"},\n")
  endforeach()
  set(${table_of} "${table}" PARENT_SCOPE)
endfunction()

oomscope_read_words(en english)
oomscope_read_words(zh chinese)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/words_embedded.cc @ONLY CONTENT
"#include \"words/embedded.h\"

namespace oomscope {

std::span<const WordEntry> embedded_words(Language language) {
  static constexpr WordEntry english[] = {
@english@  };
  static constexpr WordEntry chinese[] = {
@chinese@  };
  return language == Language::english ? std::span<const WordEntry>(english) : std::span<const WordEntry>(chinese);
}

}  // namespace oomscope
")
target_sources(oomscope_words PRIVATE ${PROJECT_BINARY_DIR}/words_embedded.cc)
