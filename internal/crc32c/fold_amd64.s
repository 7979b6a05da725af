//go:build !purego && !race && !msan && !asan

#include "textflag.h"
#include "words_amd64.h"

// How a message lies in registers: it is reflected, the first octet's least significant bit
// being the coefficient of the highest power. Each of the four lanes of 128 bits in a
// register holds 16 octets, H(x)·x^64 + L(x): H is the half that comes first, and so
// stands in the lower 64 bits.
//
// To fold a lane over d bits is to replace it by
//
//	H(x)·(x^(d+64) mod P(x)) + L(x)·(x^d mod P(x))
//
// which is added to (XORed into) what stands d bits further on. VPCLMULQDQ multiplies a
// half of each lane by a half of each lane of another register: $0x00 both lower halves,
// $0x11 both upper ones. The product of two reflected numbers of 64 bits has 127 and so
// stands one bit lower than 128 would, which is a factor of x; and a remainder of 32 bits in
// the lower half of 64 is x^32 times what it was. Hence the powers are taken 33 lower:
// x^(d+31) and x^(d-33).
//
// VPTERNLOGQ $0x96 is the XOR of three registers.

// FOLD replaces the lanes of Z by their two products with K, whose sum is the lanes folded.
// One of the two is left in T, to be added together with what comes next.
#define FOLD(K, Z, T) \
	VPCLMULQDQ $0x00, K, Z, T \
	VPCLMULQDQ $0x11, K, Z, Z

// MERGE adds up the four registers in Z3, the last 64 octets: Z0 is 192 octets in front of
// them, Z1 128 and Z2 64.
#define MERGE \
	VBROADCASTI32X4 ·powers+16(SB), Z5  \
	VBROADCASTI32X4 ·powers+32(SB), Z9  \
	VBROADCASTI32X4 ·powers+48(SB), Z10 \
	FOLD(Z5, Z0, Z6)                    \
	FOLD(Z9, Z1, Z7)                    \
	FOLD(Z10, Z2, Z8)                   \
	VPTERNLOGQ $0x96, Z0, Z6, Z3        \
	VPTERNLOGQ $0x96, Z1, Z7, Z3        \
	VPTERNLOGQ $0x96, Z2, Z8, Z3

// FINISH makes the CRC register of Z3, the one register that is left: it adds up the four
// lanes in the last, and has CRC32 divide the 16 octets that those are.
#define FINISH \
	VMOVDQU64 ·powers+64(SB), Z5 \
	VEXTRACTI32X4 $3, Z3, X0     \
	FOLD(Z5, Z3, Z6)             \
	VPXORQ Z6, Z3, Z3            \
	VEXTRACTI64X4 $1, Z3, Y6     \
	VPXOR Y6, Y3, Y3             \
	VEXTRACTI128 $1, Y3, X6      \
	VPXOR X6, X3, X3             \
	VPXOR X0, X3, X3             \
	VMOVQ X3, DX                 \
	VPEXTRQ $1, X3, BX           \
	XORL AX, AX                  \
	CRC32Q DX, AX                \
	CRC32Q BX, AX                \
	VZEROUPPER

// TURN folds over 256 octets, adds those in Z10 to Z13 and stores them at an offset from DI.
#define TURN(offset) \
	FOLD(Z5, Z0, Z6)                    \
	FOLD(Z5, Z1, Z7)                    \
	FOLD(Z5, Z2, Z8)                    \
	FOLD(Z5, Z3, Z9)                    \
	VMOVDQU64 Z10, (offset+0)(DI)       \
	VMOVDQU64 Z11, (offset+64)(DI)      \
	VMOVDQU64 Z12, (offset+128)(DI)     \
	VMOVDQU64 Z13, (offset+192)(DI)     \
	VPTERNLOGQ $0x96, Z10, Z6, Z0       \
	VPTERNLOGQ $0x96, Z11, Z7, Z1       \
	VPTERNLOGQ $0x96, Z12, Z8, Z2       \
	VPTERNLOGQ $0x96, Z13, Z9, Z3

// func fold(state uint32, p []byte) uint32
TEXT ·fold(SB), NOSPLIT, $0-36
	MOVL  state+0(FP), AX
	VMOVD AX, X4
	MOVQ  p_base+8(FP), SI
	MOVQ  p_len+16(FP), CX

	// The CRC register is added to the first 32 bits of the message.
	CMPQ   CX, $256
	JB     short
	VPXORQ 0(SI), Z4, Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VBROADCASTI32X4 ·powers+0(SB), Z5
	ADDQ   $256, SI
	SUBQ   $256, CX
	CMPQ   CX, $256
	JB     merge

loop:
	FOLD(Z5, Z0, Z6)
	FOLD(Z5, Z1, Z7)
	FOLD(Z5, Z2, Z8)
	FOLD(Z5, Z3, Z9)
	VPTERNLOGQ $0x96, 0(SI), Z6, Z0
	VPTERNLOGQ $0x96, 64(SI), Z7, Z1
	VPTERNLOGQ $0x96, 128(SI), Z8, Z2
	VPTERNLOGQ $0x96, 192(SI), Z9, Z3
	ADDQ $256, SI
	SUBQ $256, CX
	CMPQ CX, $256
	JAE  loop

merge:
	MERGE
	JMP rest

short:
	VPXORQ 0(SI), Z4, Z3
	ADDQ   $64, SI
	SUBQ   $64, CX

rest:
	VBROADCASTI32X4 ·powers+48(SB), Z10
	CMPQ CX, $64
	JB   finish

single:
	FOLD(Z10, Z3, Z6)
	VPTERNLOGQ $0x96, 0(SI), Z6, Z3
	ADDQ $64, SI
	SUBQ $64, CX
	CMPQ CX, $64
	JAE  single

finish:
	FINISH

	WORDS
	MOVL AX, ret+32(FP)
	RET

// func foldCopy(dst, src []byte, state uint32) uint32
//
// Each 64 octets are loaded to a register once, stored and folded from there.
TEXT ·foldCopy(SB), NOSPLIT, $0-60
	MOVQ  dst_base+0(FP), DI
	MOVQ  src_base+24(FP), SI
	MOVQ  src_len+32(FP), CX
	MOVL  state+48(FP), AX
	VMOVD AX, X4

	CMPQ   CX, $256
	JB     short
	VMOVDQU64 0(SI), Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VMOVDQU64 Z0, 0(DI)
	VMOVDQU64 Z1, 64(DI)
	VMOVDQU64 Z2, 128(DI)
	VMOVDQU64 Z3, 192(DI)
	VPXORQ Z4, Z0, Z0
	VBROADCASTI32X4 ·powers+0(SB), Z5
	ADDQ   $256, SI
	ADDQ   $256, DI
	SUBQ   $256, CX
	CMPQ   CX, $256
	JB     merge

loop:
	VMOVDQU64 0(SI), Z10
	VMOVDQU64 64(SI), Z11
	VMOVDQU64 128(SI), Z12
	VMOVDQU64 192(SI), Z13
	TURN(0)
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	CMPQ CX, $256
	JAE  loop

merge:
	MERGE
	JMP rest

short:
	VMOVDQU64 0(SI), Z3
	VMOVDQU64 Z3, 0(DI)
	VPXORQ Z4, Z3, Z3
	ADDQ   $64, SI
	ADDQ   $64, DI
	SUBQ   $64, CX

rest:
	VBROADCASTI32X4 ·powers+48(SB), Z10
	CMPQ CX, $64
	JB   finish

single:
	VMOVDQU64 0(SI), Z11
	FOLD(Z10, Z3, Z6)
	VMOVDQU64 Z11, 0(DI)
	VPTERNLOGQ $0x96, Z11, Z6, Z3
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $64, CX
	CMPQ CX, $64
	JAE  single

finish:
	FINISH

	WORDSCOPY
	MOVL AX, ret+56(FP)
	RET

// func foldWeave(dst, src []byte, distance, state uint32) uint32
//
// A block of 512 octets is two turns of foldCopy's loop. Its first 64 octets are the marker and
// 60 of src: the marker is put in front of what is loaded, and the last four of that are loaded
// again by the next.
TEXT ·foldWeave(SB), NOSPLIT, $0-60
	MOVQ  dst_base+0(FP), DI
	MOVQ  dst_len+8(FP), CX
	MOVQ  src_base+24(FP), SI
	MOVL  distance+48(FP), R8
	MOVL  state+52(FP), AX
	VMOVD AX, X4
	VBROADCASTI32X4 ·powers+0(SB), Z5

	// Nothing is folded yet: what is added to the first octets is the CRC register alone.
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	VPXORQ Z2, Z2, Z2
	VPXORQ Z3, Z3, Z3

block:
	MOVL   R8, BX
	ANDL   $0xffff, BX // FPDUPTR has 16 bits, and RESERVED in front of it is 0
	BSWAPL BX
	VPBROADCASTD BX, Z14
	VMOVDQU64 0(SI), Z10
	VALIGND $15, Z14, Z10, Z10
	VMOVDQU64 60(SI), Z11
	VMOVDQU64 124(SI), Z12
	VMOVDQU64 188(SI), Z13
	TURN(0)
	VPXORQ Z4, Z0, Z0
	VPXORQ Z4, Z4, Z4

	VMOVDQU64 252(SI), Z10
	VMOVDQU64 316(SI), Z11
	VMOVDQU64 380(SI), Z12
	VMOVDQU64 444(SI), Z13
	TURN(256)
	ADDL $512, R8
	ADDQ $508, SI
	ADDQ $512, DI
	SUBQ $512, CX
	JA   block

	MERGE
	FINISH
	MOVL AX, ret+56(FP)
	RET

// func words(state uint32, p []byte) uint32
//
// CRC32 takes the octets by 8, 4, 2 and 1.
TEXT ·words(SB), NOSPLIT, $0-36
	MOVL state+0(FP), AX
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX

	WORDS
	MOVL AX, ret+32(FP)
	RET

// func cpuid(leaf, subleaf uint32) (eax, ebx, ecx, edx uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	MOVL subleaf+4(FP), CX
	CPUID
	MOVL AX, eax+8(FP)
	MOVL BX, ebx+12(FP)
	MOVL CX, ecx+16(FP)
	MOVL DX, edx+20(FP)
	RET

// func xgetbv() uint32
TEXT ·xgetbv(SB), NOSPLIT, $0-4
	XORL CX, CX
	XGETBV
	MOVL AX, ret+0(FP)
	RET
