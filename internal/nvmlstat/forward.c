//go:build linux && cgo && (amd64 || arm64)

// go-nvml leaves NVML's functions unresolved in the program, for the loader to bind at the first call of each.
// If the linker requests binding at the start (-z now, the default of Ubuntu's gcc), a program that contains
// go-nvml does not start; and a call of a function that the driver's library lacks ends the program. Therefore
// the functions are defined here. Each jumps to the address in its slot: the library's function once
// nvml_forward has looked it up; before that, or if the library lacks the function, a function that returns an
// error.
#define _GNU_SOURCE
#include <dlfcn.h>
#include "forward.h"

enum {
#define F(name) at_##name,
#include "zz_names.h"
#undef F
	slots
};

static int missing(void) { return 13; } // NVML_ERROR_FUNCTION_NOT_FOUND
static const char *nothing(void) { return "no such function"; }

// Only the code below reads these.
__attribute__((used, visibility("hidden"))) void *gnb_nvml_slots[slots] = {
#define F(name) (void *)missing,
#include "zz_names.h"
#undef F
};

static const char *const names[slots] = {
#define F(name) #name,
#include "zz_names.h"
#undef F
};

// The assembler counts the slots as it goes, in the same list.
#if defined(__x86_64__)
#define KIND "@function"
#define JUMP "jmp *gnb_nvml_slots+gnb_nvml_at(%rip)\n"
#else
#define KIND "%function"
#define JUMP "adrp x16, gnb_nvml_slots+gnb_nvml_at\nldr x16, [x16, #:lo12:gnb_nvml_slots+gnb_nvml_at]\nbr x16\n"
#endif
#define F(name) ".globl " #name "\n.hidden " #name "\n.type " #name ", " KIND "\n" #name ":\n" JUMP \
	".size " #name ", .-" #name "\n.set gnb_nvml_at, gnb_nvml_at+8\n"
__asm__(".text\n.p2align 4\n.set gnb_nvml_at, 0\n"
#include "zz_names.h"
);
#undef F

void nvml_forward(const char *library) {
	gnb_nvml_slots[at_nvmlErrorString] = (void *)nothing;
	void *lib = dlopen(library, RTLD_LAZY | RTLD_GLOBAL);
	if (!lib) return; // go-nvml reports that the library is missing
	for (int i = 0; i < slots; i++) {
		void *f = dlsym(lib, names[i]);
		if (f) gnb_nvml_slots[i] = f;
	}
}
