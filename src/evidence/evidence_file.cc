#include "evidence/evidence_file.h"

#include <cstring>

#include "evidence/byte_source.h"
#include "evidence/text/text_reader.h"

namespace oomscope {
namespace {

// Logs hold colours and stray bytes, binary files hold many control bytes. UTF-16 is text by its mark.
bool looks_like_text(std::span<const uint8_t> front) {
  if (front.empty()) return false;  // the snapshot reader's message for empty files
  if (front[0] == 0x80 || (front.size() >= 4 && std::memcmp(front.data(), "PK\x03\x04", 4) == 0)) return false;
  constexpr size_t kMagicOfTar = 257;
  const bool is_tar = front.size() > kMagicOfTar + 5 && std::memcmp(front.data() + kMagicOfTar, "ustar", 5) == 0;
  if (is_tar) return false;
  const bool is_utf16 = front.size() >= 2 && (front[0] ^ front[1]) == 1 && front[0] >= 0xFE;
  // Backspace to carriage return and escape belong to terminals. A run of zeros is a hole that a file system left, of
  // whatever length.
  constexpr size_t kShortestHole = 8;
  size_t controls = 0;
  size_t zeros = 0;
  size_t in_holes = 0;
  for (uint8_t byte : front) {
    zeros = byte == 0 ? zeros + 1 : 0;
    controls += byte < 8 || (byte > 13 && byte < 32 && byte != 27) || byte == 127 ? 1 : 0;
    if (zeros >= kShortestHole) in_holes += zeros == kShortestHole ? kShortestHole : 1;
  }
  if (!is_utf16 && (controls - in_holes) * 20 > front.size() - in_holes) return false;
  return !looks_like_page(front);
}

// Unpacks `source` and says whether text comes out. Packed more than kMostLayers times over is left to the snapshot
// reader, which refuses it.
Result<bool> unpack_to_text(std::unique_ptr<ByteSource>& source) {
  constexpr int kMostLayers = 4;
  for (int layer = 0; layer < kMostLayers; ++layer) {
    OOM_TRY(const std::vector<uint8_t> front, peek_source(source));
    const Packing packing = packing_of(front);
    if (packing == Packing::none) return looks_like_text(front);
    OOM_TRY(source, unpacking_source(packing, std::move(source)));
  }
  return false;
}

}  // namespace

Result<bool> is_text_file(const std::string& path) {
  OOM_TRY(std::unique_ptr<ByteSource> source, open_file_source(path));
  Result<bool> is_text = unpack_to_text(source);
  return is_text ? *is_text : false;  // what cannot be unpacked is for the snapshot reader to refuse
}

Result<EvidenceFile> read_evidence_file(const std::string& path, const std::string& name) {
  OOM_TRY(std::unique_ptr<ByteSource> source, open_file_source(path));
  OOM_TRY(const bool is_text, unpack_to_text(source));
  if (!is_text) {
    OOM_TRY(Snapshot snapshot, read_snapshot_source(std::move(source), name));
    return EvidenceFile(std::move(snapshot));
  }
  OOM_TRY(TextEvidence text, read_text_source(std::move(source), name));
  return EvidenceFile(std::move(text));
}

}  // namespace oomscope
