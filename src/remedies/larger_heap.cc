// The JVM and Node.js stop at a limit of their own, whatever the machine has.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy larger_heap() {
  return {.id = "larger-heap",
          .page = "host-allocation",
          .effect = Effect::unknown,
          .applies =
              [](const Circumstances& circumstances) {
                return circumstances.framework == "java" || circumstances.framework == "node";
              },
          .snippets =
              [](const Circumstances& circumstances) {
                const bool is_node = circumstances.framework == "node";
                const std::string name = is_node ? "NODE_OPTIONS" : "JAVA_TOOL_OPTIONS";
                const std::string value = is_node ? "--max-old-space-size=8192" : "-Xmx16g";
                const std::string spark =
                    is_node ? "" : "\nspark-submit --driver-memory 16g --executor-memory 16g  # Spark";
                return std::vector<Snippet>{{Place::bash, "export " + name + "=" + value + spark},
                                            {Place::powershell, "$env:" + name + " = \"" + value + "\""},
                                            {Place::cmd, "set " + name + "=" + value},
                                            {Place::dockerfile, "ENV " + name + "=" + value}};
              }};
}

}  // namespace oomscope
