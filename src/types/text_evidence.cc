#include "types/text_evidence.h"

namespace oomscope {
namespace {

constexpr std::array<std::string_view, kFigures> kNames = {"tried",
                                                           "total",
                                                           "allocated",
                                                           "reserved",
                                                           "cached",
                                                           "reserved_unallocated",
                                                           "private_pools",
                                                           "free",
                                                           "process_total",
                                                           "limit",
                                                           "other_allocations",
                                                           "active",
                                                           "anon_rss",
                                                           "total_vm",
                                                           "shmem_rss",
                                                           "file_rss",
                                                           "rss",
                                                           "used"};

}  // namespace

std::string_view name_of(Figure figure) { return kNames[static_cast<size_t>(figure)]; }

std::optional<Figure> figure_of(std::string_view name) {
  for (size_t i = 0; i < kFigures; ++i) {
    if (kNames[i] == name) return static_cast<Figure>(i);
  }
  return std::nullopt;
}

}  // namespace oomscope
