// Keeps the release program's floor at glibc 2.34 (Ubuntu 22.04, RHEL 9), wherever it is built.
//
// The program carries libstdc++ and libgcc as archives. The archives of the machine that builds it were compiled
// against that machine's glibc, and call functions that an older glibc lacks. A program that names such a symbol does
// not even start there. So the program defines these functions itself; a definition in the program wins over the shared
// library's. They are hidden: no library that the program opens later (the CUDA driver) sees them.
//
//   function          since        who calls it                            here
//   _dl_find_object   glibc 2.35   libgcc_eh.a of GCC 12 on, in every throw  dl_iterate_phdr, as GCC 11 did it
//   arc4random        glibc 2.36   libstdc++.a, std::random_device           getentropy
//   __isoc23_strto*   glibc 2.38   all that was compiled by 2.38's headers     strto* (no 0b1010, which we never read)
//
// tools/check_glibc.sh checks the finished program. Why not 2.28: see docs/decisions/0003-one-file-program.md.
#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))

// ---- _dl_find_object --------------------------------------------------------------------------------------------
// libgcc asks: which loaded object holds this code address, and where is its .eh_frame_hdr? The layout is that of
// <dlfcn.h> (struct dl_find_object) on 64-bit machines; it is written out because older headers have none.
struct found_object {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  struct link_map* link_map;
  void* eh_frame;
  unsigned long long reserved[7];
};
_Static_assert(sizeof(void*) == 8, "found_object has two more members on 32-bit machines");

struct search {
  uintptr_t pc;
  struct found_object* result;
};

static int look_into(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct search* search = data;
  const ElfW(Phdr)* eh_frame_header = NULL;
  uintptr_t start = UINTPTR_MAX;
  uintptr_t end = 0;
  int holds_pc = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* header = &info->dlpi_phdr[i];
    const uintptr_t low = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_GNU_EH_FRAME) eh_frame_header = header;
    if (header->p_type != PT_LOAD) continue;
    const uintptr_t high = low + header->p_memsz;
    if (low < start) start = low;
    if (high > end) end = high;
    if (search->pc >= low && search->pc < high) holds_pc = 1;
  }
  if (!holds_pc || eh_frame_header == NULL) return 0;
  *search->result = (struct found_object){
      .map_start = (void*)start,
      .map_end = (void*)end,
      .eh_frame = (void*)(info->dlpi_addr + eh_frame_header->p_vaddr),
  };
  return 1;  // stops the walk
}

// Named through the assembler: newer headers declare _dl_find_object with their own struct.
HIDDEN int find_object(void* pc, struct found_object* result) __asm__("_dl_find_object");
int find_object(void* pc, struct found_object* result) {
  struct search search = {.pc = (uintptr_t)pc, .result = result};
  return dl_iterate_phdr(look_into, &search) == 1 ? 0 : -1;
}

// ---- arc4random -------------------------------------------------------------------------------------------------
extern int getentropy(void* buffer, size_t length);
extern void abort(void) __attribute__((noreturn));

HIDDEN uint32_t random_word(void) __asm__("arc4random");
uint32_t random_word(void) {
  uint32_t value;
  if (getentropy(&value, sizeof value) != 0) abort();
  return value;
}

// ---- __isoc23_* -------------------------------------------------------------------------------------------------
// Declared here and not through <stdlib.h>, whose 2.38 version turns strtol itself into __isoc23_strtol.
extern long strtol(const char* text, char** end, int base);
extern long long strtoll(const char* text, char** end, int base);
extern unsigned long strtoul(const char* text, char** end, int base);
extern unsigned long long strtoull(const char* text, char** end, int base);

HIDDEN long __isoc23_strtol(const char* text, char** end, int base);
long __isoc23_strtol(const char* text, char** end, int base) { return strtol(text, end, base); }

HIDDEN long long __isoc23_strtoll(const char* text, char** end, int base);
long long __isoc23_strtoll(const char* text, char** end, int base) { return strtoll(text, end, base); }

HIDDEN unsigned long __isoc23_strtoul(const char* text, char** end, int base);
unsigned long __isoc23_strtoul(const char* text, char** end, int base) { return strtoul(text, end, base); }

HIDDEN unsigned long long __isoc23_strtoull(const char* text, char** end, int base);
unsigned long long __isoc23_strtoull(const char* text, char** end, int base) { return strtoull(text, end, base); }
