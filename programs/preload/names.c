/* Programs that open libibverbs or librdmacm by name ask dlsym or dlvsym for its functions. Both look in the real library. If that has
 * the function in its present version, the answer is the one of that name here. So the device is there, and all else is as it was. */
#include "objects.h"

#include <dlfcn.h>
#include <link.h>

/* A sanitizer in the program asks dlsym for libc's functions while it begins: nothing here calls one that it has replaced, or touches its shadow memory,
 * until it is clear that the name is one of ours. */
#define EARLY __attribute__((no_sanitize_address))

typedef void *(*by_name)(void *, const char *);
typedef void *(*by_version)(void *, const char *, const char *);

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden"))); /* of this library */

EARLY static bool begins(const char *text, const char *with)
{
	while (*with && *text == *with)
		text++, with++;
	return !*with;
}

EARLY static bool same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

EARLY static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;
	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* The entry of a library's dynamic section, which the dynamic linker has made an address. */
EARLY static const void *section(const struct link_map *library, ElfW(Sxword) tag)
{
	for (const ElfW(Dyn) *d = library->l_ld; d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag)
			return (const void *)d->d_un.d_ptr;
	return NULL;
}

/* What a library defines, by its DT_GNU_HASH. To ask dlsym would come back to the function below. */
EARLY static void *defined(const struct link_map *library, const char *name)
{
	const uint32_t *table = section(library, DT_GNU_HASH), hash = hash_of(name);
	const ElfW(Sym) *symbols = section(library, DT_SYMTAB);
	const char *strings = section(library, DT_STRTAB);
	if (!table || !symbols || !strings)
		return NULL;
	uint32_t buckets = table[0], first = table[1], words = table[2];
	const uint32_t *bucket = (const uint32_t *)((const ElfW(Addr) *)(table + 4) + words), *chain = bucket + buckets;
	for (uint32_t i = bucket[hash % buckets]; i >= first; i++) {
		if ((chain[i - first] | 1) == (hash | 1) && symbols[i].st_shndx != SHN_UNDEF && same(strings + symbols[i].st_name, name))
			return (void *)(library->l_addr + symbols[i].st_value);
		if (chain[i - first] & 1)
			break;
	}
	return NULL;
}

/* Whether the name of a file begins so. */
EARLY static bool named(const char *file, const char *name)
{
	const char *last = file;
	for (; *file; file++)
		if (*file == '/')
			last = file + 1;
	return begins(last, name);
}

/* Whether a library is libc.so.6 or libc-2.31.so, for "libc". */
EARLY static bool is(const struct link_map *library, const char *so, const char *version)
{
	return named(library->l_name, so) || named(library->l_name, version);
}

/* A function of glibc's, which is in libdl before glibc 2.34. */
EARLY static void *in_libc(const char *name)
{
	void *found = NULL;
	for (const struct link_map *l = _r_debug.r_map; l && !found; l = l->l_next)
		if (is(l, "libc.so.", "libc-2.") || is(l, "libdl.so.", "libdl-2."))
			found = defined(l, name);
	return found;
}

EARLY static by_name find_by_name(void)
{
	static by_name found;
	if (!found)
		found = (by_name)in_libc("dlsym");
	return found;
}

EARLY static by_version find_by_version(void)
{
	static by_version found;
	if (!found)
		found = (by_version)in_libc("dlvsym");
	return found;
}

void *(*iw_dlopen(void))(const char *, int)
{
	static void *(*found)(const char *, int);
	if (!found)
		found = (void *(*)(const char *, int))in_libc("dlopen");
	return found;
}

EARLY void *iw_dlsym(void *handle, const char *name)
{
	return find_by_name()(handle, name);
}

static void *ours(const char *name)
{
	const struct link_map *l = _r_debug.r_map;
	while (l && l->l_ld != _DYNAMIC)
		l = l->l_next;
	return l ? defined(l, name) : NULL;
}

/* What a program gets that has found something. */
EARLY static void *instead_of(void *found, const char *name)
{
	Dl_info info;
	if (!found || !(begins(name, "ibv_") || begins(name, "_ibv_") || begins(name, "rdma_")))
		return found;
	if (!dladdr(found, &info) || (!named(info.dli_fname, "libibverbs") && !named(info.dli_fname, "librdmacm")))
		return found;
	void *answer = ours(name);
	return answer ? answer : found;
}

/* These two are looked for from the caller's place in the order of libraries, and find this library by themselves. The real function has to see the
 * caller's return address: it is called last. */
EARLY static bool depends_on_caller(void *handle)
{
	return handle == RTLD_DEFAULT || handle == RTLD_NEXT;
}

EARLY EXPORT void *dlsym(void *restrict handle, const char *restrict name)
{
	by_name real = find_by_name();
	if (depends_on_caller(handle))
		return real(handle, name);
	return instead_of(real(handle, name), name);
}

/* A function's older version has other structures. */
EARLY EXPORT void *dlvsym(void *restrict handle, const char *restrict name, const char *restrict version)
{
	by_version real = find_by_version();
	if (depends_on_caller(handle))
		return real(handle, name, version);
	void *present = iw_dlsym(handle, name), *found = real(handle, name, version);
	return found == present ? instead_of(found, name) : found;
}
