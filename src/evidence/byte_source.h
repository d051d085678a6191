// The real ByteSources: a file, bytes in memory, and what unpacks them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "pickle/byte_source.h"

namespace oomscope {

Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path);
std::unique_ptr<ByteSource> memory_source(std::span<const uint8_t> bytes);

// Gives the bytes of `front` again, then those of `rest`: for looking at the first bytes before deciding.
std::unique_ptr<ByteSource> prefixed_source(std::vector<uint8_t> front, std::unique_ptr<ByteSource> rest);

// The first bytes of `source` (fewer only at its end); `source` gives them again afterwards.
[[nodiscard]] Result<std::vector<uint8_t>> peek_source(std::unique_ptr<ByteSource>& source);

// A packed stream that ends early or is damaged gives all bytes before that, then an Error "packed-data-damaged".
enum class Packing : uint8_t { none, gzip, zstd, xz };
[[nodiscard]] Packing packing_of(std::span<const uint8_t> first_bytes);
Result<std::unique_ptr<ByteSource>> unpacking_source(Packing packing, std::unique_ptr<ByteSource> packed);

// Whether the first bytes are those of a web page.
[[nodiscard]] bool looks_like_page(std::span<const uint8_t> front);

// Finds the first base64 text that starts as a pickle does, between quotes, and gives what it encodes. That is how
// torch/cuda/_memory_viz.py (_format_viz) puts a snapshot into a page. Gives nothing if the page has none.
std::unique_ptr<ByteSource> html_pickle_source(std::unique_ptr<ByteSource> page);

}  // namespace oomscope
