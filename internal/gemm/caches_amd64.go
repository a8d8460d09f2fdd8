package gemm

// cpuid executes the CPUID instruction.
func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)

// machineCaches reads the caches from CPUID: Intel's leaf 4 or AMD's 0x8000001D, which have the
// same layout.
func machineCaches() (c caches) {
	const intel, amd, extended = 4, 0x8000001D, 0x80000000
	leaf := uint32(0)
	if most, _, _, _ := cpuid(0, 0); most >= intel {
		leaf = intel
	}
	if kind, _, _, _ := cpuid(intel, 0); leaf == 0 || kind&31 == 0 {
		if most, _, _, _ := cpuid(extended, 0); most < amd {
			return caches{}
		}
		leaf = amd
	}
	const most = 16 // above the number of caches of any processor
	for sub := range uint32(most) {
		eax, ebx, ecx, _ := cpuid(leaf, sub)
		kind, level := eax&31, eax>>5&7
		if kind == 0 {
			break
		}
		const data, unified = 1, 3
		line, parts, ways, sets := int(ebx&0xfff)+1, int(ebx>>12&0x3ff)+1, int(ebx>>22)+1, int(ecx)+1
		size := line * parts * ways * sets
		switch {
		case level == 1 && kind == data:
			c.line, c.sets, c.ways = line*parts, sets, ways
		case level == 2 && kind == unified:
			c.l2 = size
		case level == 3 && kind == unified:
			c.l3 = size
		}
	}
	return c
}
