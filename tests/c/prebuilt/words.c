#include "words.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "../check.h"

#ifndef DT_RELR
#define DT_RELR 36
#endif
#define DT_ANDROID_REL 0x6000000f
#define DT_ANDROID_RELA 0x60000011
#define DT_ANDROID_RELR 0x6fffe000

#if __ELF_NATIVE_CLASS == 64
#define SYMBOL_OF(info) ELF64_R_SYM(info)
#define TYPE_OF(info) ELF64_R_TYPE(info)
#else
#define SYMBOL_OF(info) ELF32_R_SYM(info)
#define TYPE_OF(info) ELF32_R_TYPE(info)
#endif

#if defined(__x86_64__)
#define POINTER R_X86_64_64
#elif defined(__i386__)
#define POINTER R_386_32
#elif defined(__aarch64__)
#define POINTER R_AARCH64_ABS64
#elif defined(__arm__)
#define POINTER R_ARM_ABS32
#elif defined(__riscv)
#define POINTER R_RISCV_64
#endif

struct search {
  const char *name;
  struct words *words;
  bool found;
};

/* glibc writes addresses into the dynamic section, other loaders leave offsets there. */
static uintptr_t placed(uintptr_t bias, uintptr_t value) {
  return value < bias ? bias + value : value;
}

static void take(struct words *words, uintptr_t bias, const ElfW(Sym) *symbols, const char *strings, uintptr_t offset,
                 uintptr_t info) {
  const ElfW(Sym) *symbol = &symbols[SYMBOL_OF(info)];
  const char *name = strings + symbol->st_name;
  static const char *const functions[] = {"ALooper_addFd", "ALooper_removeFd", "ALooper_pollOnce", "ALooper_pollAll"};
  for (unsigned i = 0; i < 4; i++) {
    if (strcmp(name, functions[i]) == 0) {
      CHECK(words->count < WORDS_MAX, "%u words", words->count);
      struct word *word = &words->word[words->count++];
      snprintf(word->function, sizeof word->function, "%s", name);
      word->at = (const volatile uintptr_t *)(bias + offset);
      word->is_pointer = TYPE_OF(info) == POINTER;
    }
  }
}

static intptr_t packed_number(const unsigned char **at) {
  uintptr_t value = 0;
  unsigned shift = 0;
  unsigned char byte;
  do {
    byte = *(*at)++;
    value |= (uintptr_t)(byte & 0x7f) << shift;
    shift += 7;
  } while (byte & 0x80);
  if (byte & 0x40 && shift < 8 * sizeof value) {
    value |= UINTPTR_MAX << shift;
  }
  return (intptr_t)value;
}

/* Android's own packing: groups that have some of offset, kind and addend in common. */
static void read_packed(struct words *words, uintptr_t bias, const ElfW(Sym) *symbols, const char *strings,
                        const unsigned char *at) {
  enum { SAME_INFO = 1, SAME_STEP = 2, SAME_ADDEND = 4, ADDENDS = 8 };
  CHECK(memcmp(at, "APS2", 4) == 0, "no packed relocations");
  at += 4;
  intptr_t left = packed_number(&at);
  uintptr_t offset = (uintptr_t)packed_number(&at), info = 0;
  while (left > 0) {
    intptr_t count = packed_number(&at), flags = packed_number(&at);
    uintptr_t step = flags & SAME_STEP ? (uintptr_t)packed_number(&at) : 0;
    info = flags & SAME_INFO ? (uintptr_t)packed_number(&at) : 0;
    if ((flags & ADDENDS) && (flags & SAME_ADDEND)) {
      packed_number(&at);
    }
    for (left -= count; count > 0; count--) {
      offset += flags & SAME_STEP ? step : (uintptr_t)packed_number(&at);
      info = flags & SAME_INFO ? info : (uintptr_t)packed_number(&at);
      if ((flags & ADDENDS) && !(flags & SAME_ADDEND)) {
        packed_number(&at);
      }
      take(words, bias, symbols, strings, offset, info);
    }
  }
}

static void read_dynamic(struct words *words, uintptr_t bias, const ElfW(Dyn) *dynamic) {
  const ElfW(Sym) *symbols = NULL;
  const char *strings = NULL;
  uintptr_t table[3] = {0}, size[3] = {0};
  bool slots_have_addends = false;
  const unsigned char *packed = NULL;
  for (; dynamic->d_tag != DT_NULL; dynamic++) {
    uintptr_t value = dynamic->d_un.d_val;
    switch (dynamic->d_tag) {
      case DT_SYMTAB: symbols = (const ElfW(Sym) *)placed(bias, value); break;
      case DT_STRTAB: strings = (const char *)placed(bias, value); break;
      case DT_RELA: table[0] = placed(bias, value); break;
      case DT_RELASZ: size[0] = value; break;
      case DT_REL: table[1] = placed(bias, value); break;
      case DT_RELSZ: size[1] = value; break;
      case DT_JMPREL: table[2] = placed(bias, value); break;
      case DT_PLTRELSZ: size[2] = value; break;
      case DT_PLTREL: slots_have_addends = value == DT_RELA; break;
      case DT_RELR:
      case DT_ANDROID_RELR: words->has_relr = true; break;
      case DT_ANDROID_REL:
      case DT_ANDROID_RELA: packed = (const unsigned char *)placed(bias, value); break;
    }
  }
  if (packed != NULL) {
    read_packed(words, bias, symbols, strings, packed);
  }
  for (unsigned i = 0; i < 3; i++) {
    bool has_addends = i == 0 || (i == 2 && slots_have_addends);
    uintptr_t each = has_addends ? sizeof(ElfW(Rela)) : sizeof(ElfW(Rel));
    for (uintptr_t at = table[i]; at < table[i] + size[i]; at += each) {
      const ElfW(Rel) *entry = (const ElfW(Rel) *)at;
      take(words, bias, symbols, strings, entry->r_offset, entry->r_info);
    }
  }
}

static int look_at(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  struct search *search = data;
  const char *slash = strrchr(info->dlpi_name, '/');
  if (strcmp(slash ? slash + 1 : info->dlpi_name, search->name) != 0) {
    return 0;
  }
  struct words *words = search->words;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_DYNAMIC) {
      read_dynamic(words, info->dlpi_addr, (const ElfW(Dyn) *)start);
    } else if (header->p_type == PT_LOAD) {
      words->start = words->start == 0 ? start : words->start;
      words->end = start + header->p_memsz;
    }
  }
  for (unsigned i = 0; i < words->count; i++) {
    words->word[i].value = *words->word[i].at;
  }
  search->found = true;
  return 1;
}

bool words_read(const char *module, struct words *words) {
  memset(words, 0, sizeof *words);
  struct search search = {module, words, false};
  dl_iterate_phdr(look_at, &search);
  if (!search.found) {
    return false;
  }
  FILE *maps = fopen("/proc/self/maps", "re");
  CHECK(maps != NULL, "no maps");
  char line[512];
  while (fgets(line, sizeof line, maps)) {
    unsigned long start, end;
    char access[5];
    if (sscanf(line, "%lx-%lx %4s", &start, &end, access) == 3) {
      for (unsigned i = 0; i < words->count; i++) {
        uintptr_t at = (uintptr_t)words->word[i].at;
        if (start <= at && at < end) {
          memcpy(words->word[i].access, access, sizeof access);
        }
      }
    }
  }
  fclose(maps);
  return true;
}

bool words_same(const struct words *one, const struct words *other) {
  bool is_same = one->count == other->count;
  for (unsigned i = 0; is_same && i < one->count; i++) {
    const struct word *a = &one->word[i], *b = &other->word[i];
    is_same = a->at == b->at && a->value == b->value && strcmp(a->access, b->access) == 0;
  }
  return is_same;
}

unsigned words_changed(const struct words *before, const struct words *now) {
  CHECK(before->count == now->count, "%u words, then %u", before->count, now->count);
  unsigned changed = 0;
  for (unsigned i = 0; i < now->count; i++) {
    CHECK(strcmp(before->word[i].access, now->word[i].access) == 0, "%s was on a page %s, and is on one %s",
          now->word[i].function, before->word[i].access, now->word[i].access);
    changed += before->word[i].value != now->word[i].value;
  }
  return changed;
}
