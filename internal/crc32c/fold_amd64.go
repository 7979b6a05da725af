//go:build !purego && !race && !msan && !asan

package crc32c

// fold adds p, of at least 64 bytes, to a CRC register, which is the complement of a CRC.
//
//go:noescape
func fold(state uint32, p []byte) uint32

// foldCopy is fold of src, which it stores to dst as well: what it sums is what it stores.
// dst is as long as src.
//
//go:noescape
func foldCopy(dst, src []byte, state uint32) uint32

// words adds p, of any length, to a CRC register, without folding.
//
//go:noescape
func words(state uint32, p []byte) uint32

// fold256 and foldCopy256 do the same in registers of 256 bits.
//
//go:noescape
func fold256(state uint32, p []byte) uint32

//go:noescape
func foldCopy256(dst, src []byte, state uint32) uint32

// foldWeave is foldCopy of src with a marker in front of every 508 bytes; dst has all of that, and it
// is at least one marker. The first marker is at a distance from ULPDU_Length.
//
//go:noescape
func foldWeave(dst, src []byte, distance, state uint32) uint32

//go:noescape
func foldWeave256(dst, src []byte, distance, state uint32) uint32

// powers are what fold multiplies by: for each distance of d bits, x^(d+31) mod P(x) and
// x^(d-33) mod P(x) in the reflected order. See fold_amd64.s; TestPowers computes them.
var powers = [...]uint64{
	0xdcb17aa4, 0xb9e02b86, // 256 bytes: a turn of the loop
	0xa87ab8a8, 0xab7aff2a, // 192, 128 and 64 bytes: from one register to the last
	0x6992cea2, 0x0d3b6092,
	0x740eef02, 0x9e4addf8,
	0x1c291d04, 0xddc0152b, // 48, 32 and 16 bytes: from one lane to the last
	0x3da6d0cb, 0xba4fc28e,
	0xf20c0dfe, 0x493c7d27,
	0, 0, // the last lane is not multiplied
}

// cpuid returns what the instruction CPUID tells under a leaf and subleaf.
func cpuid(leaf, subleaf uint32) (eax, ebx, ecx, edx uint32)

// xgetbv returns the low half of XCR0: the registers that the operating system saves when
// it switches threads.
func xgetbv() uint32

// What folding needs: bits of CPUID's leaves 1 and 7, and of XCR0.
const (
	leaf1ECX    = 1<<1 | 1<<20 | 1<<27 // PCLMULQDQ, SSE4.2 (CRC32), OSXSAVE
	leaf7EBX256 = 1 << 5               // AVX2
	leaf7EBX512 = 1 << 16              // AVX512F
	leaf7ECX    = 1 << 10              // VPCLMULQDQ
	ymmState    = 1<<1 | 1<<2          // XMM, YMM
	zmmState    = ymmState | 1<<5 | 1<<6 | 1<<7
)

// detect returns the widest registers that can be folded in here.
func detect() method {
	most, _, _, _ := cpuid(0, 0)
	_, _, c, _ := cpuid(1, 0)
	if !tells(most, c) {
		return portable
	}
	_, b, c, _ := cpuid(7, 0)
	return widest(b, c, xgetbv())
}

// tells reports whether a processor whose last leaf is most, and whose leaf 1 has ecx, can be asked
// for more, and folds at all.
func tells(most, ecx uint32) bool { return most >= 7 && ecx&leaf1ECX == leaf1ECX }

// widest returns the widest registers that can be folded in, by ebx and ecx of leaf 7 and by XCR0.
func widest(ebx, ecx, state uint32) method {
	switch {
	case ecx&leaf7ECX == 0 || state&ymmState != ymmState || ebx&leaf7EBX256 == 0:
		return portable
	case state&zmmState != zmmState || ebx&leaf7EBX512 == 0:
		return folds256
	}
	return folds512
}
