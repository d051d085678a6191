# src/words/{en,zh}/*.json -> words_embedded.cc in the build tree, as raw strings; part of the layer `words`.
set(languages "en:english" "zh:chinese")
set(entries "")
foreach(pair ${languages})
  string(REPLACE ":" ";" parts ${pair})
  list(GET parts 0 folder)
  list(GET parts 1 language)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/words/${folder}/*.json)
  foreach(path ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    get_filename_component(name ${path} NAME)
    file(READ ${path} json)
    string(APPEND entries "    {Language::${language}, \"${name}\", R\"words(${json})words\"},\n")
  endforeach()
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/words_embedded.cc @ONLY CONTENT
"#include \"words/embedded.h\"

namespace oomscope {

std::span<const EmbeddedWords> embedded_words() {
  static const EmbeddedWords all[] = {
@entries@  };
  return all;
}

}  // namespace oomscope
")
target_sources(oomscope_words PRIVATE ${PROJECT_BINARY_DIR}/words_embedded.cc)
